"""The one thread of a process pool: waits for whatever comes first and takes a round.

It owns no policy and no state of its own. If it ever fails, it fails every future with the reason: a
pool may break, but never leaves anybody waiting.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures._base import PENDING, RUNNING

from millpond.errors import PoolClosed, PoolError, TaskKilled
from millpond.events import WorkerStalled
from millpond.pool import at_exit
from millpond.pool.admission import leave_queue
from millpond.pool.process.engine import LOOK, Engine
from millpond.pool.process.supervisor import Upkeep
from millpond.pool.task import Task
from millpond.system.kernel import eventfd_read

logger = logging.getLogger("millpond")


def start(engine: Engine) -> None:
    """Start the dispatcher of an engine, once."""
    if at_exit.exiting():
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")
    with engine.lock:
        if engine.dispatcher is not None:
            return
        engine.holder = threading.get_ident()  # see `_held`: the new thread asks for the lock at once
        try:
            engine.open()
            thread = threading.Thread(target=_serve, args=(engine,), name=f"millpond-{engine.options.name}")
            at_exit.remember(engine)
            thread.start()  # inside the lock: whoever sees it may join it
            engine.dispatcher = weakref.ref(thread)
        finally:
            engine.holder = 0
    if engine.options.mp_context is not None:
        # The standard library's way: the first workers exist before the first submit returns
        engine.up.wait(60)


def _serve(engine: Engine) -> None:
    upkeep = Upkeep(engine)
    engine.upkeep = upkeep
    engine.later.collect_here()
    try:
        while _round(engine, upkeep):
            pass
    except BaseException as error:
        logger.exception("The dispatcher of %s failed", engine.options.name)
        _collapse(engine, error)
    finally:
        _clean_up(engine, upkeep)


def _round(engine: Engine, upkeep: Upkeep) -> bool:
    # Also when something is due already: a round that is due again and again must not keep the death of a
    # worker from being seen. Shown in test_a_pool_ends_although_a_worker_that_must_leave_is_stopped
    wait = engine.wake_at - time.monotonic()
    engine.round_since = None
    events = engine.epoll.poll(max(0.0, min(wait, 60.0)))
    engine.round_since = time.monotonic()
    if any(descriptor == engine.bell for descriptor, _ in events):
        with contextlib.suppress(BlockingIOError):
            eventfd_read(engine.bell)
    with _held(engine):
        engine.holder = threading.get_ident()
        try:
            if engine.shaken:
                _mend(engine)
            upkeep.round(time.monotonic(), events)
            more = not (engine.closing and _wind_down(engine, upkeep))
            engine.wake_at = upkeep.wake_at
            if upkeep.now - engine.fed_at < LOOK:
                # Stay on the alert while the pool is in use: the next submit need not ring for it
                engine.wake_at = min(engine.wake_at, upkeep.now + LOOK)
            engine.up.set()
        finally:
            engine.holder = 0
    engine.settle()
    _tell(engine)
    if engine.inbox or engine.rearm:
        engine.pump()
    return more


@contextlib.contextmanager
def _held(engine: Engine) -> Iterator[None]:
    """Hold the lock. An interrupt may hit a thread between taking the lock and saying so; a lock that
    nobody claims for a second was lost that way, and is ours."""
    while not engine.lock.acquire(timeout=1.0):
        if engine.holder == 0:
            with contextlib.suppress(RuntimeError):
                engine.lock.release()
    try:
        yield
    finally:
        engine.lock.release()


def _mend(engine: Engine) -> None:
    """A turn was interrupted in some caller's thread: put back what was between two places."""
    engine.shaken = False
    moving, engine.moving = engine.moving, []
    if engine.head is not None:
        moving = [*moving, engine.head]
    for link in engine.links.values():
        for task in link.committing:
            link.inflight.pop(task.number, None)
            task.link = None
        if link is engine.sending or link.reader.torn:  # tickets and tasks, or frames, may not match
            link.draining = link.draining or "stray"
            link.kill()
        elif link is engine.hearing:  # an answer may be read twice: it does no harm, but nothing more
            link.stray = True
        link.committing = []
        link.driven = link.armed = False
        engine.collect(link, time.monotonic())  # the bell may have been silenced for nothing
        engine.arm(link)
    known = {id(task) for link in engine.links.values() for task in link.inflight.values()}
    known.update(id(task) for task in [*engine.inbox, *engine.returned, *engine.queue.mend()])
    known.update(id(task) for task, *_ in engine.unsettled)
    for task in moving:
        if id(task) not in known and not task.done():
            known.add(id(task))
            engine.returned.append(task)
    engine.sending = engine.hearing = None
    for link in engine.links.values():
        if not link.inflight and link not in engine.idle:
            engine.rest(link, time.monotonic())


def _tell(engine: Engine) -> None:
    """Run callbacks and publish events, outside the lock: this is user code."""
    engine.later.tell()
    engine.later.run_callbacks()
    while engine.news:
        event = engine.news.popleft()
        if isinstance(event, WorkerStalled):
            logger.warning(
                "Pool %s: worker %d had begun none of its tasks for %.1f s and was killed: %s. Its tasks run "
                "elsewhere. %s",
                engine.options.name,
                event.pid,
                event.stood_for,
                event.reason,
                event.stack,
            )
        engine.events.publish(event)


def _wind_down(engine: Engine, upkeep: Upkeep) -> bool:
    """Closing: let the work end, then the workers; True when nothing is left."""
    now = upkeep.now
    if engine.kill_at is not None:
        if now >= engine.kill_at:
            _stop_everything(engine, upkeep)
        else:
            upkeep.wake_at = min(upkeep.wake_at, engine.kill_at)
    busy = any(link.inflight or link.doomed for link in engine.links.values())
    if busy or engine.inbox or engine.returned or len(engine.queue):
        return False
    for link in engine.links.values():
        if link.draining is None:
            link.draining = "shutdown"
            if link.ready:
                link.leave(now)
                upkeep.wake_at = now
            else:
                link.kill()
    engine.idle.clear()
    return not engine.links


def cancel_waiting(engine: Engine, *, stop: bool = False) -> None:
    """Cancel everything that has not been sent. Under the lock, in the dispatcher.

    Workers being started are started for the first tasks in line: those count as sent.
    """
    engine.turn(time.monotonic())
    starting = sum(1 for link in engine.links.values() if not link.ready) if engine.links else engine.most
    kept = [] if stop else [engine.take_next() for _ in range(min(starting, engine.waiting()))]
    while engine.waiting():
        task = engine.take_next()
        leave_queue(engine.room, task)
        engine.ended_in_line.take(task)
        if task._state in (PENDING, RUNNING):
            engine.tally.cancelled += 1
            task.abandon(engine.later)
        else:
            engine.begin(task, 0.0)
    engine.returned.extend(kept)


def _stop_everything(engine: Engine, upkeep: Upkeep) -> None:
    """Shutdown has run out of time."""
    cancel_waiting(engine, stop=True)
    if any(link.pidfd is None for link in engine.links.values()):
        upkeep.drop_starter()  # it was asked for workers and has not answered
    for link in engine.links.values():
        engine.collect(link, upkeep.now)
        for task in link.take_back(link.tickets_left()):
            task.abandon(engine.later)
        for task in list(link.inflight.values()):
            engine.settle_soon(
                task, TaskKilled(f"{task.name} was still running when shutdown ran out of time")
            )
        link.inflight.clear()
        link.cancelled.clear()  # one falls due before its worker is buried, and is off the books by now
        link.killed_for = "shutdown"
        link.draining = link.draining or "shutdown"
        link.kill()


def _collapse(engine: Engine, cause: BaseException) -> None:
    """The dispatcher itself failed, which is a bug: tell everybody who waits. What had begun gets a plain
    PoolError, what had not a PoolClosed: it has done nothing and may run elsewhere."""
    engine.failure = f"the pool's dispatcher failed: {type(cause).__name__}: {cause}"
    with _held(engine):  # or a caller's turn could send something to a worker that is struck off the books
        engine.closing = True
        begun, unbegun = _take_all(engine)
    ends = [(task, PoolError(engine.failure)) for task in begun]
    ends += [(task, PoolClosed(engine.failure)) for task in unbegun]
    for task, error in ends:
        error.__cause__ = cause
        if not task.done():
            task.settle(None, error, None)
    engine.later.tell()
    engine.later.run_callbacks()


def _take_all(engine: Engine) -> tuple[list[Task], list[Task]]:
    """Strike every task off the books and kill the workers: the tasks that had begun, and the others."""
    begun = [task for task, *_ in engine.unsettled]
    unbegun = [*engine.inbox, *engine.returned]
    engine.inbox.clear()
    engine.returned.clear()
    while len(engine.queue):
        unbegun.append(engine.queue.take())
    for link in engine.links.values():
        unbegun += link.take_back(link.tickets_left())  # without a ticket none of them can begin any more
        begun += [*link.inflight.values(), *(task for task, _ in link.doomed)]
        link.inflight.clear()
        link.draining = link.draining or "shutdown"
        link.kill()
    return begun, unbegun


def _clean_up(engine: Engine, upkeep: Upkeep) -> None:
    with engine.lock:
        engine.closing = engine.ended = True
        while engine.inbox:
            engine.returned.append(engine.inbox.popleft())
        while engine.waiting():  # submitted in the very last moment
            task = engine.take_next()
            if engine.begin(task, 0.0):
                engine.settle_soon(task, PoolClosed("the pool was shut down meanwhile"))
        for link in engine.links.values():
            link.close()
        engine.links.clear()
        engine.idle.clear()
        if upkeep.starter is not None:
            upkeep.starter.close()
        engine.functions.forget_all()
        engine.epoll.close()
        os.close(engine.bell)
        engine.bell = -1
        engine.options = engine.options._replace(initializer=None, initargs=())
    at_exit.forget(engine)
    _tell(engine)
    engine.up.set()
    engine.finished.set()
