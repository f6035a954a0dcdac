"""Statistics by minute as columns for charts: added up over steps, percentiles out of histograms.

How many jobs were open at the end of a step is counted back from now: what came in and went out since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from millpond.rules.histogram import percentile
from millpond.store.protocol import Minute

COUNTS = ("enqueued", "completed", "dead", "cancelled", "retried")
CAME = ("enqueued", "replayed")
ENDED = ("completed", "dead", "cancelled")
PERCENTILES = (("p50", 0.5), ("p95", 0.95))
RECENT = 5  # minutes that "recently" means


class Window(NamedTuple):
    """How far back, and how fine."""

    minutes: int
    step: int  # minutes to a point


WINDOWS = {"1h": Window(60, 1), "6h": Window(360, 5), "24h": Window(1440, 5)}


class Sum:
    """Counts and histograms of several minutes together."""

    __slots__ = ("counts", "run", "wait")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wait: Counter[int] = Counter()
        self.run: Counter[int] = Counter()

    def add(self, minute: Minute) -> None:
        """One more minute of one queue."""
        self.counts.update(minute.counts)
        self.wait.update(minute.wait)
        self.run.update(minute.run)

    def percentiles(self) -> dict[str, float | None]:
        """Waits and runs, half of them and nearly all."""
        return {
            f"{name}_{word}": _rounded(percentile(histogram, share))
            for name, histogram in (("wait", self.wait), ("run", self.run))
            for word, share in PERCENTILES
        }


def recent(minutes: Iterable[Minute], at: float) -> dict[str, Any]:
    """What happened lately, in numbers: counts of the last five minutes and of the one that is not over yet
    at `at`; rates of the last one and of that. A rate over more would be wrong for as long after a change."""
    until, passed = int(at // 60), at % 60
    total, last = Sum(), Sum()
    for minute in minutes:
        if until - RECENT <= minute.minute <= until:
            total.add(minute)
        if until - 1 <= minute.minute <= until:
            last.add(minute)
    counts = {name: total.counts.get(name, 0) for name in COUNTS}
    failed = last.counts.get("dead", 0) + last.counts.get("retried", 0)
    return {
        "seconds": round(RECENT * 60 + passed),
        **counts,
        "per_minute": round(last.counts.get("completed", 0) * 60 / (60 + passed), 2),
        "failed_per_minute": round(failed * 60 / (60 + passed), 2),
        **total.percentiles(),
    }


Points = dict[int, Sum]  # by their place in the columns; where nothing happened there is none


class Series:
    """Columns for the queues that were asked for, for the others together, and for all. Fed minute by minute:
    what is kept depends on the number of points, not on that of queues."""

    def __init__(self, window: Window, until: int, queues: Collection[str]) -> None:
        """`until` is the minute that is not over yet."""
        self._step = window.step
        self._points = window.minutes // window.step
        self._first = until // window.step - self._points + 1
        self._named: dict[str, Points] = {queue: {} for queue in queues}
        self._other: Points = {}
        self._all: Points = {}

    def add(self, minute: Minute) -> None:
        """One more minute of one queue."""
        place = minute.minute // self._step - self._first
        if 0 <= place < self._points:
            for line in (self._named.get(minute.queue, self._other), self._all):
                line.setdefault(place, Sum()).add(minute)

    def document(self, open_now: Mapping[str, int]) -> dict[str, Any]:
        """The columns; `open_now` are the jobs of each queue that have not ended."""
        open_named = sum(open_now.get(name, 0) for name in self._named)
        everything = sum(open_now.values())
        seen = {name: points for name, points in self._named.items() if points or open_now.get(name)}
        return {
            "step": self._step * 60,
            "times": [(self._first + place) * self._step * 60 for place in range(self._points)],
            "queues": {name: self._columns(line, open_now.get(name, 0)) for name, line in seen.items()},
            "other": self._columns(self._other, everything - open_named),
            "all": self._columns(self._all, everything),
        }

    def _columns(self, line: Points, open_now: int) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {name: [0] * self._points for name in COUNTS}
        columns["open"] = self._open(line, open_now)
        for name in Sum().percentiles():
            columns[name] = [None] * self._points
        for place, point in line.items():
            for name in COUNTS:
                columns[name][place] = point.counts.get(name, 0)
            for name, value in point.percentiles().items():
                columns[name][place] = value
        return columns

    def _open(self, line: Points, now: int) -> list[int]:
        """Jobs that had not ended at the end of each step. What came before replays were counted came in
        unseen, so it cannot go below zero."""
        found, left = [], now
        for place in reversed(range(self._points)):
            found.append(max(0, left))
            if place in line:
                counts = line[place].counts
                left -= sum(counts.get(name, 0) for name in CAME) - sum(counts.get(name, 0) for name in ENDED)
        return found[::-1]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.4g}")
