"""The engine for `kind="thread"`: the same pool on threads of this process.

Threads cannot be killed, so limits that need it were refused at construction. Priorities, bounds, queue
age, dynamic size, statistics and events work as with processes. One lock guards the line; user code
always runs outside it.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures._base import CANCELLED, PENDING, RUNNING
from functools import partial
from typing import Any

from millpond.errors import OptionError, PoolClosed, PoolDegraded
from millpond.events import (
    Events,
    PoolBecameDegraded,
    PoolRecovered,
    WorkerFailedToStart,
    WorkerStarted,
    WorkerStopped,
)
from millpond.pool import at_exit
from millpond.pool.admission import EndedInLine, expired_error, leave_queue, wait_for_room
from millpond.pool.channel.remote_errors import describe, text_of
from millpond.pool.future import PoolFuture
from millpond.pool.options import PoolOptions, TaskOptions
from millpond.pool.queue_room import Room
from millpond.pool.statistics import Health, PoolStatistics, Tally, WorkerRow, health, worker_row
from millpond.pool.task import Task
from millpond.pool.task_queue import make_queue
from millpond.rules.pool.limits import queue_limit
from millpond.rules.pool.restart import PATIENCE, Starts, after_failure, after_success, is_degraded
from millpond.rules.pool.size import Bounds, Crew, plan


class Seat:
    """One thread of the pool."""

    def __init__(self, identity: int) -> None:
        self.identity = identity
        self.wake = threading.Lock()  # held while there is nothing to wake up for
        self.wake.acquire()
        self.state = "starting"
        self.left_for = "shutdown"
        self.task: Task | None = None
        self.started = 0
        self.idle_since = self.born_at = time.monotonic()
        self.done = self.errored = 0  # tasks, and those of them that raised
        self.failed = False  # how its last task ended
        self.native_id = 0


class ThreadEngine:
    """State and turns of one pool of threads."""

    def __init__(self, options: PoolOptions) -> None:
        self.options = options
        self.most, self.least = options.max_workers, options.min_workers
        self.owner_pid = os.getpid()
        self.lock = threading.Lock()
        self.holder = 0
        self.inbox: deque[Task] = deque()
        self.queue = make_queue(options.queue)
        self.expiry: list[tuple[float, int, Task]] = []
        self.spoiled: deque[tuple[Task, BaseException]] = deque()  # to fail outside the lock
        self.seats: dict[int, Seat] = {}
        self.idle: list[Seat] = []  # a stack: the most recently used works first
        self.threads: set[threading.Thread] = set()
        self.clock: threading.Thread | None = None
        self.clock_bell = threading.Event()
        self.identities = itertools.count(1)
        self.numbers = itertools.count(1)
        self.events = Events(options.on_callback_error)
        self.tally = Tally()
        self.starts = Starts()
        self.closing = False
        self.room = None if options.max_queue is None else Room(options.max_queue)
        self.ended_in_line = EndedInLine()
        self.finished = threading.Event()
        at_exit.remember(self)

    # --- taking tasks in ----------------------------------------------------------------------------
    def start(self) -> None:
        """Start the threads a pool has at least."""
        if not self.closing:
            self.guarded(self._grow)

    def submit(
        self, call: Any, args: Any, kwargs: Any, options: TaskOptions, items: int = 0
    ) -> PoolFuture[Any]:
        """Accept a call."""
        if at_exit.exiting():
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        if self.closing:
            raise PoolClosed("cannot schedule new futures after shutdown")
        place = None
        if self.room is not None:
            may_block = threading.current_thread() not in self.threads
            place = wait_for_room(self.room, self.options, lambda: self.closing, may_block=may_block)
        task = Task(next(self.numbers), self, options, time.monotonic_ns())
        if place is not None:
            task.place = place
        task.body = (call, args, kwargs)
        self.inbox.append(task)
        self.guarded(self._accept)
        return task

    def guarded(self, action: Callable[[], object]) -> None:
        """Do something under the lock. A destructor that submits from inside leaves its task in the
        inbox, where the outer call finds it: nothing here can deadlock on itself."""
        if self.holder == threading.get_ident():
            return
        with self.lock:
            self.holder = threading.get_ident()
            try:
                action()
                while self.inbox:
                    self._accept()
            finally:
                self.holder = 0
        while self.spoiled:
            try:
                task, error = self.spoiled.popleft()
            except IndexError:
                return  # another thread was faster
            task.settle(None, error, None)

    def _accept(self) -> None:
        while self.inbox:
            task = self.inbox.popleft()
            self.tally.submitted += 1
            if task.options.max_queue_age is not None:
                limit = queue_limit(task.submitted_at, task.options.max_queue_age, None)
                assert limit is not None
                task.rejected_at = limit
                heapq.heappush(self.expiry, (limit, task.number, task))
                self._need_clock()
            self.queue.put(task)
        for _ in range(min(len(self.idle), len(self.queue))):
            self.idle.pop().wake.release()
        if self.starts.failures and self._degraded():
            self._fail_waiting()  # the thread that failed tries again by itself
        elif len(self.seats) < self.most:
            self._grow()

    def _grow(self) -> None:
        states = [seat.state for seat in self.seats.values()]
        awake = states.count("idle") - len(self.idle)  # called, about to take a task
        crew = Crew(
            idle=[(seat.identity, seat.idle_since) for seat in self.idle],
            busy=states.count("busy"),
            starting=states.count("starting") + awake,
            waiting=len(self.queue),
        )
        least = 0 if self.closing else self.least
        bounds = Bounds(least, self.most, self.options.idle_timeout)
        for _ in range(plan(crew, bounds, time.monotonic()).start):
            seat = Seat(next(self.identities))
            self.seats[seat.identity] = seat
            name = f"millpond-{self.options.name}-{seat.identity}"
            thread = threading.Thread(target=work, args=(self, seat), name=name)
            self.threads.add(thread)
            try:
                thread.start()
            except RuntimeError as error:  # the system gives us no more
                self.threads.discard(thread)
                del self.seats[seat.identity]
                self.starts = after_failure(self.starts, text_of(error), time.monotonic())
                if not self.seats:
                    self._fail_waiting()
                return

    # --- what the threads do -----------------------------------------------------------------------
    def next_task(self, seat: Seat) -> Task | None:
        """The next task for a thread, or None when it should end. Blocks while there is none."""
        while True:
            task = self._take(seat)
            if task is not None or seat.state == "dead":
                return task
            if not seat.wake.acquire(timeout=-1 if self.least >= self.most else self.options.idle_timeout):
                self._unrest(seat)

    def _take(self, seat: Seat) -> Task | None:
        """Count the task that has ended, and take the next one, in one go."""

        def action() -> None:
            ended, seat.task = seat.task, None
            if ended is not None:
                run = time.monotonic_ns() - seat.started
                self.tally.add(seat.started - ended.submitted, run, failed=seat.failed)
                seat.done += 1
                seat.errored += seat.failed
            while len(self.queue) and len(self.seats) <= self.most:
                task = self.queue.take()
                if self.begin(task):
                    seat.task, seat.state, seat.started = task, "busy", time.monotonic_ns()
                    return
            self._rest_or_leave(seat)

        self.guarded(action)
        return seat.task

    def _unrest(self, seat: Seat) -> None:
        """Nobody called for a while: leave the stack, unless a call came just now."""

        def action() -> None:
            if seat in self.idle:
                self.idle.remove(seat)
            else:
                seat.wake.acquire(blocking=False)

        self.guarded(action)

    def _rest_or_leave(self, seat: Seat) -> None:
        now = time.monotonic()
        if seat.state != "idle":
            seat.state, seat.idle_since = "idle", now
        tired = now - seat.idle_since >= self.options.idle_timeout and len(self.seats) > self.least
        if (self.closing and not len(self.queue)) or tired or len(self.seats) > self.most:
            seat.state = "dead"
            seat.left_for = "shutdown" if self.closing else "idle" if tired else "resize"
            del self.seats[seat.identity]
        else:
            self.idle.append(seat)

    def begin(self, task: Task) -> bool:
        """Take a task out of the line for good: to run it now, or because nobody wants it any more."""
        leave_queue(self.room, task)
        self.ended_in_line.take(task)
        if task._state is CANCELLED:
            task.tell_cancelled()
        if task._state is not PENDING:
            return False
        task._state = RUNNING
        if task.spoiled is not None:
            self.spoiled.append((task, task.spoiled))
            return False
        if task.rejected_at is not None and time.monotonic() >= task.rejected_at:
            self.tally.expired += 1
            self.spoiled.append((task, expired_error(task.name, task, time.monotonic())))
            return False
        return True

    def started(self, seat: Seat) -> None:
        """A thread has run its initializer."""
        with self.lock:
            failures = self.starts.failures
            self.starts = after_success()
        self.events.publish(WorkerStarted(seat.native_id))
        if failures >= PATIENCE:
            self.events.publish(PoolRecovered(failures))

    def failed_to_start(self, seat: Seat, error: BaseException) -> None:
        """A thread's initializer raised: after a few in a row, whoever waits is told why."""
        cause = f"the initializer raised\n{describe(error)}"

        def action() -> None:
            self.seats.pop(seat.identity, None)
            self.starts = after_failure(self.starts, cause, time.monotonic())
            if self._degraded() or self.closing:
                self._fail_waiting()

        self.guarded(action)
        delay = max(0.0, self.starts.next_try_at - time.monotonic())
        self.events.publish(WorkerFailedToStart(cause, self.starts.failures, delay))
        if is_degraded(self.starts, 0):
            self.events.publish(PoolBecameDegraded(cause))
        self.guarded(self._fail_waiting if self.finished.wait(delay) else self._grow)

    def _degraded(self) -> bool:
        ready = sum(1 for seat in self.seats.values() if seat.state in ("busy", "idle"))
        return is_degraded(self.starts, ready)

    def _fail_waiting(self) -> None:
        while len(self.queue):
            task = self.queue.take()
            if self.begin(task):
                cause = f"{task.name} cannot run: the pool cannot start threads"
                self.spoiled.append((task, PoolDegraded(f"{cause}: {self.starts.cause}")))

    # --- queue age ----------------------------------------------------------------------------------
    def _need_clock(self) -> None:
        if self.clock is None:
            self.clock = threading.Thread(target=watch_ages, args=(self,), daemon=True, name="millpond-clock")
            self.clock.start()
        self.clock_bell.set()

    def expire(self) -> float | None:
        """Reject what has waited too long; the instant at which to look again."""
        again: list[float] = []

        def action() -> None:
            while self.expiry:
                due, _, task = self.expiry[0]
                if task._state is PENDING and due > time.monotonic():
                    again.append(due)
                    return
                heapq.heappop(self.expiry)
                if task._state is PENDING:
                    self.begin(task)
                    self.ended_in_line.add(task, self.room)

        self.guarded(action)
        return again[0] if again else None

    # --- for futures and map ------------------------------------------------------------------------
    def cancel(self, future: PoolFuture[Any]) -> bool:
        """Cancel a future whose task has not begun."""
        if self.holder == threading.get_ident():
            return False
        with self.lock:
            if future._state is not PENDING:
                return False
            future.mark_cancelled()
            self.tally.cancelled += 1
            self.ended_in_line.add(future, self.room)  # type: ignore[arg-type]
            self.ended_in_line.sweep(self.queue, self.begin)
            return True

    def drive(self, future: PoolFuture[Any], limit: float | None) -> None:
        """Nothing to read: threads settle their futures themselves."""

    def estimate(self, call: Any) -> float | None:
        """Unknown: threads need no chunks."""
        return None

    def running_for(self, future: PoolFuture[Any]) -> float | None:
        """Unknown: threads need no chunks."""
        return None

    # --- looking ------------------------------------------------------------------------------------
    def statistics(self) -> PoolStatistics:
        """Counts, durations and one row for each thread, as of now."""
        with self.lock:
            tally = self.tally.copy()
            rows = tuple(self._row(seat) for seat in self.seats.values())
            queued = len(self.queue) + len(self.inbox) - self.ended_in_line.count
        states = [row.state for row in rows]
        return tally.statistics(rows, states, queued)

    def _row(self, seat: Seat) -> WorkerRow:
        task = seat.task
        row = WorkerRow(
            pid=seat.native_id or None,
            state=seat.state,
            task=None if task is None else task.name,
            running_for=None if task is None else (time.monotonic_ns() - seat.started) / 1e9,
            rss=0,
            tasks_done=seat.done,
            age=time.monotonic() - seat.born_at,
        )
        return worker_row(row, seat.identity, seat.errored)

    def health(self) -> Health:
        """ok, degraded or failed, with the reasons."""
        return health(
            closed=self.closing,
            starts=self.starts,
            queued=len(self.queue) + len(self.inbox) - self.ended_in_line.count,
            slots=self.most,
        )

    # --- steering -----------------------------------------------------------------------------------
    def kill(self, future: Future[Any]) -> bool:
        """Only a task that has not begun can be stopped."""
        if not isinstance(future, Task) or future._owner is not self:
            raise ValueError("this future belongs to another pool")
        if future.cancel():
            return True
        if future.done():
            return False
        raise OptionError("a running task cannot be killed with kind='thread': use kind='process'")

    def resize(self, least: int, most: int) -> None:
        """New bounds; surplus threads end when they are idle."""

        def action() -> None:
            self.least, self.most = least, most
            self._call_all()
            self._grow()

        self.guarded(action)

    def shutdown(self, *, wait: bool, cancel: bool, timeout: float | None) -> None:
        """Stop accepting, let the work end, then the threads."""
        if self.owner_pid != os.getpid():
            return
        self.close_quietly(os.getpid())
        if cancel:
            self._cancel_waiting()
        if timeout is None:
            if wait:
                self._join(None)
        elif wait:
            self._join_until(timeout)
        else:
            threading.Thread(target=self._join_until, args=(timeout,), daemon=True).start()

    def _join_until(self, timeout: float) -> None:
        """Wait that long; what has not begun by then never will. Running threads cannot be stopped."""
        self._join(time.monotonic() + timeout)
        self._cancel_waiting()

    def _cancel_waiting(self) -> None:
        """Cancel what nobody is on the way to: threads that are starting or were called have their task."""
        for task in self._take_all():
            task.cancel()
            self.guarded(partial(self.begin, task))

    def _call_all(self) -> None:
        while self.idle:
            self.idle.pop().wake.release()

    def _take_all(self) -> list[Task]:
        found: list[Task] = []

        def action() -> None:
            coming = sum(seat.state != "busy" for seat in self.seats.values()) - len(self.idle)
            while len(self.queue):
                found.append(self.queue.take())
            for task in found[:coming]:
                self.queue.put(task)
            del found[:coming]

        self.guarded(action)
        return found

    def _join(self, until: float | None) -> None:
        for thread in list(self.threads):
            if thread is not threading.current_thread():
                thread.join(None if until is None else max(0.0, until - time.monotonic()))

    def close_quietly(self, owner: int) -> None:
        """Accept no more; the threads end when the line is empty."""
        if owner != os.getpid():
            return

        def action() -> None:
            self.closing = True
            self._call_all()

        self.guarded(action)
        self.clock_bell.set()
        self.finished.set()

    def give_up(self) -> None:
        """The program ends by Ctrl-C: what has not begun never will; threads cannot be stopped."""
        self._cancel_waiting()

    def disown(self) -> None:
        """After a fork, in the child: the threads are the parent's."""
        self.closing = True
        self.finished.set()

    def stop_workers(self, *, force: bool) -> None:
        """Threads cannot be signalled."""
        raise OptionError("threads cannot be terminated or killed: use kind='process'")


def work(engine: ThreadEngine, seat: Seat) -> None:
    """The life of one thread."""
    seat.native_id = threading.get_native_id()
    options = engine.options
    try:
        if options.initializer is not None:
            options.initializer(*options.initargs)
    except BaseException as error:
        engine.failed_to_start(seat, error)
        return
    engine.started(seat)
    while (task := engine.next_task(seat)) is not None:
        run(seat, task)
        del task
    engine.threads.discard(threading.current_thread())
    engine.events.publish(WorkerStopped(seat.native_id, seat.left_for))


def run(seat: Seat, task: Task) -> None:
    """Run one task and settle its future; nothing it raises may end the thread."""
    call, args, kwargs = task.body
    try:
        value = call(*args, **kwargs)
    except BaseException as error:
        seat.failed = True
        del call, args, kwargs
        task.settle(None, error, None)
        del task
        error = None  # type: ignore[assignment]
    else:
        seat.failed = False
        del call, args, kwargs
        task.settle(value, None, None)


def watch_ages(engine: ThreadEngine) -> None:
    """Reject stale tasks even while every thread is busy."""
    while not engine.closing or engine.expiry:
        engine.clock_bell.clear()
        due = engine.expire()
        engine.clock_bell.wait(None if due is None else max(0.0, due - time.monotonic()))
