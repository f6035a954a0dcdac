"""What a node knows of its pools' work, as the scaling policies want to be told.

Counts in the store what could be claimed, never more than a small part of the time; what jobs arrive and how
long they take it learns from its own claims and settlements. Jobs that no worker could run are no demand:
those of a paused queue, beyond a rate, parked, blocked or not due.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from millpond.errors import StoreError
from millpond.job import MICROSECONDS, JobState
from millpond.node.scaling.fleet import PoolShare, servers_of, shares_of
from millpond.rules.scaling.estimates import ANY, Estimates
from millpond.rules.scaling.policies import EVERY
from millpond.rules.scaling.records import Limits, Observation

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState
    from millpond.store.protocol import Counts, QueueCounts

SHARE = 10  # counting takes at most this part of the time,
FRESH = 3.5  # but is done at least so often (seconds),
SLOW = 1.0  # unless one count takes this long
NAMED = 1000  # waiting jobs of a pool that are told apart by task; of more, only the number counts
SOON = 0.05  # seconds between two counts when work has come and nobody is idle
HELD_BACK, SHARED_HELD_BACK = 30.0, 3.0  # seconds that it is known; less where other nodes claim, too
START_COST = 0.02  # seconds, until a worker has been started


class Counting:
    """Counts what stands in line, for the whole node. Used by one thread, read by all."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self.counts: Counts | None = None
        self.lines: dict[str, QueueCounts] = {}  # the same by queue
        self.counted_at = -math.inf
        self.servers: Counter[str] = Counter()  # nodes that serve each queue
        self.shares: list[PoolShare] = []  # the pools of all nodes
        self.trouble = ""
        self.claimed: dict[str, int] = {}  # what each pool had claimed in all when it was counted
        self._took = 0.0

    def look(self, *, soon: bool = False) -> bool:
        """Count again if it is time; True if there are new numbers."""
        now = time.monotonic()
        gap = SOON if soon else 0.9 * EVERY  # a round that comes a moment early must not skip one
        rest = SHARE * self._took
        if self._took < SLOW:
            rest = min(rest, FRESH)  # older numbers would not be acted on
        if now - self.counted_at < max(gap, rest):
            return False
        claimed = {name: pool.claimed for name, pool in self._state.pools.items()}
        try:
            counts = self._state.store.counts(ready_only=True)
        except StoreError as error:
            self.trouble = str(error)
            return False
        self._took = time.monotonic() - now
        self.take(counts)
        self.counted_at, self.trouble = now, ""
        self.claimed = claimed
        self.servers, self.shares = servers_of(counts.nodes), shares_of(counts.nodes)
        return True

    def take(self, counts: Counts) -> None:
        """What the store has answered."""
        self.counts = counts
        self.lines = {line.queue: line for line in counts.queues}


class HeldBack(NamedTuple):
    """Jobs of a queue that are in line for want of memory, cores or tokens."""

    number: int
    kept: int  # jobs that the pool had kept until then: they are of these
    at: float  # of the count


class Counted(NamedTuple):
    """A queue in which some jobs need something, as it was counted."""

    ready: int
    claimed: int  # by the pool, until then
    at: float


class PoolWatch:
    """One pool, watched: what it is observed to have and to do."""

    def __init__(self, pool: QueuePool, state: NodeState) -> None:
        self.pool = pool
        self._state = state
        self.poison: list[tuple[JobTask, float]] = []  # jobs that take absurdly long, and since when they run
        self.estimates = Estimates()
        self._in_store = 0  # jobs of ours in the store's line, at the last count
        self._held_back: dict[str, HeldBack] = {}  # by queue
        self._lines: dict[str, Counted] = {}  # the last count of those queues,
        self._compared_at = -math.inf  # and when it was

    # --- learning -------------------------------------------------------------------------------------
    def learn(self, counting: Counting, now: float) -> None:
        """Take in what arrived and ended since the last count."""
        pool = self.pool
        claimed, pool.arrived = pool.arrived, Counter()
        runs = list(pool.ran)
        pool.ran.clear()
        before, self._in_store = self._in_store, self._waiting_in_store(counting)[0]
        arrived = _arrivals(claimed, self._in_store - before)
        self.estimates = self.estimates.after(now, arrived, runs)

    # --- observing ------------------------------------------------------------------------------------
    def observe(self, counting: Counting, now: float, trouble: str = "") -> Observation:
        """The pool at this moment."""
        pool, budget = self.pool, self._state.budget
        begun = pool.begun()
        running = [(task.job.task, max(0.0, now - since)) for task, since in begun]
        number, oldest = self._still_in_store(counting, now)
        # Those that wait for memory, cores or tokens do not wait for workers
        set_aside = {task.job.id for task, _ in begun}.union(list(budget.waiting))
        here, oldest_here = self._waiting_here(set_aside)
        here[ANY] += number
        loads = self.estimates.loads(here, running)
        self.poison = [begun[index] for index in loads.poison]
        busy, idle, starting = pool.crew()
        cap, reason = budget.cap(pool) or (None, "")
        return Observation(
            limits=self.limits(),
            tasks=loads.tasks,
            oldest=max(oldest, oldest_here),
            busy=busy,
            idle=idle,
            starting=starting,
            remaining=loads.remaining,
            poison=len(loads.poison),
            cap=cap,
            cap_reason=reason,
            measured_at=counting.counted_at,
            trouble=trouble or counting.trouble,
            arrived=pool.claimed + number,
        )

    def limits(self) -> Limits:
        """What the pool may be."""
        settings, cost = self.pool.settings, self.pool.start_cost
        return Limits(
            least=settings.least,
            most=settings.most,
            concurrency=settings.concurrency,
            warm=settings.warm,
            start_cost=START_COST if cost is None else cost,
            idle_timeout=settings.idle_timeout,
        )

    def _waiting_here(self, set_aside: set[str]) -> tuple[Counter[str], float]:
        """Jobs that were claimed and have not begun, by task; and how long the first of them has been due."""
        waiting: list[JobTask] = [
            task for task in list(self.pool.held.values()) if task.job.id not in set_aside
        ]
        if not waiting:
            return Counter(), 0.0
        oldest = max(0.0, (self._state.store_now() - waiting[0].job.run_at) / MICROSECONDS)
        if len(waiting) > NAMED:
            return Counter({ANY: len(waiting)}), oldest
        return Counter(task.job.task for task in waiting), oldest

    def _still_in_store(self, counting: Counting, now: float) -> tuple[int, float]:
        """The same at this moment: who was claimed since the count is here or runs by now, and who is counted
        twice brings in workers that find nothing to do."""
        number, oldest = self._waiting_in_store(counting)
        number -= max(0, self.pool.claimed - counting.claimed.get(self.pool.settings.name, 0))
        return (number, oldest + max(0.0, now - counting.counted_at)) if number > 0 else (0, 0.0)

    def _waiting_in_store(self, counting: Counting) -> tuple[int, float]:
        """Our share of what stands in line and could be claimed, and how long the first has been due."""
        number, oldest = 0, 0.0
        self._compare(counting)
        for name, short_at in self.pool.short_at.items():
            queue = counting.lines.get(name)
            if queue is None:
                continue
            held_back = self._held_back_in(counting, queue)
            ready = _runnable(queue) - held_back
            if queue.paused or ready <= 0 or short_at >= counting.counted_at:
                continue  # the last: a later claim has left nothing
            number += -(-ready // max(1, counting.servers[queue.queue]))
            if queue.rate is None:  # behind a rate no worker helps
                age = queue.oldest or 0.0
                oldest = max(oldest, min(age, counting.counted_at - short_at) if held_back else age)
        return number, oldest

    def _held_back_in(self, counting: Counting, queue: QueueCounts) -> int:
        """How many jobs of the queue wait for memory, cores or tokens, and not for workers.

        The store counts jobs, not tasks. But a claim leaves those out that have no room, and takes all others
        up to its limit: after one that took less than it might, every job in line that was there at the count
        before has no room. Counted as demand, each of them would bring in a worker that finds nothing to do.
        `test_jobs_that_wait_for_memory_bring_in_no_workers` has such a pool.
        """
        self._see_held_back(queue.queue)
        known = self._held_back.get(queue.queue)
        lasts = HELD_BACK if counting.servers[queue.queue] <= 1 else SHARED_HELD_BACK
        if known is None or queue.queue not in self._lines or counting.counted_at - known.at > lasts:
            return 0
        return max(0, known.number - (self.pool.ever_kept - known.kept))

    def _see_held_back(self, queue: str) -> None:
        """What the first claim after the last count has shown, if it left nothing that it might take."""
        pool, known = self.pool, self._held_back.get(queue)
        short, line = pool.first_short.get(queue), self._lines.get(queue)
        if short is not None and line is not None and (known is None or known.at < line.at):
            left = max(0, line.ready - max(0, short - line.claimed))
            self._held_back[queue] = HeldBack(left, pool.ever_kept, line.at)

    def _compare(self, counting: Counting) -> None:
        """Remember a new count, once what has followed the one before it is known."""
        if self._compared_at == counting.counted_at:
            return
        for queue in self._lines:
            self._see_held_back(queue)
        self.pool.first_short.clear()
        self._compared_at, claimed = counting.counted_at, counting.claimed.get(self.pool.settings.name, 0)
        lines = {name: counting.lines.get(name) for name in self.pool.short_at}
        self._lines = {
            name: Counted(line.states.get(JobState.QUEUED, 0), claimed, counting.counted_at)
            for name, line in lines.items()
            if line is not None and line.rate is None and self._state.budget.leaves_out(name)
        }


def _runnable(queue: QueueCounts) -> int:
    """What may begin within a second."""
    ready = queue.states.get(JobState.QUEUED, 0)
    return ready if queue.rate is None else min(ready, math.ceil(queue.rate))


def _arrivals(claimed: Counter[str], growth: int) -> dict[str, float]:
    """What came in: what was claimed, and by how much the line has grown meanwhile, or shrunk."""
    total = sum(claimed.values())
    if growth >= 0:
        return {**claimed, ANY: growth} if growth else dict(claimed)
    share = max(0.0, 1.0 + growth / total) if total else 0.0
    return {task: number * share for task, number in claimed.items()}
