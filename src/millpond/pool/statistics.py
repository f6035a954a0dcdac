"""What a pool can tell about itself: immutable records, and the sums they are made from.

Workers count in their own pages at no cost to the parent; a dead worker's counts are folded in here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.shared_page import Page, bucket_bounds
from millpond.rules.pool.restart import Starts


class Durations(NamedTuple):
    """A distribution of durations, in seconds; percentiles are good to about ten percent."""

    mean: float
    total: float
    p50: float
    p95: float
    p99: float


class WorkerRow(NamedTuple):
    """One worker at the moment of asking."""

    pid: int | None  # None while it starts
    state: str  # starting, idle, busy, draining, dead
    task: str | None
    running_for: float | None
    rss: int
    tasks_done: int
    age: float
    id: int = 0  # its number in the pool: never given again, unlike a pid
    started_at: float = 0.0  # seconds since 1970, like every instant here
    task_started_at: float | None = None
    completed: int = 0  # of the tasks done, those that returned,
    failed: int = 0  # and those that raised


def worker_row(row: WorkerRow, identity: int, failed: int) -> WorkerRow:
    """The row with its worker's number, instants beside its ages, and its tasks by how they ended."""
    now = time.time()
    return row._replace(
        id=identity,
        started_at=now - row.age,
        task_started_at=None if row.running_for is None else now - row.running_for,
        completed=max(0, row.tasks_done - failed),
        failed=failed,
    )


class PoolStatistics(NamedTuple):
    """A pool at the moment of asking; counts are since its start."""

    size: int
    busy: int
    idle: int
    starting: int
    draining: int
    queued: int
    submitted: int
    completed: int
    errored: int
    crashed: int
    timed_out: int
    expired: int
    cancelled: int
    killed: int
    recycled: int
    wait: Durations
    run: Durations
    workers: tuple[WorkerRow, ...]
    stalled: int = 0


class Health(NamedTuple):
    """ok, degraded or failed, with a sentence for each reason."""

    status: str
    reasons: tuple[str, ...] = ()


class Tally:
    """Running sums. Changed under the engine's lock."""

    def __init__(self) -> None:
        self.submitted = self.crashed = self.timed_out = self.expired = self.cancelled = self.killed = 0
        self.recycled = self.stalled = self.done = self.errored = self.sum_wait = self.sum_run = 0
        self.waits = [0] * layout.HISTOGRAM
        self.runs = [0] * layout.HISTOGRAM

    def fold(self, page: Page, answered: int) -> None:
        """Add a worker's counts; `answered` is how many answers have come from it."""
        words = page.words
        self.done += answered
        self.errored += words[layout.ERRORS]
        self.sum_wait += words[layout.SUM_WAIT]
        self.sum_run += words[layout.SUM_RUN]
        for index in range(layout.HISTOGRAM):
            self.waits[index] += words[layout.WAITS + index]
            self.runs[index] += words[layout.RUNS + index]

    def add(self, wait: int, run: int, *, failed: bool) -> None:
        """Count one task that ran in a thread."""
        self.done += 1
        self.errored += failed
        self.sum_wait += wait
        self.sum_run += run
        self.waits[layout.bucket(max(wait, 0))] += 1
        self.runs[layout.bucket(max(run, 0))] += 1

    def copy(self) -> Tally:
        """A snapshot to add live pages to."""
        other = Tally()
        vars(other).update(vars(self), waits=list(self.waits), runs=list(self.runs))
        return other

    def wait(self) -> Durations:
        """How long tasks waited before they began."""
        return summary(self.waits, self.sum_wait / 1e9, self.done)

    def run(self) -> Durations:
        """How long tasks ran."""
        return summary(self.runs, self.sum_run / 1e9, self.done)

    def statistics(
        self, rows: tuple[WorkerRow, ...], states: Sequence[str], queued: int, unseen: int = 0
    ) -> PoolStatistics:
        """The public record; `unseen` tasks are submitted but not counted yet."""
        return PoolStatistics(
            size=len(rows) - states.count("dead"),
            busy=states.count("busy"),
            idle=states.count("idle"),
            starting=states.count("starting"),
            draining=states.count("draining"),
            queued=queued,
            submitted=self.submitted + unseen,
            completed=self.done - self.errored,
            errored=self.errored,
            crashed=self.crashed,
            timed_out=self.timed_out,
            expired=self.expired,
            cancelled=self.cancelled,
            killed=self.killed,
            recycled=self.recycled,
            wait=self.wait(),
            run=self.run(),
            workers=rows,
            stalled=self.stalled,
        )


BACKED_UP = 5  # a queue this many times the workers is worth a warning


def health(
    *,
    closed: bool,
    starts: Starts,
    queued: int,
    slots: int,
    failure: str = "",
    troubles: Sequence[str] = (),
) -> Health:
    """ok, degraded or failed, with a sentence for each reason; `failure` is why it closed by itself."""
    if closed:
        return Health("failed", (failure or "the pool has been shut down",))
    reasons: list[str] = []
    if starts.failures:
        reasons.append(f"{starts.failures} worker starts in a row have failed: {starts.cause.strip()}")
    reasons += troubles
    status = "degraded" if reasons else "ok"
    if queued > BACKED_UP * slots:
        reasons.append(f"the queue backs up: {queued} tasks wait for {slots} slots")
    return Health(status, tuple(reasons))


def summary(histogram: Sequence[int], total: float, count: int) -> Durations:
    """Mean and percentiles of a histogram; within a bucket the values are taken as evenly spread."""
    mean = total / count if count else 0.0
    return Durations(mean, total, *(percentile(histogram, share) for share in (0.5, 0.95, 0.99)))


def percentile(histogram: Sequence[int], share: float) -> float:
    """The duration below which `share` of the counted ones lie."""
    wanted = share * sum(histogram)
    if not wanted:
        return 0.0
    seen = 0
    for index, count in enumerate(histogram):
        if count and seen + count >= wanted:
            low, high = bucket_bounds(index)
            return low + (high - low) * (wanted - seen) / count
        seen += count
    return 0.0
