"""Takes the ends that the pools have put in line and makes them what the store is told.

The books of the pools, what was learned of a task and what a job held of the node's budget change here, in
the claim loop's turn and nowhere else.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from millpond.job import MICROSECONDS, Lost, OutOfMemory, Raised, Unread
from millpond.node.jobs.settle_queue import End, Ended
from millpond.system.boot_clock import microseconds

if TYPE_CHECKING:
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")


class Intake:
    """Takes ends."""

    def __init__(self, state: NodeState) -> None:
        self._state = state

    def take(self) -> bool:
        """All there are; False if there was none."""
        state, line = self._state, self._state.line
        raw, by_queue = line.raw, state.by_queue
        if not raw:
            return False
        line.is_heard = line.listens()
        offset = state.offset()
        node = b'"%b"' % state.identity.id.encode()
        while raw:
            task, value, error, at = raw.popleft()
            job = task.job
            pool = by_queue[job.queue]
            if pool.held.get(job.id) is task:  # not the next claim of a job that was another's meanwhile
                del pool.held[job.id]
            if error is None and type(value) is bytes and task.cancelling_at is None and not task.disowned:
                pool.done += 1
                pool.returned += len(value)
                run = line.put_returned(task, value, node, offset, pool.tally)
                pool.learn(job.task, run)
                if task.need is not None:
                    state.budget.ended(task, run)
                continue
            end = self._put((task, value, error, at), offset, pool)
            pool.count(end.outcome)
            if isinstance(end.outcome, Raised) and end.begun_at is not None:
                pool.learn(job.task, max(0, end.ended_at - end.begun_at) / MICROSECONDS)
        return True

    def _put(self, ended: Ended, offset: int, pool: QueuePool) -> End:
        """Put an end in line that is not just a value."""
        task, name, line = ended[0], self._state.identity.id, self._state.line
        try:
            end = self._weighed(line.end(*ended))
            if not task.disowned:
                end = end._replace(outcome=line.put(end, name, offset, pool.tally))
        except Exception:  # a bug; the job must not stay claimed for ever
            logger.exception("The end of job %s cannot be understood: it counts as lost", task.job.id)
            self._state.budget.ended(task)
            end = End(task, Lost(started=True), None, microseconds())
            if not task.disowned:
                line.put(end, name, offset, pool.tally)
        return end

    def _weighed(self, end: End) -> End:
        """The end of a job that did not just return: what it held is free, and memory may be why."""
        task, budget = end.task, self._state.budget
        if task.need is not None:
            budget.ended(task)
        if type(end.outcome) is Unread:
            end = end._replace(outcome=self._state.unknown.judged(task.job, end.outcome), begun_at=None)
        if type(end.outcome) is OutOfMemory or (task.preempted and type(end.outcome) is Lost):
            return budget.judged(end)
        return end
