"""The workload that an app has had: its store's statistics of each minute, turned into jobs.

Reads, and never writes. Arrivals are exact by the minute; run times are drawn from the histogram of them all.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable

from millpond.errors import OptionError
from millpond.simulate import arrivals
from millpond.simulate.records import Workload
from millpond.simulate.run_times import Service
from millpond.store.protocol import Minute, Store

MINUTE_IN_MICROSECONDS = 60_000_000


def read(
    store: Store, queue: str | None, minutes: int, service: Service | None = None, seed: int = 1
) -> Workload:
    """The last so many minutes of a queue, or of all of them."""
    until = store.clock.now() // MINUTE_IN_MICROSECONDS + 1
    found = [row for row in store.statistics(until - minutes, until) if queue in (None, row.queue)]
    return workload(found, queue or "any queue", service, seed)


def workload(rows: Iterable[Minute], name: str, service: Service | None = None, seed: int = 1) -> Workload:
    """Jobs that would have left these statistics."""
    chance = random.Random(seed)
    by_minute: dict[int, int] = {}
    runs: dict[int, int] = {}
    for row in rows:
        by_minute[row.minute] = by_minute.get(row.minute, 0) + row.counts.get("enqueued", 0)
        for bucket, count in row.run.items():
            runs[bucket] = runs.get(bucket, 0) + count
    if not sum(by_minute.values()):
        raise OptionError(
            f"the store has no history of {name} in that time: it is written as jobs are enqueued and run"
        )
    first, last = min(by_minute), max(by_minute)
    moments = arrivals.by_counts([by_minute.get(m, 0) for m in range(first, last + 1)], chance, 60.0)
    if service is None and not runs:
        raise OptionError(f"no job of {name} has run yet: say how long they take, such as --service exp:3s")
    services = service.draw(len(moments), chance) if service else _drawn(runs, len(moments), chance)
    return Workload(name, moments, services)


def _drawn(runs: dict[int, int], count: int, chance: random.Random) -> array[float]:
    """Run times from a histogram whose bucket b holds [2**(b/2), 2**((b+1)/2)) microseconds."""
    buckets = list(runs)
    chosen = chance.choices(buckets, weights=[runs[bucket] for bucket in buckets], k=count)
    return array("d", (2 ** ((bucket + chance.random()) / 2) / 1e6 for bucket in chosen))
