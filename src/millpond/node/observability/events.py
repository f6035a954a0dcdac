"""What happens on a node, as typed events, and the thread that hands them to subscribers.

Publishing never blocks, may be done from any thread and from a signal handler, and costs one look-up when
nobody listens. A subscriber that raises or hangs disturbs neither the node nor its work: events beyond the
bound are counted and dropped. No event carries a payload or a result.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import NamedTuple

from millpond import events as pool_events
from millpond.job import (
    Crashed,
    Instant,
    Job,
    JobState,
    Lost,
    Outcome,
    OutOfMemory,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
    TimedOut,
    Unknown,
    Unread,
    Unsatisfiable,
)
from millpond.orchestrator.events import BreakerClosed as BreakerClosed  # noqa: PLC0414 - public here too
from millpond.orchestrator.events import BreakerOpened as BreakerOpened  # noqa: PLC0414
from millpond.orchestrator.events import ClockCorrected as ClockCorrected  # noqa: PLC0414
from millpond.orchestrator.events import TickLate as TickLate  # noqa: PLC0414
from millpond.orchestrator.events import TickMissed as TickMissed  # noqa: PLC0414
from millpond.orchestrator.events import TriggersDropped as TriggersDropped  # noqa: PLC0414

logger = logging.getLogger("millpond.node")
MOST = 10_000  # events that wait for slow subscribers


# --- the node and its store ------------------------------------------------------------------------------
class NodeStarted(NamedTuple):
    """The node is up and claims jobs."""

    node: str
    store: str  # its address without password
    durability: str
    pools: tuple[str, ...]


class NodeStopped(NamedTuple):
    """The node has settled what it could and is gone."""

    node: str
    reason: str
    released: int  # jobs given back unstarted
    killed: int  # jobs that were still running when their time was over


class NodeRescued(NamedTuple):
    """The jobs of a node that died were revived by this one."""

    node: str  # the dead one
    jobs: int


class StoreLost(NamedTuple):
    """The store cannot be reached; running jobs go on and their outcomes wait."""

    cause: str


class StoreFilling(NamedTuple):
    """A store that lives in memory has used half of what it may, or 85 % of it."""

    share: float
    used: int
    limit: int


class CleanupHeldBack(NamedTuple):
    """An old transaction keeps PostgreSQL from removing dead rows: for five minutes, or for an hour."""

    kind: str  # transaction, prepared transaction or replication slot
    name: str
    age: float  # seconds
    cure: str


class StoreBack(NamedTuple):
    """The store answers again."""

    away_for: float


# --- pools and workers -----------------------------------------------------------------------------------
class QueueBackingUp(NamedTuple):
    """More jobs are in line for a pool than it will soon get to."""

    pool: str
    waiting: int
    cause: str


class QueueCaughtUp(NamedTuple):
    """The line before a pool is short again."""

    pool: str
    lasted: float


class WaitTooLong(NamedTuple):
    """The first job in line has waited longer than the pool's `max_wait`."""

    pool: str
    waited: float
    max_wait: float


class WaitInBounds(NamedTuple):
    """Jobs of the pool begin in time again."""

    pool: str
    lasted: float


class ScaledUp(NamedTuple):
    """A pool gets more workers."""

    pool: str
    before: int
    after: int
    sentence: str
    repeated: bool = False  # it had as many within the last minute: no line in the log


class ScaledDown(NamedTuple):
    """Workers of a pool have left because there was nothing for them to do, or because it has a new cap."""

    pool: str
    before: int
    after: int
    sentence: str
    repeated: bool = False


class PoolFlaps(NamedTuple):
    """A pool went to and fro between the same sizes for a minute; told instead of each of these changes."""

    pool: str
    low: int
    high: int
    changes: int
    size: int  # now


class JobDrags(NamedTuple):
    """A job has been running many times longer than its like; it keeps its worker."""

    pool: str
    job: str
    task: str
    running_for: float


class PoolUnhealthy(NamedTuple):
    """A pool is degraded or has failed; the others are not affected."""

    pool: str
    cause: str


class PoolHealthy(NamedTuple):
    """A pool works again."""

    pool: str
    lasted: float


class WorkerUp(NamedTuple):
    """A worker is ready for jobs."""

    pool: str
    worker: int


class WorkerGone(NamedTuple):
    """A worker ended: idle, resize, jobs, memory, age, timeout, killed, stalled, start, stray, changed,
    shutdown or died."""

    pool: str
    worker: int
    reason: str
    exitcode: int | None
    signal: int | None


class WorkerCrashed(NamedTuple):
    """A worker died while it ran a job."""

    pool: str
    worker: int
    task: str
    cause: str


class WorkerStartFailed(NamedTuple):
    """A worker could not start; the next try comes after `retry_in` seconds."""

    pool: str
    cause: str
    failures: int
    retry_in: float


# --- jobs ------------------------------------------------------------------------------------------------
class JobCompleted(NamedTuple):
    """A job returned and its result is stored."""

    job: str
    task: str
    queue: str
    attempt: int
    worker: int | None
    wait: float | None
    run: float | None


class JobRetried(NamedTuple):
    """An attempt failed, or a job asked for more time, and it will run again."""

    job: str
    task: str
    queue: str
    attempt: int
    worker: int | None
    cause: str  # raised, timed out, crashed, lost or snoozed
    error: str | None
    message: str | None
    retry_at: Instant


class JobDied(NamedTuple):
    """A job is a dead letter: it will not run again unless replayed."""

    job: str
    task: str
    queue: str
    attempt: int
    worker: int | None
    reason: str
    error: str | None
    message: str | None


class JobStopped(NamedTuple):
    """A job was cancelled."""

    job: str
    task: str
    queue: str
    attempt: int
    worker: int | None
    reason: str


NodeEvent = (
    NodeStarted
    | NodeStopped
    | NodeRescued
    | StoreFilling
    | CleanupHeldBack
    | StoreLost
    | StoreBack
    | QueueBackingUp
    | QueueCaughtUp
    | WaitTooLong
    | WaitInBounds
    | ScaledUp
    | ScaledDown
    | PoolFlaps
    | JobDrags
    | PoolUnhealthy
    | PoolHealthy
    | WorkerUp
    | WorkerGone
    | WorkerCrashed
    | WorkerStartFailed
    | JobCompleted
    | JobRetried
    | JobDied
    | JobStopped
    | BreakerOpened
    | BreakerClosed
    | TickMissed
    | TickLate
    | ClockCorrected
    | TriggersDropped
)
Subscriber = Callable[[NodeEvent], object]

_CAUSES: dict[type, str] = {
    Raised: "raised",
    TimedOut: "timed out",
    Crashed: "crashed",
    OutOfMemory: "out of memory",
    Lost: "lost",
    Snoozed: "snoozed",
}


# --- where events come from ------------------------------------------------------------------------------
def of_settlement(
    job: Job, outcome: Outcome, settlement: Settlement, worker: int | None = None
) -> NodeEvent | None:
    """The event of a settled attempt; None when a job was given back unstarted."""
    if isinstance(outcome, Released):
        return None
    state, reason = settlement.transition.state, settlement.transition.reason
    who = (job.id, job.task, job.queue, job.attempt + 1, worker)
    if state is JobState.COMPLETED:
        return JobCompleted(*who, settlement.wait, settlement.run)
    if state is JobState.CANCELLED:
        return JobStopped(*who, reason or "cancelled")
    error, message = _told(outcome)
    if state is JobState.DEAD:
        return JobDied(*who, reason or "error", error, message)
    cause = _CAUSES.get(type(outcome), "raised")
    return JobRetried(*who, cause, error, message, settlement.transition.run_at)


def _told(outcome: Outcome) -> tuple[str | None, str | None]:
    """What an attempt says about its end: an exception's class and message."""
    match outcome:
        case Raised() | TimedOut() | Crashed() | OutOfMemory() | Unsatisfiable() | Unread() | Unknown():
            return outcome.failure.type, outcome.failure.message
        case Returned():
            return None, outcome.refused
        case Snoozed():
            return None, f"for {outcome.delay:g} s"
    return None, None


def of_pool(pool: str, event: pool_events.Event) -> NodeEvent | None:
    """What a pool says about its workers, with the pool's name; None for what the node tells by itself."""
    match event:
        case pool_events.WorkerStarted(pid):
            return WorkerUp(pool, pid)
        case pool_events.WorkerStopped(pid, reason, exitcode, signal):
            return WorkerGone(pool, pid, reason, exitcode, signal)
        case pool_events.WorkerFailedToStart(cause, failures, retry_in):
            return WorkerStartFailed(pool, cause, failures, retry_in)
        case pool_events.TaskCrashed(task, pid, cause):
            return WorkerCrashed(pool, pid, task, cause)
    return None


# --- where they go ---------------------------------------------------------------------------------------
class _Subscription(NamedTuple):
    subscriber: Subscriber
    kinds: frozenset[type] | None  # None: every event

    def takes(self, kind: type) -> bool:
        return self.kinds is None or kind in self.kinds


class NodeEvents:
    """The subscribers of one node, served by one thread of their own."""

    def __init__(self, most: int = MOST) -> None:
        self.dropped = 0  # events lost to subscribers that were too slow
        self._most = most
        self._queue: SimpleQueue[NodeEvent | None] = SimpleQueue()  # its put() is safe in a signal handler
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._wanted: dict[type, bool] = {}  # what is known about these subscriptions
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def subscribe(self, subscriber: Subscriber, kinds: Iterable[type] | None = None) -> Callable[[], None]:
        """Call `subscriber` with every event from now on, or those of some kinds; returns what ends it."""
        if not callable(subscriber):
            raise TypeError(f"a subscriber must be callable, not {type(subscriber).__name__}")
        subscription = _Subscription(subscriber, None if kinds is None else frozenset(kinds))
        with self._lock:
            self._replace((*self._subscriptions, subscription))
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._deliver, name="millpond-events", daemon=True)
                self._thread.start()

        def unsubscribe() -> None:
            with self._lock:
                self._replace(tuple(s for s in self._subscriptions if s is not subscription))

        return unsubscribe

    def _replace(self, subscriptions: tuple[_Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self._wanted = {}  # a new one: who still fills the old one spoils nothing

    def wanted(self, kind: type) -> bool:
        """Would anybody see an event of this kind? Ask before making one for every job."""
        known = self._wanted  # before the subscriptions are read
        found = known.get(kind)
        if found is None:
            found = known[kind] = any(subscription.takes(kind) for subscription in self._subscriptions)
        return found

    def publish(self, event: NodeEvent | None) -> None:
        """Hand the event over; returns at once, whatever the subscribers do. None is no event."""
        if event is None or self._is_closed or not self.wanted(type(event)):
            return
        if self._queue.qsize() >= self._most:
            self.dropped += 1
        else:
            self._queue.put(event)

    def close(self, timeout: float = 1.0) -> bool:
        """Take no more events; True if all were delivered in time."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        self._queue.put(None)
        thread.join(timeout)
        return not thread.is_alive()

    def _deliver(self) -> None:
        while (event := self._queue.get()) is not None:
            for subscriber, _ in (s for s in self._subscriptions if s.takes(type(event))):
                try:
                    subscriber(event)
                except BaseException:  # also SystemExit: it is the node's thread, not the subscriber's
                    logger.exception("A subscriber failed on %s; the node goes on", type(event).__name__)
