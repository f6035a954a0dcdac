"""Asks the store how things stand: once a second at most, whoever and however many want to know.

Counts are taken each time; what moves slowly is asked for less often. Where counting takes long it is done
less often, so that looking never takes more than a small part of the store's time.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from millpond.api import recurring_documents
from millpond.api.log_tail import Tail
from millpond.errors import StoreError
from millpond.job import JobState
from millpond.node.scaling.decision_log import with_fields
from millpond.shown_text import shown
from millpond.store.protocol import Counts, Minute, QueueCounts

if TYPE_CHECKING:
    from millpond.app import App

logger = logging.getLogger("millpond.api")
EVERY = 1.0  # seconds between two looks
SHARE = 20  # looking takes at most this part of the time
LONGEST = 30.0
LAGS = 60.0  # seconds that a snapshot may be old while another is taken
QUICK = 0.05  # seconds: full counts that take longer are taken less often
SLOW = 5.0  # seconds between two looks at what moves slowly
MINUTES = 6  # of statistics
# Terms of a decision that are no caps
FREE = ("", "base", "running", "backlog", "depth", "fixed", "warm", "demand", "min", "hold")
ACTIONS = ("grow", "shrink", "stay")


class Snapshot(NamedTuple):
    """The store at one moment."""

    at: float  # seconds since 1970, by the store's clock
    counts: Counts
    minutes: tuple[Minute, ...]
    overrides: dict[str, dict[str, Any]]
    recurring: list[dict[str, Any]] | None
    decisions: list[dict[str, Any]]  # the oldest first
    trouble: str | None = None


class Gathering:
    """The last snapshot, and when to take another."""

    def __init__(self, app: App, *, knows_tasks: bool) -> None:
        self._app = app
        self._store = app.store
        self._knows_tasks = knows_tasks
        self._lock = threading.Lock()
        self._last: Snapshot | None = None
        self._taken_at = self._slow_at = self._count_at = float("-inf")
        self._changes = 0  # that were made through this server
        self._seen = -1  # how many of them the last snapshot has seen
        self._parked: dict[str, int] = {}  # jobs in line that cannot be claimed, as of the last full count
        self.every = EVERY
        self._took = self._quick_took = 0.0
        self.rounds = 0  # times the store was asked
        self.durability = ""
        self.events = Tail(self._store, "events")
        self.decisions = Tail(self._store, "decisions", make=decision_document)

    def is_fresh(self) -> bool:
        """Is the last snapshot young enough, and has nothing been changed since it was begun?"""
        return self._seen == self._changes and time.monotonic() - self._taken_at < self.every

    @property
    def last(self) -> Snapshot | None:
        """The last snapshot, however old."""
        return self._last

    def snapshot(self) -> Snapshot:
        """How things stand: the last snapshot if it is young, else a new one. One is taken for all."""
        with self._lock:
            if self._last is None or not self.is_fresh():
                self._last = self._take()
            return self._last

    def forget(self) -> None:
        """Something was changed: the next who asks shall see it. Counts may lag where they are slow."""
        self._changes += 1
        self._slow_at = float("-inf")

    def may_lag(self) -> bool:
        """May the last snapshot do while another is taken? Only where that takes long, and not for long."""
        age = time.monotonic() - self._taken_at
        return self._seen == self._changes and self._took > QUICK and age < LAGS

    def _take(self) -> Snapshot:
        began, seen = time.monotonic(), self._changes
        self.rounds += 1
        try:
            found = self._ask(began)
        except StoreError as error:
            if self._last is None:
                raise
            found = self._last._replace(trouble=shown(str(error)))
        except Exception as error:  # one line that nobody can read must not blind those who look
            if self._last is None:
                raise
            logger.exception("What the store holds could not be read")
            found = self._last._replace(trouble=shown(f"it holds what cannot be read: {error}"))
        self._took = time.monotonic() - began
        self.every = min(LONGEST, max(EVERY, SHARE * self._quick_took))
        self._taken_at, self._seen = time.monotonic(), seen
        return found

    def _ask(self, now: float) -> Snapshot:
        store, last = self._store, self._last
        counts = self._counts(None if last is None else last.counts)
        self.events.read()
        self.decisions.read()
        at = store.clock.now() / 1e6
        if last is None or now >= self._slow_at:
            self._slow_at = now + SLOW
            self.durability = self.durability or store.durability()
            minute = int(at // 60)
            last = Snapshot(
                at,
                counts,
                tuple(store.statistics(minute - MINUTES, minute + 1)),
                recurring_documents.overrides(store, counts),
                recurring_documents.status(self._app) if self._knows_tasks else None,
                [],
            )
        return last._replace(at=at, counts=counts, decisions=self.decisions.lines(), trouble=None)

    def _counts(self, last: Counts | None) -> Counts:
        """Full counts, or, while those take long, the last ones brought up to date with what is in line."""
        began = time.monotonic()
        if last is not None and began < self._count_at:
            found = updated(last, self._store.counts(ready_only=True), self._parked)
            self._quick_took = time.monotonic() - began
            return found
        found = self._store.counts()
        took = time.monotonic() - began
        self._quick_took = min(took, QUICK)
        if took > QUICK:
            self._count_at = time.monotonic() + min(LONGEST, SHARE * took)
            self._parked = parked(found, self._store.counts(ready_only=True))
        return found


def parked(full: Counts, ready: Counts) -> dict[str, int]:
    """How many jobs stand in line that cannot be claimed, by queue."""
    free = {line.queue: line.states.get(JobState.QUEUED, 0) for line in ready.queues}
    return {
        line.queue: max(0, line.states.get(JobState.QUEUED, 0) - free.get(line.queue, 0))
        for line in full.queues
    }


def updated(last: Counts, ready: Counts, waiting: dict[str, int]) -> Counts:
    """The last full counts with fresh numbers for what is in line, and fresh nodes."""
    before = {line.queue: line.states for line in last.queues}
    fresh = {line.queue: line for line in ready.queues}
    queues = []
    for name in sorted({*before, *fresh}):
        line = fresh.get(name) or QueueCounts(name, False, None, {}, None)
        queued = line.states.get(JobState.QUEUED, 0) + waiting.get(name, 0)
        queues.append(replace(line, states={**before.get(name, {}), JobState.QUEUED: queued}))
    return Counts(tuple(queues), ready.nodes)


def decision_document(line: dict[str, Any]) -> dict[str, Any]:
    """A line of the log of decisions; what is not known by name is one of its terms."""
    line = with_fields(line)
    named = {
        "number": line["number"],
        "at": line["at"],
        "pool": _text(line.get("pool")),
        "node": _text(line.get("node")),
        "from": _whole(line["current"]),
        "to": _whole(line["target"]),
        "current": _whole(line["current"]),
        "target": _whole(line["target"]),
        "action": line["action"] if line["action"] in ACTIONS else None,
        "queue_depth": _whole(line["queue_depth"]),
        "busy_workers": _whole(line["busy_workers"]),
        "text": _text(line.get("sentence")) or _text(line.get("text")) or "",
        "shadow": bool(line.get("shadow")),
        "capped": None if line.get("binding") in FREE else _text(line.get("binding")),
    }
    told = {*named, "before", "after", "sentence"}
    return {**named, "terms": {name: value for name, value in line.items() if name not in told}}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < 2**53 else None
