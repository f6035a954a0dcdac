"""Statistics by minute as columns for charts: added up over steps, percentiles out of histograms.

How many jobs were open at the end of a step is counted back from now: what came in and went out since.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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


def recent(minutes: Iterable[Minute], until: int) -> dict[str, Any]:
    """What happened lately, in numbers; `until` is the minute that is not over yet."""
    total = Sum()
    for minute in minutes:
        if until - RECENT <= minute.minute <= until:
            total.add(minute)
    counts = {name: total.counts.get(name, 0) for name in COUNTS}
    return {"seconds": RECENT * 60, **counts, **total.percentiles()}


def series(
    minutes: Iterable[Minute], window: Window, until: int, open_now: Mapping[str, int]
) -> dict[str, Any]:
    """Columns for each queue and for all; `until` is the minute that is not over yet."""
    points = window.minutes // window.step
    last = until // window.step
    first = last - points + 1
    sums: dict[str | None, list[Sum]] = {None: [Sum() for _ in range(points)]}
    for minute in minutes:
        place = minute.minute // window.step - first
        if 0 <= place < points:
            for key in (minute.queue, None):
                sums.setdefault(key, [Sum() for _ in range(points)])[place].add(minute)
    everything = sum(open_now.values())
    columns = {
        key: _columns(line, everything if key is None else open_now.get(key, 0)) for key, line in sums.items()
    }
    return {
        "step": window.step * 60,
        "times": [(first + place) * window.step * 60 for place in range(points)],
        "queues": {key: found for key, found in columns.items() if key is not None},
        "all": columns[None],
    }


def _columns(line: list[Sum], open_now: int) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [point.counts.get(name, 0) for point in line] for name in COUNTS}
    columns["open"] = _open(line, open_now)
    for point in line:
        for name, value in point.percentiles().items():
            columns.setdefault(name, []).append(value)
    return columns


def _open(line: list[Sum], now: int) -> list[int]:
    """Jobs that had not ended at the end of each step. What came before replays were counted came in unseen,
    so it cannot go below zero."""
    found, left = [], now
    for point in reversed(line):
        found.append(max(0, left))
        came = sum(point.counts.get(name, 0) for name in CAME)
        left -= came - sum(point.counts.get(name, 0) for name in ENDED)
    return found[::-1]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.4g}")
