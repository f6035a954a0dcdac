"""Counting per minute and queue: how often, how long the wait, how long the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from millpond.job import MICROSECONDS, Instant, Settlement
from millpond.rules.histogram import bucket
from millpond.store.protocol import Minute
from millpond.store.sql.query import Many, Query, Row, Steps

MINUTE = 60 * MICROSECONDS
Increments = Counter[tuple[str, str, int]]  # (queue, what, bucket)


def count(increments: Increments, now: Instant) -> Steps[None]:
    """Add to this minute's numbers."""
    if increments:
        minute = now // MINUTE
        rows = [(queue, minute, what, part, n) for (queue, what, part), n in sorted(increments.items())]
        yield Many("count", rows)


def durations(settled: Iterable[tuple[str, Settlement]]) -> Increments:
    """The waits and runs of attempts that ended, by queue."""
    keys: list[tuple[str, str, int]] = []
    for queue, settlement in settled:
        if settlement.wait is not None:
            keys.append((queue, "wait", bucket(settlement.wait)))
        if settlement.run is not None:
            keys.append((queue, "run", bucket(settlement.run)))
    return Counter(keys)


def statistics(since: int, until: int) -> Steps[list[Minute]]:
    """What happened from one minute up to another."""
    rows = yield Query("statistics", (since, until))
    return minutes_of(rows)


def minutes_of(rows: Iterable[Row]) -> list[Minute]:
    """Rows of (queue, minute, what, bucket, count) as one record a minute."""
    found: dict[tuple[str, int], Minute] = {}
    for queue, minute, what, part, number in rows:
        record = found.setdefault((queue, minute), Minute(queue, minute, {}, {}, {}))
        if what in ("wait", "run"):
            histogram: dict[int, int] = getattr(record, what)
            histogram[part] = int(number)
        else:
            record.counts[what] = int(number)
    return [found[key] for key in sorted(found)]
