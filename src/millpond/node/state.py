"""What the threads of a node share: who it is, its store, its pools, and whether it may take more.

Plain values and small questions; each thread's own work is in its own file.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond.job import Instant, Job, Settlement
from millpond.node.jobs.settle_queue import Line
from millpond.node.jobs.unknown_tasks import UnknownTasks
from millpond.node.lease.identity import Identity
from millpond.node.resources.budget import NodeBudget
from millpond.system import boot_clock

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.observability.report import NodeState as Phase
    from millpond.store.protocol import Store


FENCE_MARGIN = 0.5  # seconds before the end of the lease: the template looks four times a second
MARGIN = 0.15  # the part of a lease before whose end the holders of slots are stopped


def margin(lease: float) -> float:
    """How long before the end of the lease the holders of slots are stopped: before the template would do it,
    which is there for a node that cannot."""
    return max(MARGIN * lease, min(2 * FENCE_MARGIN, 0.4 * lease))


class NodeState:
    """The node, as its threads see it."""

    def __init__(self, store: Store, lease: float, budget: NodeBudget | None = None) -> None:
        self.store = store
        self.heart = store  # the connection of the heartbeat
        self.durability = ""
        self.lease, self.margin = lease, margin(lease)
        self.identity = Identity()
        self.identity.facts["schema"] = store.versions.known  # so that a migration can tell who needs what
        self.line = Line()
        self.budget = NodeBudget() if budget is None else budget
        self.unknown = UnknownTasks(self)
        self.pools: dict[str, QueuePool] = {}
        self.by_queue: dict[str, QueuePool] = {}
        self.phase: Phase = "starting"
        self.renewed_at = 0.0  # when the last renewal that succeeded was begun
        self.cancelled: dict[str, JobTask] = {}  # running jobs whose end is wanted, by claim
        self.renewing = threading.Lock()
        self.given_up = False  # the lease, for good: a beat that comes late must not take it again
        self.accepted: Callable[[Settlement, bool], None] = lambda *_: None  # the store's word on each end
        self.has_news: Callable[[], bool] = bool  # does anybody wait for the store's word?
        self.forget_news: Callable[[], None] = lambda: None
        self.pressed: Callable[[], None] = lambda: None  # there may be more work than workers

    def may_claim(self) -> bool:
        """Not while held or draining, nor on a schema that is not for this code any more, nor on a lease that
        is about to end. A store that was away may answer a claim before the heartbeat has reached it: a job
        with a slot would begin, and the fence would stop it in the same moment. Shown by
        tests/node/test_store_away.py, test_nothing_begins_on_a_lease_that_is_about_to_end."""
        if self.phase != "running" or self.lease_left() <= self.margin:
            return False
        return self.heart.versions.trouble is None

    def lease_left(self) -> float:
        """How long our lease lasts for certain, by our own clock."""
        return self.renewed_at + self.lease - boot_clock.seconds()

    def renew(self) -> None:
        """Take or renew the lease."""
        with self.renewing:
            if self.given_up:
                return
            before = boot_clock.seconds()
            templates = {pid for pool in self.pools.values() for pid in pool.templates()}
            self.identity.facts["templates"] = sorted(templates)
            self.identity.facts.update(self.budget.facts())
            self.identity.facts["unrecorded"] = self.line.quarantine.told()
            self.heart.renew(self.identity.id, self.identity.host, self.identity.info(), self.lease)
            self.renewed_at = before
        fence = int((before + self.lease - min(FENCE_MARGIN, 0.3 * self.lease)) * 1e9)
        for pool in list(self.pools.values()):
            pool.move_fence(fence)

    def store_now(self) -> Instant:
        """The time by the store's clock."""
        now: Instant = self.store.clock.now()
        return now

    def offset(self) -> int:
        """The store's clock minus the one by which executions are timed, in microseconds."""
        return self.store_now() - boot_clock.microseconds()

    def pool_of(self, job: Job) -> QueuePool | None:
        """The pool that serves a job's queue."""
        return self.by_queue.get(job.queue)

    def cancel(self, job_id: str) -> None:
        """Somebody wants the end of a job that runs here."""
        for pool in self.pools.values():
            task = pool.held.get(job_id)
            if task is not None and task.cancelling_at is None:
                task.cancelling_at = time.monotonic()
                self.cancelled[claim_of(task.job)] = task

    def disown_all(self) -> None:
        """None of the jobs we hold is ours any more."""
        for pool in self.pools.values():
            for task in list(pool.held.values()):
                self.disown(task)

    def disown(self, task: JobTask) -> None:
        """The store gave this job to others: its run is stopped, and its end is nobody's news."""
        task.disowned = True
        self.cancelled[claim_of(task.job)] = task


def claim_of(job: Job) -> str:
    """One claim of a job. It may come back here while an earlier run, not ours any more, has not ended."""
    return f"{job.id} {job.token}"
