"""Looks at the rush from outside, as an operator would: the store's counts and the nodes' metrics.

Changes nothing; remembers peaks, and the last look for rates.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from examples.rush.fleet import Fleet
from millpond.job import MICROSECONDS, JobState
from millpond.rules.histogram import percentile
from millpond.store.protocol import Store

SPAN = 3.0  # seconds over which throughput is taken
MINUTE = 60 * MICROSECONDS
COUNT_WAITS_EVERY = 1.0


class QueueLook(NamedTuple):
    """One queue at one moment."""

    waiting: int = 0  # due, and waiting for a worker
    later: int = 0  # waiting for their next attempt
    running: int = 0
    completed: int = 0
    dead: int = 0
    workers: int = 0
    rate: float = 0.0  # completed in a second
    oldest: float | None = None  # how long the first in line has been due
    wait: float | None = None  # the 95th percentile so far


class Look(NamedTuple):
    """Everything at one moment."""

    at: float
    queues: dict[str, QueueLook]
    nodes: tuple[str, ...]

    @property
    def ended(self) -> int:
        """Jobs that will not run again."""
        return sum(queue.completed + queue.dead for queue in self.queues.values())

    @property
    def rate(self) -> float:
        """All queues together."""
        return sum(queue.rate for queue in self.queues.values())


class Watch:
    """Looks, and remembers."""

    def __init__(self, store: Store, fleet: Fleet, queues: Sequence[str]) -> None:
        self.peaks: Counter[str] = Counter()
        self.depths: Counter[str] = Counter()
        self._store = store
        self._fleet = fleet
        self._queues = queues
        self._past: deque[tuple[float, Counter[str]]] = deque()
        self._waits: dict[str, float | None] = {}
        self._waits_due = 0.0
        self._since = store.clock.now() // MINUTE

    def look(self) -> Look:
        """As of now."""
        now = time.monotonic()
        workers = self._fleet.workers()
        self.peaks |= workers
        counted = {item.queue: item for item in self._store.counts().queues}
        states = {queue: counted[queue].states if queue in counted else {} for queue in self._queues}
        done = Counter({queue: found.get(JobState.COMPLETED, 0) for queue, found in states.items()})
        rates = self._rates(now, done)
        if now >= self._waits_due:
            self._waits_due, self._waits = now + COUNT_WAITS_EVERY, self._measure_waits()
        queues = {}
        for queue, found in states.items():
            queues[queue] = QueueLook(
                waiting=found.get(JobState.QUEUED, 0),
                later=found.get(JobState.SCHEDULED, 0),
                running=found.get(JobState.RUNNING, 0),
                completed=done[queue],
                dead=found.get(JobState.DEAD, 0),
                workers=workers[queue],
                rate=rates.get(queue, 0.0),
                oldest=counted[queue].oldest if queue in counted else None,
                wait=self._waits.get(queue),
            )
        self.depths |= Counter({queue: row.waiting for queue, row in queues.items()})
        return Look(now, queues, tuple(node.name for node in self._fleet.alive if node.is_ready))

    def _rates(self, now: float, done: Counter[str]) -> dict[str, float]:
        self._past.append((now, done))
        while len(self._past) > 2 and self._past[1][0] < now - SPAN:
            self._past.popleft()
        before, then = self._past[0]
        passed = now - before
        return {queue: (count - then[queue]) / passed for queue, count in done.items()} if passed else {}

    def _measure_waits(self) -> dict[str, float | None]:
        """From the histograms that the store keeps for each minute."""
        sums: dict[str, Counter[int]] = {queue: Counter() for queue in self._queues}
        for minute in self._store.statistics(self._since, self._store.clock.now() // MINUTE + 1):
            if minute.queue in sums:
                sums[minute.queue].update(minute.wait)
        return {queue: percentile(histogram, 0.95) for queue, histogram in sums.items()}
