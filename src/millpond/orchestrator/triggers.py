"""Triggers on their way to a planner: lines of a log that whoever plans reads on.

A run that was enqueued at once is only made known here; triggers that are to be gathered wait, by task and
key, until a tick takes them. How far the log has been dealt with is kept beside the leader's lease.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import msgspec

from millpond.job import Instant
from millpond.recurring import RecurringTask
from millpond.rules.recurring.triggers import Pending, TriggerRule, coalesce, due_at
from millpond.store.protocol import PAGE, Store

logger = logging.getLogger("millpond")
KEEP = 10_000
ANY = "(any task)"
MOST = 5_000  # triggers of a task that wait to be run
MOST_BYTES = 32_000_000  # and of their payloads


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line."""

    name: str
    at: Instant | None = None  # of the tick that was planned at once
    key: str = ""
    payload: msgspec.Raw = msgspec.Raw()  # empty: it brings none


class Batch:
    """Gathered triggers that become one tick."""

    def __init__(self, name: str, pending: Pending, number: int) -> None:
        self.name = name
        self.pending = pending
        self.number = number  # of the line of its first trigger
        self.tries = 0  # how often its tick was planned and got no job

    def at(self, rule: TriggerRule) -> Instant:
        """The name of its tick: the same for whoever reads the log, another one for each batch that is due
        then, and for each try."""
        return due_at(self.pending, rule) // 1000 * 1000 + (self.number + self.tries) % 1000

    @property
    def payloads(self) -> tuple[Any, ...]:
        """What its run gets."""
        return tuple(map(msgspec.json.decode, self.pending.payloads))


def log_name(app: str) -> str:
    """Where the lines of an app are."""
    return f"recurring/{app}/triggers"


def say(store: Store, app: str, trigger: Trigger) -> None:
    """Make a trigger known."""
    store.log(log_name(app), [msgspec.json.encode(trigger)], limit=0, keep=KEEP)


class Inbox:
    """The triggers that have been read and not been dealt with."""

    def __init__(self, store: Store, app: str, tasks: dict[str, RecurringTask[..., Any]]) -> None:
        self._store = store
        self._name = log_name(app)
        self._tasks = tasks
        self._read = 0
        self._is_sure = False  # has a line of the log been read up to `_read`?
        self._pending: dict[tuple[str, str], list[Batch]] = {}  # the longest waiting first
        self._waiting: Counter[str] = Counter()  # triggers, by task
        self._bytes: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()

    def begin(self, number: int) -> None:
        """Read on from here."""
        self._read, self._is_sure = number, number > 0
        for kept in (self._pending, self._waiting, self._bytes):
            kept.clear()

    @property
    def done(self) -> int:
        """The number up to which everything is dealt with."""
        return min([self._read, *(batches[0].number - 1 for batches in self._pending.values())])

    def hear(self, now: Instant) -> list[tuple[str, Instant]]:
        """Read on; returns the ticks that somebody planned already."""
        known: list[tuple[str, Instant]] = []
        for line in self._store.log(self._name, after=self._read, limit=PAGE):
            if self._is_sure and line.number > self._read + 1:
                self._dropped[ANY] += line.number - self._read - 1
            self._read, self._is_sure = line.number, True
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
            elif self._waiting[said.name] >= MOST or self._bytes[said.name] >= MOST_BYTES:
                self._dropped[said.name] += 1
            else:  # never in the future: the clock may have been wrong when it was written
                self._gather(task, said, line.number, min(line.at, now))
        return known

    def dropped(self) -> list[tuple[str, int, str]]:
        """Triggers that will not be run, and why, since the last call: of each task the number."""
        found, self._dropped = self._dropped, Counter()
        unread = f"more than {KEEP:,} came before they were read"
        full = f"more wait than are kept ({MOST:,} triggers, {MOST_BYTES // 1_000_000} MB)"
        return [(name, number, unread if name == ANY else full) for name, number in found.items()]

    def _gather(self, task: RecurringTask[..., Any], said: Trigger, number: int, at: Instant) -> None:
        batches = self._pending.setdefault((said.name, said.key), [])
        last = batches[-1] if batches else Batch(said.name, Pending(said.key, at, at), number)
        first, *rest = coalesce(last.pending, said.key, bytes(said.payload) or None, task.trigger_rule, at)
        last.pending = first
        self._waiting[said.name] += 1
        self._bytes[said.name] += len(bytes(said.payload))
        batches[-1:] = [last, *(Batch(said.name, pending, number) for pending in rest)]

    def ready(self, now: Instant) -> list[Batch]:
        """Those whose time has come. Each stays until `taken`."""
        return [
            batch
            for (name, _), batches in self._pending.items()
            for batch in batches
            if due_at(batch.pending, self._tasks[name].trigger_rule) <= now
        ]

    def taken(self, batch: Batch) -> None:
        """A tick was made of these."""
        key = batch.name, batch.pending.key
        self._pending[key].remove(batch)
        self._waiting[batch.name] -= batch.pending.triggers
        self._bytes[batch.name] -= sum(len(bytes(payload)) for payload in batch.pending.payloads)
        if not self._pending[key]:
            del self._pending[key]

    def next_due(self) -> Instant | None:
        """When the next tick of gathered triggers is due."""
        return min(
            (
                due_at(batches[0].pending, self._tasks[name].trigger_rule)
                for (name, _), batches in self._pending.items()
            ),
            default=None,
        )
