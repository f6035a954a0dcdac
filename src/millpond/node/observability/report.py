"""What a node says about itself: frozen records that health, metrics, alerts and people read.

Made by the node's threads, never changed afterwards. Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from millpond.node.observability.job_tally import Timing
from millpond.node.scaling.fleet import PoolShare

WorkerState = Literal["starting", "idle", "busy", "draining", "dead"]
NodeState = Literal["starting", "running", "held", "draining", "stopped"]


class WorkerReport(NamedTuple):
    """One worker process."""

    pool: str
    pid: int
    state: WorkerState
    job: str | None  # id of the job that has run longest in it
    task: str | None
    running_for: float | None
    rss: int  # bytes
    cpu: float  # seconds of processor time used in its life
    done: int  # jobs that ended in it
    failed: int  # of those, the ones that raised, overran or whose result was refused
    age: float
    last_seen: float  # seconds since it was last heard of
    id: str = ""  # the node, the pool, and its number there: never given again, unlike a pid
    completed: int = 0  # jobs that ended well in it
    started_at: float = 0.0  # seconds since 1970, like every instant here
    job_started_at: float | None = None
    last_seen_at: float = 0.0


class PoolReport(NamedTuple):
    """One pool of the node, with the queues it serves."""

    name: str
    queues: tuple[str, ...]
    kind: str
    least: int
    most: int
    concurrency: int
    claimed: int  # jobs it holds: running, or claimed ahead and not begun
    running: int
    done: int
    failed: int
    crashed: int
    timed_out: int
    recycled: int
    max_wait: float | None
    oldest_wait: float | None  # how long the first of these has been due; None when nothing waits
    waiting: int  # jobs due in its queues that are not paused, as last counted
    status: Literal["ok", "degraded", "failed"]
    reasons: tuple[str, ...]
    workers: tuple[WorkerReport, ...]
    wanted: int = 0  # workers, by the last decision
    rates: Mapping[str, float] = {}  # of those of its queues that are limited: jobs a second
    sentence: str = ""  # the last decision in words
    shadow: bool = False  # it is only a recommendation
    ends: Mapping[str, int] = {}  # attempts by how they ended
    wait: Timing = Timing()  # from due to begun
    run: Timing = Timing()
    workers_started: int = 0
    workers_ended: Mapping[str, int] = {}  # by reason
    starts_failed: int = 0
    scaled_up: int = 0
    scaled_down: int = 0


class ResourceReport(NamedTuple):
    """What the jobs of a node may use together, and do."""

    memory_limit: int | None  # bytes; None: no limit is known
    memory_used: int
    memory_reserved: int  # by running jobs that declared it, or of which it was learned
    waiting: int  # claimed jobs for which there is not enough
    step: Literal["admit", "hold", "stop"]
    tokens: Mapping[str, float] = {}  # that this node has
    tokens_used: Mapping[str, float] = {}


class TickingReport(NamedTuple):
    """One recurring task, as the node that plans it knows."""

    name: str
    is_open: bool  # its breaker
    failures: int  # in a row
    unfinished: int  # ticks that have not ended
    late: float  # seconds by which the last tick was enqueued late
    succeeded_at: float | None  # seconds since 1970


class RecurringReport(NamedTuple):
    """The recurring tasks of the node's app."""

    is_leader: bool  # this node plans them
    tasks: tuple[TickingReport, ...] = ()  # empty on the others
    missed: int = 0  # ticks that did not run because nobody planned them in time
    late: int = 0
    opened: int = 0  # times that a breaker opened


class NodeReport(NamedTuple):
    """The node at one moment."""

    id: str
    host: str
    pid: int
    state: NodeState
    store: str  # its address without password
    durability: str
    age: float
    round_age: float  # since the last completed exchange with the store
    lease_left: float
    store_trouble: str | None  # why the store cannot be reached, while it cannot
    unsettled: int  # outcomes the store does not know yet
    unsettled_bytes: int
    settled: int
    stale: int  # writes the store refused because they came late
    rescued: int  # jobs of dead nodes that this one revived
    exchanges: int
    pools: tuple[PoolReport, ...]
    fleet: tuple[PoolShare, ...] = ()  # the pools of every node, as last heard
    exchange: Timing = Timing()  # round trips with the store that were answered
    store_errors: Mapping[str, int] = {}  # those that were not, by the class of the error
    resources: ResourceReport | None = None
    recurring: RecurringReport | None = None  # None: the app has no recurring task
    store_retries: Mapping[str, int] = {}  # transactions that the store repeated by itself, by kind
    quarantined: int = 0  # ends that the store does not take though it takes others
    unrecorded: tuple[str, ...] = ()  # the first few of them, in words
    schema_trouble: str | None = None  # why this code may not work on the store's schema any more
