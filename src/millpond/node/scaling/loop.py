"""Keeps each pool at the right size: observes, asks its policy, starts workers, tells why.

One thread: a round over all pools each second (every other one while there is nothing to do), and one over
those that are short of hands as soon as work arrives. It never stops a worker: those who stand idle leave by
themselves. Whatever fails, the next round follows, and until then the pools stay as they are.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from millpond.errors import StoreError
from millpond.job import JobState
from millpond.node.observability.events import JobDrags, NodeEvents
from millpond.node.scaling.decision_log import Telling, share_of
from millpond.node.scaling.fleet import PoolShare, told
from millpond.node.scaling.observe import Counting, PoolWatch
from millpond.node.scaling.overrides import changes, read_bounds
from millpond.node.scaling.saved_estimates import keep, keep_needs, recall, recall_needs
from millpond.rules.scaling.fair_share import caps, recapped
from millpond.rules.scaling.policies import EVERY, desired, policy_for, urgency
from millpond.rules.scaling.records import Decision, Memory, Observation
from millpond.rules.scaling.worker_shares import Claimant

if TYPE_CHECKING:
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState
    from millpond.store.protocol import QueueCounts

logger = logging.getLogger("millpond")
Answer = tuple[Decision, Memory]
BREATH = 0.05  # seconds between two rounds at the least, however much comes
IDLE_EVERY = 2 * EVERY  # between two rounds of a node that has nothing to do
READ_BOUNDS = 2.0  # seconds between two looks at the bounds that somebody may have set,
IDLE_READ_BOUNDS = 4.0  # and while there is nothing to do
READ_ALL_BOUNDS = 60.0
SHARED = "the node's max_workers"
SAVE = 60.0  # seconds between two times that the estimates are written down


class _Sized:
    """A pool with its policy and what that remembers."""

    def __init__(self, pool: QueuePool, state: NodeState) -> None:
        self.pool = pool
        self.name = pool.settings.name
        self.watch = PoolWatch(pool, state)
        self.policy = pool.settings.policy or policy_for(pool.settings.max_wait)
        self.own = (pool.settings.least, pool.settings.most)
        self.memory = Memory()
        self.decision: Decision | None = None
        self.decided_at = 0.0
        self.desired = 0  # workers that would be wanted if there were no bounds
        self._desired_at = -math.inf  # the count that this is of
        self.saved = 0  # jobs done when the estimates were last written down
        self.dragging: set[str] = set()

    @property
    def eager_at(self) -> float:
        """When another decision is worth while, if work comes and nobody is idle."""
        return self.decided_at + (0.0 if self.decision is None else self.decision.eager)

    @property
    def again_at(self) -> float:
        """When another one is worth while although no work comes."""
        again = None if self.decision is None else self.decision.again
        return math.inf if again is None else self.decided_at + again

    def is_short(self) -> bool:
        """Is every place taken, and may there be more?"""
        pool, workers = self.pool, sum(self.pool.crew())
        taken = len(pool.held) - pool.kept + pool.promised
        return workers < pool.settings.most and taken >= workers * pool.settings.concurrency

    def wish(self, workers: int | None, counted_at: float) -> None:
        """What is told to those who start machines; less only after another count. Where the store is away
        and nobody has noticed yet, jobs that end would take machines away."""
        if workers is not None and (workers > self.desired or counted_at > self._desired_at):
            self.desired, self._desired_at = workers, counted_at

    def is_settled(self) -> bool:
        """Does nobody work, and are there as many as there should be?"""
        pool, workers = self.pool, sum(self.pool.crew())
        decision = self.decision
        return not pool.held and decision is not None and workers == decision.keep == decision.wanted


class Scaling:
    """The thread that decides about sizes."""

    def __init__(
        self, state: NodeState, events: NodeEvents, grown: Callable[[], None], capacity: int | None = None
    ) -> None:
        self._state = state
        self._events = events
        self._grown = grown  # there are more hands: claim for them
        self._capacity = capacity  # workers of all pools together
        self.counting = Counting(state)
        self._telling = Telling(state, events)
        self._pools: dict[str, _Sized] = {}
        self._bell = threading.Event()
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._bounds_at = self._all_bounds_at = 0.0
        self._bounds_seen = -1
        self._again_at = math.inf  # when those that were short of hands are looked at again
        self._learned_at = -math.inf  # the count that was learned from
        self._save_at = time.monotonic() + SAVE

    # --- the thread ------------------------------------------------------------------------------------
    def run(self) -> None:
        """Until the node stops."""
        self._pools = {name: _Sized(pool, self._state) for name, pool in self._state.pools.items()}
        self._safely(self._recall)
        due = time.monotonic()
        while not self._stop.is_set():
            is_pressed = self._bell.wait(max(0.0, min(due, self._again_at) - time.monotonic()))
            self._bell.clear()
            now = time.monotonic()
            if now >= due:
                self._safely(self._round)
                due = now + (IDLE_EVERY if self._is_idle() else EVERY)
            else:
                due = min(due, now + EVERY)
                self._safely(partial(self._hurry, is_pressed))
            if is_pressed:
                self._stop.wait(BREATH)
        self._safely(self._save)
        self._ended.set()

    def stop(self, timeout: float) -> None:
        """No more rounds; waits so long for what was learned to be written down."""
        self._stop.set()
        self._bell.set()
        if self._pools:
            self._ended.wait(timeout)

    def press(self) -> None:
        """Work has come, or there is more than was claimed. Called by any thread, often."""
        if not self._bell.is_set():
            self._bell.set()

    def _safely(self, step: Callable[[], None]) -> None:
        try:
            step()
        except StoreError as error:
            logger.debug("Scaling could not reach the store: %s", error)
        except Exception:
            logger.exception(
                "A round of scaling failed; the pools stay as they are, and the next one follows"
            )

    def _round(self) -> None:
        now = time.monotonic()
        self.counting.look()
        is_new, self._learned_at = self.counting.counted_at > self._learned_at, self.counting.counted_at
        for sized in self._pools.values():
            if is_new:  # also by a round between two: where work never ceases there is always one
                sized.watch.learn(self.counting, now)
        self._decide(self._pools.values())
        self._again_at = _next_look([sized for sized in self._pools.values() if sized.is_short()], now)
        self._telling.flush()
        self._state.identity.facts["pools"] = told(self._shares())
        if now >= self._bounds_at:
            self._bounds_at = now + (IDLE_READ_BOUNDS if self._is_idle() else READ_BOUNDS) - BREATH
            self._read_bounds(now)
        if now >= self._save_at:
            self._save_at = now + SAVE
            self._save()

    def _is_idle(self) -> bool:
        """Is there nothing to do, and nobody to send away or bring in?"""
        counts = self.counting.counts
        if counts is None or self.counting.trouble or any(_ready(queue) for queue in counts.queues):
            return False
        return all(sized.is_settled() for sized in self._pools.values())

    def _hurry(self, is_pressed: bool) -> None:
        """Work has come, or is still in line: those whose workers are all busy may need more at once."""
        now = time.monotonic()
        short = [sized for sized in self._pools.values() if sized.is_short()]
        due = [sized for sized in short if now >= sized.eager_at]
        if due:
            if is_pressed:  # otherwise the line is only older than it was
                self.counting.look(soon=True)
            self._decide(due)
        self._again_at = _next_look(short, now, [sized for sized in short if sized not in due])

    # --- deciding --------------------------------------------------------------------------------------
    def _decide(self, pools: Iterable[_Sized]) -> None:
        phase = self._state.phase
        if phase not in ("running", "held"):
            return
        now = time.monotonic()
        trouble = "the node is held" if phase == "held" else ""
        found = [(sized, sized.watch.observe(self.counting, now, trouble)) for sized in pools]
        for sized, (decision, memory) in self._answers(found, now):
            sized.memory = memory
            sized.wish(desired(decision), self.counting.counted_at)
            self._apply(sized, decision, now)
            self._tell_who_drags(sized)

    def _answers(self, found: list[tuple[_Sized, Observation]], now: float) -> list[tuple[_Sized, Answer]]:
        """What each policy decides; where the node may not have as many workers as its pools want, each gets
        its fair part."""
        answers = [(sized, _answer(sized, seen, now)) for sized, seen in found]
        if self._capacity is None:
            return answers
        wishes = {name: sized.decision for name, sized in self._pools.items()}
        wishes.update((sized.name, decision) for sized, (decision, _) in answers)
        claimants = [
            Claimant(name, settings.least, wish.wanted, settings.weight, urgency(wish))
            for name, wish in wishes.items()
            if wish is not None and (settings := self._pools[name].pool.settings)
        ]
        alive = {name: sum(sized.pool.crew()) for name, sized in self._pools.items()}
        parts = caps(self._capacity, claimants, alive)
        return [
            (
                sized,
                recapped(answer, seen.limits, parts[sized.name], SHARED) if sized.name in parts else answer,
            )
            for (sized, answer), (_, seen) in zip(answers, found, strict=True)
        ]

    def _apply(self, sized: _Sized, decision: Decision, now: float) -> None:
        settings = sized.pool.settings
        sized.decision, sized.decided_at = decision, now
        if not settings.shadow:
            sized.pool.want(decision, self._grown if decision.start else None)
        self._telling.tell(settings, decision, now)

    def _tell_who_drags(self, sized: _Sized) -> None:
        """A job that takes absurdly long keeps its worker; somebody should know."""
        found = {task.job.id: (task, since) for task, since in sized.watch.poison}
        for job_id in found.keys() - sized.dragging:
            task, since = found[job_id]
            ran_for = time.monotonic() - since
            self._events.publish(JobDrags(sized.pool.settings.name, job_id, task.job.task, ran_for))
        sized.dragging = set(found)

    # --- with others -----------------------------------------------------------------------------------
    def decision_of(self, pool: str) -> Decision | None:
        """The last one about a pool."""
        sized = self._pools.get(pool)
        return None if sized is None else sized.decision

    def fleet(self) -> tuple[PoolShare, ...]:
        """The pools of all nodes: our own as they are, the others' as they last told."""
        own = self._state.identity
        others = [one for one in self.counting.shares if one.node != own.id]
        return (*(replace(one, node=own.id, host=own.host) for one in self._shares()), *others)

    def _shares(self) -> list[PoolShare]:
        return [
            share_of(sized.pool.settings, sized.decision, sum(sized.pool.crew()), sized.desired)
            for sized in list(self._pools.values())
        ]

    def _read_bounds(self, now: float) -> None:
        """Read what was set, if anything has been; and all of it from time to time, in case whoever set it
        died before he could say so."""
        seen = changes(self._state.store)
        if seen == self._bounds_seen and now < self._all_bounds_at:
            return
        self._all_bounds_at = now + READ_ALL_BOUNDS
        for name, sized in self._pools.items():
            bounds = read_bounds(self._state.store, name) or sized.own
            settings = sized.pool.settings
            if (settings.least, settings.most) != tuple(bounds):
                logger.info("Pool %s may have %d to %d workers from now on", name, *bounds)
                sized.pool.resize(*bounds)
                self._decide([sized])
        self._bounds_seen = seen

    # --- over a restart --------------------------------------------------------------------------------
    def recall_needs(self) -> None:
        """What tasks were seen to need; called before the first job is claimed."""
        self._safely(lambda: self._state.budget.remember(recall_needs(self._state.store)))

    def _recall(self) -> None:
        for name, sized in self._pools.items():
            sized.watch.estimates = recall(self._state.store, name, sized.pool.settings.queues)

    def _save(self) -> None:
        has_run = False
        for name, sized in self._pools.items():
            if sized.pool.done != sized.saved:
                sized.saved = sized.pool.done
                keep(self._state.store, name, sized.watch.estimates)
                has_run = True
        known = self._state.budget.needs.known() if has_run else {}
        if known:
            keep_needs(self._state.store, known)


def _answer(sized: _Sized, seen: Observation, now: float) -> Answer:
    """The answer of a pool's policy. What one of the app's own does not tell of the pool is added."""
    decision, memory = sized.policy.decide(seen, sized.memory, now)
    if decision.queue_depth is None or decision.busy_workers is None:
        decision = replace(decision, queue_depth=seen.waiting, busy_workers=seen.busy)
    return decision, memory


def _next_look(short: Iterable[_Sized], now: float, early: Iterable[_Sized] = ()) -> float:
    """When those who are short of hands may need more although nothing happens, since their line grows older;
    and when those may for whom work has come too early after their last decision."""
    moments = [sized.again_at for sized in short] + [sized.eager_at for sized in early]
    return max(now + BREATH, min(moments, default=math.inf))


def _ready(queue: QueueCounts) -> int:
    return queue.states.get(JobState.QUEUED, 0)
