"""Triggers on their way to a planner: lines of a log that whoever plans reads on.

A run that was enqueued at once is only made known here; triggers that are to be gathered wait, by task and
key, until a tick takes them. How far the log has been dealt with is kept beside the leader's lease.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from millpond.job import Instant
from millpond.recurring import RecurringTask
from millpond.rules.triggers import Pending, coalesce, due_at
from millpond.store.protocol import PAGE, Store

logger = logging.getLogger("millpond")
KEEP = 10_000
MOST_BYTES = 900_000  # of payloads in one run: a job carries a mebibyte


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line."""

    name: str
    at: Instant | None = None  # of the tick that was planned at once
    key: str = ""
    payload: msgspec.Raw = msgspec.Raw()  # empty: it brings none


class Ready(NamedTuple):
    """Gathered triggers whose tick is due."""

    name: str
    key: str
    at: Instant
    payloads: tuple[Any, ...]


def log_name(app: str) -> str:
    """Where the lines of an app are."""
    return f"recurring/{app}/triggers"


def say(store: Store, app: str, trigger: Trigger) -> None:
    """Make a trigger known."""
    store.log(log_name(app), [msgspec.json.encode(trigger)], limit=0, keep=KEEP)


def _apart(at: Instant, number: int) -> Instant:
    """The name of a tick: the same for whoever reads the log, another one for each key that is due then."""
    return at // 1000 * 1000 + number % 1000


def _fitting(payloads: Sequence[msgspec.Raw]) -> list[msgspec.Raw]:
    """The newest that one job can carry, oldest first."""
    kept: list[msgspec.Raw] = []
    room = MOST_BYTES
    for payload in reversed(payloads):
        room -= len(bytes(payload)) + 1
        if kept and room < 0:
            break
        kept.append(payload)
    return kept[::-1]


class Inbox:
    """The triggers that have been read and not been dealt with."""

    def __init__(self, store: Store, app: str, tasks: dict[str, RecurringTask[..., Any]]) -> None:
        self._store = store
        self._name = log_name(app)
        self._tasks = tasks
        self._read = 0
        self._pending: dict[tuple[str, str], tuple[Pending, int]] = {}  # with the number of its first line

    def begin(self, number: int) -> None:
        """Read on from here."""
        self._read = number
        self._pending.clear()

    @property
    def done(self) -> int:
        """The number up to which everything is dealt with."""
        return min([self._read, *(first - 1 for _, first in self._pending.values())])

    def hear(self) -> list[tuple[str, Instant]]:
        """Read on; returns the ticks that somebody planned already."""
        known: list[tuple[str, Instant]] = []
        for line in self._store.log(self._name, after=self._read, limit=PAGE):
            self._read = line.number
            try:
                said = msgspec.json.decode(line.data, type=Trigger)
            except msgspec.MsgspecError as error:
                logger.error("Trigger %d cannot be read and is lost: %s", line.number, error)
                continue
            task = self._tasks.get(said.name)
            if task is None:
                continue
            if said.at is not None:
                known.append((said.name, said.at))
            else:
                self._gather(task, said, line.number, line.at)
        return known

    def _gather(self, task: RecurringTask[..., Any], said: Trigger, number: int, at: Instant) -> None:
        before, first = self._pending.get((said.name, said.key), (None, number))
        payload = bytes(said.payload) or None
        pending = coalesce(before, said.key, payload, task.trigger_rule, at)
        self._pending[said.name, said.key] = (pending, first)

    def ready(self, now: Instant) -> list[Ready]:
        """Those whose time has come. Each stays until `taken`."""
        return [
            Ready(name, key, _apart(at, first), tuple(map(msgspec.json.decode, _fitting(pending.payloads))))
            for (name, key), (pending, first) in self._pending.items()
            if (at := due_at(pending, self._tasks[name].trigger_rule)) <= now
        ]

    def taken(self, name: str, key: str) -> None:
        """A tick was made of these."""
        self._pending.pop((name, key), None)

    def next_due(self) -> Instant | None:
        """When the next tick of gathered triggers is due."""
        return min(
            (
                due_at(pending, self._tasks[name].trigger_rule)
                for (name, _), (pending, _) in self._pending.items()
            ),
            default=None,
        )
