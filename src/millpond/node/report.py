"""What a node says about itself: frozen records that health, metrics, alerts and people read.

Made by the node's threads, never changed afterwards. Durations are seconds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

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
    failed: int  # of those, the ones whose function raised
    age: float
    last_seen: float  # seconds since it was last heard of


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
    oldest_wait: float | None  # how long the first job in line has been due; None when nothing waits
    waiting: int  # jobs due in its queues, as last counted
    status: Literal["ok", "degraded", "failed"]
    reasons: tuple[str, ...]
    workers: tuple[WorkerReport, ...]


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
