"""Why ticks did not run, as lines of a bounded log for each task: "why did it not run" is a question to it.

What a switch or a breaker stops is written once in a while, with how often: its state says the rest.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from millpond.job import MICROSECONDS, Instant
from millpond.store.protocol import Store

KEEP = 1000  # lines of each task
AGAIN = 60 * MICROSECONDS  # between two lines about a standing reason
REMEMBERED = 64  # lines of another planner
STANDING = ("disabled", "breaker")


class Skipped(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: an instant that was skipped, or several for one reason."""

    at: Instant  # the last of them
    reason: str
    count: int = 1
    since: Instant | None = None  # the first, if there are several


class _Open(NamedTuple):
    reason: str
    written_at: Instant
    more: int = 0
    since: Instant | None = None
    last: Instant = 0


def log_name(task: str) -> str:
    """Where the lines of a task are."""
    return f"recurring/{task}"


class _Read(NamedTuple):
    """What was read of a log: up to which line, and the spans of the last ones."""

    number: int
    spans: deque[tuple[Instant, Instant]]


class Notes:
    """Lines that wait to be written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines: dict[str, list[Skipped]] = {}
        self._open: dict[str, _Open] = {}
        self._read: dict[str, _Read] = {}

    def skipped(self, task: str, said: Skipped, now: Instant) -> None:
        """An instant, or several, did not run."""
        before = self._open.get(task)
        same = before is not None and before.reason == said.reason and said.reason in STANDING
        if before is not None and same and abs(now - before.written_at) < AGAIN:
            first = said.at if said.since is None else said.since
            self._open[task] = before._replace(
                more=before.more + said.count, since=before.since or first, last=said.at
            )
            return
        self.conclude(task)
        self._lines.setdefault(task, []).append(said)
        self._open[task] = _Open(said.reason, now)

    def is_said(self, task: str, at: Instant) -> bool:
        """Has another planner said why this instant did not run? Two of them need one line, not two."""
        before = self._read.get(task, _Read(0, deque(maxlen=REMEMBERED)))
        lines = self._store.log(log_name(task), after=before.number, limit=KEEP)
        for line in lines:
            try:
                said = msgspec.json.decode(line.data, type=Skipped)
            except msgspec.MsgspecError:
                continue
            before.spans.append((said.at if said.since is None else said.since, said.at))
        self._read[task] = _Read(lines[-1].number if lines else before.number, before.spans)
        return any(first <= at <= last for first, last in before.spans)

    def was_skipped(self, task: str, at: Instant) -> bool:
        """Does any line say that this instant did not run, also one that is not written yet?"""
        waiting, before = self._lines.get(task, []), self._open.get(task)
        spans = [(said.at if said.since is None else said.since, said.at) for said in waiting]
        if before is not None and before.since is not None:
            spans.append((before.since, before.last))
        for line in self._store.log(log_name(task), limit=KEEP):
            try:
                said = msgspec.json.decode(line.data, type=Skipped)
            except msgspec.MsgspecError:
                continue
            spans.append((said.at if said.since is None else said.since, said.at))
        return any(first <= at <= last for first, last in spans)

    def conclude(self, task: str) -> None:
        """The reason holds no longer: write down how often it did."""
        before = self._open.pop(task, None)
        if before is not None and before.more:
            line = Skipped(before.last, before.reason, before.more, before.since)
            self._lines.setdefault(task, []).append(line)

    def write(self, budget: float | None = None) -> None:
        """Write what waits, for so many seconds and at least about one task; the rest waits on."""
        until = None if budget is None else time.monotonic() + budget
        while self._lines:
            task, lines = next(iter(self._lines.items()))
            self._store.log(log_name(task), [msgspec.json.encode(line) for line in lines], limit=0, keep=KEEP)
            del self._lines[task]
            if until is not None and time.monotonic() >= until:
                break

    def waits(self, tasks: Iterable[str]) -> bool:
        """Is something about one of these not written yet?"""
        return bool(self._lines) and any(task in self._lines for task in tasks)

    def close(self) -> None:
        """Write everything."""
        for task in list(self._open):
            self.conclude(task)
        self.write()
