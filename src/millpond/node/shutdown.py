"""Ends running jobs: those whose end somebody wants, and all of them when a node stops.

How far to go at which moment, and how long the store is waited for, is decided in `rules/node/shutdown.py`;
this does it. Nothing here waits for a store beyond the node's deadline.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from millpond.errors import StoreError
from millpond.rules.node.shutdown import End, Ending, Ladder, Phase, end_step, ending, phase, speaks_until

if TYPE_CHECKING:
    from millpond.node.jobs.claim_loop import ClaimLoop
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState

logger = logging.getLogger("millpond")
LOOK = 0.01
DOUBT = 5.0  # seconds for a claim whose answer was lost: its jobs have not begun, and go back by themselves
FAREWELL = 1.0  # seconds that a worker may take to send its last spans


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
        # What waits behind it in a worker for one job at a time is no neighbour: it goes elsewhere
        neighbours = len(link.inflight) - 1 if link.concurrency > 1 else 0
        if chosen is None:
            chosen = ending(neighbours, now)
        elif neighbours and chosen.terminate_at is not None:  # it was alone when its end was first wanted
            chosen = ending(neighbours, chosen.asked_at)
        self._chosen[job_id] = chosen
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
            if link.concurrency > 1 and len(link.inflight) > 1:
                return  # it was alone a moment ago: the next look finds its neighbours
            # Nothing else may begin over there: if this one ends just now, the signal would hit the next
            engine.returned.extendleft(reversed(link.recall()))
            engine.wake()
            if task.number in link.running():
                task.interrupted = link.interrupted = True  # before it can answer
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
    """Tell each running job that its time is over: SIGTERM to a worker that is its own, CancelledError to a
    coroutine beside others. A thread cannot be told."""
    for pool in state.pools.values():
        for task in list(pool.held.values()):
            task.stopped = True
            link = task.link
            if link is None or task.done():  # one that has ended has an end of its own
                continue
            if link.concurrency == 1:
                nudge(pool, task, "terminate")
            elif pool.settings.kind == "async":
                task.interrupted = True  # before it can answer
                nudge(pool, task, "ask")


def stop_all(state: NodeState) -> None:
    """Kill what still runs, and the workers with it. Workers that have nothing to do may leave by
    themselves."""
    for pool in state.pools.values():
        held = [task for task in list(pool.held.values()) if not task.done()]
        if held:
            logger.warning(
                "Pool %s: %d jobs were still running and are stopped", pool.settings.name, len(held)
            )
        for task in held:
            task.stopped = True
        pool.close(0.0 if held else FAREWELL)


def broken_off(state: NodeState) -> int:
    """How many jobs the end of their node has ended, also those that nobody has looked at since."""
    unseen = sum(task.stopped for pool in state.pools.values() for task in list(pool.held.values()))
    return state.line.broken_off + unseen


# --- the store's part -------------------------------------------------------------------------------------
def tell_all(state: NodeState, loop: ClaimLoop, ladder: list[Ladder]) -> None:
    """Have the store hear of everything that was claimed: settled or given back. While it is away that is
    tried as long as there is grace, or what has ended would run again. `ladder[0]` may be shortened."""
    line, begun_at, is_known = state.line, time.monotonic(), False
    while not _is_told(state, loop):
        until = speaks_until(ladder[0]) if _holds(state) else min(speaks_until(ladder[0]), begun_at + DOUBT)
        if (left := until - time.monotonic()) <= 0:
            break
        if loop.trouble and len(line) and not is_known:
            is_known = True
            logger.warning(
                "%d ends wait for the store, for up to %.1f s more: %s", len(line), left, loop.trouble
            )
        loop.bell.set()
        time.sleep(LOOK)
    if len(line):
        logger.error("%d ends could not be told to the store: another node will run them", len(line))


def _is_told(state: NodeState, loop: ClaimLoop) -> bool:
    return not _holds(state) and loop.resting  # in this order: an end on its way into the line is in neither


def _holds(state: NodeState) -> bool:
    """Is there a job of which the store must still hear?"""
    return bool(len(state.line)) or any(pool.held for pool in state.pools.values())


def give_up_lease(state: NodeState, until: float) -> None:
    """Let others see at once that the node is gone, and close the connection of its heartbeat."""

    def give_up() -> None:
        held = state.renewing.acquire(timeout=max(0.0, until - time.monotonic()))
        state.given_up = True
        try:
            if state.renewed_at:
                state.heart.renew(state.identity.id, state.identity.host, lease=0.0)
        except StoreError as error:
            logger.warning("The lease could not be given up, it runs out by itself: %s", error)
        finally:
            if held:
                state.renewing.release()
            if state.heart is not state.store:
                state.heart.close()

    if not within(until, give_up):
        logger.warning("The lease could not be given up in time, it runs out by itself")


def within(until: float, step: Callable[[], None]) -> bool:
    """Do something that may wait for a store, in a thread of its own; False if it was not done by then.
    It is left behind: a node that stops waits for nobody."""
    done = threading.Event()

    def safely() -> None:
        try:
            step()
        except Exception:
            logger.exception("A last step of the node failed")
        finally:
            done.set()

    threading.Thread(target=safely, name="millpond-last-step", daemon=True).start()
    return done.wait(max(0.0, until - time.monotonic()))
