"""The part of a round that sees workers off: they were told to leave, and have a bounded time for it.

A worker that leaves in good order runs its exit handlers, flushes its queues and ends its threads. That is
user code, so it may be slow or never end. Nothing waits for it: a successor may start at once.
"""

from __future__ import annotations

from millpond.pool.process.engine import LOOK, logger
from millpond.pool.process.round import Round
from millpond.pool.process.stop_tasks import STACK_WAIT
from millpond.pool.process.worker_link import Link
from millpond.rules.pool.size import LEAVE_WAIT, LOOK_AT_LEAVERS, leave_used, leave_wait


class Departing(Round):
    """Tells workers to leave, and ends those that do not."""

    def _see_off(self, link: Link) -> None:
        """A draining worker that holds nothing leaves; one that does not leave is killed, and so is one
        that answered for others and now sits on tasks that it neither runs nor has left."""
        if link.stray and link.inflight and not link.running():
            if self.now - link.fed_at > 5 * LOOK:
                link.kill()
            self.by(self.now + LOOK)
        if link.draining is not None and not link.inflight and link.ready and link.leaving_at is None:
            link.leave(self.now)
        if link.leaving_at is not None and link.gone_at is None:
            self._hurry(link)

    def _hurry(self, link: Link) -> None:
        """Kill a worker whose time to leave is over; its stack, asked for shortly before, says what it waits
        for."""
        link.leave_used = leave_used(link.leave_used, link.leave_looked_at or self.now, self.now)
        link.leave_looked_at = self.now
        left = leave_wait(link.leave_used)
        if left > STACK_WAIT:
            self.by(self.now + min(left - STACK_WAIT, LOOK_AT_LEAVERS))
        elif left > 0:
            if not link.late:
                link.late = True
                link.ask_for_stack()
            self.by(self.now + left)
        elif not link.evicted:
            link.evicted = True
            link.kill()
            logger.warning(
                "Pool %s: worker %d was told to leave and was still there %g s later, so it was killed. "
                "Threads that are not daemons, exit handlers and queues have that long to end.\n%s",
                self.options.name,
                link.pid,
                LEAVE_WAIT,
                link.page.stack(),
            )
