"""Ends running jobs: those whose end somebody wants, and all of them when a node stops.

How far to go at which moment is decided in `rules/shutdown.py`; this does it to the workers.
"""

from __future__ import annotations

import logging
import signal
import time
from typing import TYPE_CHECKING, Any

from millpond.rules.shutdown import End, Ending, Ladder, Phase, end_step, ending, phase

if TYPE_CHECKING:
    from millpond.node.inflight import JobTask
    from millpond.node.queue_pool import QueuePool
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
LOOK = 0.01


class Endings:
    """The jobs of a node that are being ended, and how far that has gone."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._chosen: dict[str, Ending] = {}
        self._done: dict[str, End] = {}

    def look(self, now: float) -> None:
        """Do what is due for each."""
        for job_id, task in list(self._state.cancelled.items()):
            pool = self._state.pool_of(task.job)
            if pool is None or task.done():
                self._forget(job_id)
                continue
            step = self._step(job_id, task, now)
            if step == self._done.get(job_id):
                continue
            self._done[job_id] = step
            if step == "kill":
                self._forget(job_id)
                pool.kill(task)
            else:
                nudge(pool, task, step)

    def _step(self, job_id: str, task: JobTask, now: float) -> End:
        link = task.link
        if task.disowned or link is None or not link.inflight:
            return "kill"  # it is others' by now, or has not begun
        chosen = self._chosen.get(job_id)
        if chosen is None:
            # What waits behind it in a worker for one job at a time is no neighbour: it goes elsewhere
            neighbours = len(link.inflight) - 1 if link.concurrency > 1 else 0
            chosen = self._chosen[job_id] = ending(neighbours, now)
        return end_step(chosen, now)

    def _forget(self, job_id: str) -> None:
        for place in (self._state.cancelled, self._chosen, self._done):
            place.pop(job_id, None)


def nudge(pool: QueuePool, task: JobTask, step: End) -> None:
    """Ask a running job to end, or terminate its worker."""
    engine: Any = task._owner
    with engine.exclusive():
        link = task.link
        if link is None or link.closed or task.number not in link.inflight:
            return
        if step == "terminate":
            if task.number in link.running():  # else the signal would hit another job
                link.signal(signal.SIGTERM)
        elif link.concurrency == 1:
            link.page.ask_to_stop(task.number)
        elif pool.settings.kind == "async":
            link.send_cancel(task.number)
            engine.arm(link)


def let_finish(state: NodeState, ladder: list[Ladder]) -> None:
    """Let the running jobs of a node that stops finish; terminate them near the deadline. Returns when
    nothing runs any more, or what does must be killed. `ladder[0]` may be shortened meanwhile."""
    terminated = False
    while any(pool.held for pool in state.pools.values()):
        now = phase(ladder[0], time.monotonic())
        if now is Phase.KILLING:
            return
        if now is Phase.TERMINATING and not terminated:
            terminated = True
            _terminate_all(state)
        time.sleep(LOOK)


def _terminate_all(state: NodeState) -> None:
    for pool in state.pools.values():
        for task in list(pool.held.values()):
            task.stopped = True
            link = task.link
            if link is not None and link.concurrency == 1:
                nudge(pool, task, "terminate")


def stop_all(state: NodeState) -> None:
    """Kill what still runs, and the workers with it."""
    for pool in state.pools.values():
        held = list(pool.held.values())
        if held:
            logger.warning(
                "Pool %s: %d jobs were still running and are stopped", pool.settings.name, len(held)
            )
        for task in held:
            task.stopped = True
        pool.close(0.0)
