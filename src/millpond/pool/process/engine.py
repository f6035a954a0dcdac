"""The heart of a process pool: takes tasks in, gives them to workers, settles their futures.

Any thread may drive it. `submit()` leaves its task in the inbox and, if nobody holds the lock, takes a
turn itself: that is how a task reaches an idle worker without a thread hop. A turn never blocks and never
runs user code; answers are unpickled and callbacks run after the lock is released. Submitting and waiting
only ever try the lock, and nobody waits for a lock of its own: a destructor can never deadlock.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import marshal
import os
import select
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures._base import CANCELLED, PENDING, RUNNING
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millpond.errors import PoolClosed
from millpond.events import Event, Events
from millpond.pool.admission import belongs_to_call, expired_error, leave_queue, wait_for_room
from millpond.pool.at_exit import exiting
from millpond.pool.channel import frames
from millpond.pool.channel.functions import Functions
from millpond.pool.channel.pickling import PLAIN, pack
from millpond.pool.future import PoolFuture
from millpond.pool.options import PoolOptions, TaskOptions
from millpond.pool.process.results import Settling
from millpond.pool.process.worker_link import Link
from millpond.pool.queue_room import Room
from millpond.pool.statistics import Tally
from millpond.pool.task import Task
from millpond.pool.task_queue import make_queue
from millpond.rules.pool.dispatch import fits, hungry, quota
from millpond.rules.pool.limits import queue_limit
from millpond.rules.pool.restart import Respawns, Starts
from millpond.rules.pool.size import task_budget
from millpond.system.kernel import CLOEXEC, NONBLOCK, eventfd, eventfd_write

if TYPE_CHECKING:
    from millpond.pool.process.starters import Hub

logger = logging.getLogger("millpond")
# What damaged bytes lead to; not every Exception, which a signal handler of the user's may raise here
UNREADABLE = (ValueError, TypeError, IndexError, OverflowError, MemoryError, OSError, struct.error)
READ = select.EPOLLIN | select.EPOLLONESHOT
TICK = 0.01  # how soon answers that nobody rang for are found, and idle hands get work
LOOK = 0.1  # how soon a worker that does not begin its task is noticed
MEMORY_POLL = 0.1


class Engine(Settling):
    """State and turns of one pool of worker processes."""

    wanted: int | None = None  # a size decided from outside; None: by what waits
    is_last = False  # this crew: nobody takes the place of those who leave
    keep = 0  # workers that stay however idle they are, beside `least`
    known_at: Callable[[], float] | None = None  # when it was last known whether there is work, if not always
    failure = ""  # why the dispatcher has failed, if it has
    live = 0  # workers that take tasks or will, as of the last look at the size
    start_cost: float | None = None  # seconds from the wish for a worker until it is ready

    printer: Callable[[Link], object] | None = None  # takes over what a worker prints

    def __init__(self, options: PoolOptions) -> None:
        super().__init__()
        self.options = options
        self.most, self.least = options.max_workers, options.min_workers
        self.idle_timeout = options.idle_timeout
        self.owner_pid = os.getpid()
        self.lock = threading.Lock()
        self.holder = 0  # the thread inside the lock
        self.inbox: deque[Task] = deque()
        self.queue = make_queue(options.queue)
        self.peek = getattr(self.queue, "peek", None)
        self.returned: deque[Task] = deque()  # recalled and retried tasks: they go first
        self.expiry: list[tuple[float, int, Task]] = []
        self.links: dict[int, Link] = {}
        self.idle: list[Link] = []  # a stack: the most recently used works first
        self.rearm: deque[Link] = deque()
        self.functions = Functions(by_value=options.mp_context is None)
        self.numbers = itertools.count(1)
        # No slots to share, no budget to keep, no memory to watch: a task needs no further thought
        self.simple = (
            options.concurrency == 1 and options.max_tasks_per_child is None and options.max_memory is None
        )
        self.news: deque[Event] = deque()
        self.events = Events(options.on_callback_error)
        self.tally = Tally()
        self.starts = Starts()
        self.respawns: Respawns | None = None  # a limit to how fast the dead are replaced, if there is one
        self.fence: int | None = None  # ns since boot: tasks that must end with the lease have until then
        self.hub: Hub | None = None  # a template shared with other pools
        self.degraded = False
        self.closing = False
        self.ended = False  # the dispatcher looks at nothing any more
        self.moving: list[Task] = []  # out of one place and not yet in the next
        self.head: Task | None = None  # the last one taken out of the line
        self.sending: Link | None = None  # to whom something is being sent
        self.hearing: Link | None = None  # whose answers are being taken
        self.shaken = False  # a turn was interrupted
        self.attention = False  # the dispatcher should look at the size of the crew
        self.eager = True  # a submit should take a turn itself
        self.wake_at = 0.0  # when the dispatcher wakes by itself
        self.fed_at = 0.0  # when a worker was last given something
        self.bell = -1
        self.room = None if options.max_queue is None else Room(options.max_queue)
        self.noted: Callable[[bytes], object] | None = None  # gets what tasks tell while they run
        self.commands: deque[Callable[[], object]] = deque()  # for the dispatcher, under the lock
        self.dispatcher: weakref.ref[threading.Thread] | None = None  # weak: it must not lie about with us
        self.upkeep: Any = None
        self.up = threading.Event()  # the dispatcher has taken its first round
        self.finished = threading.Event()
        self.kill_at: float | None = None  # shutdown's deadline

    # --- taking tasks in ----------------------------------------------------------------------------
    def submit(
        self, call: Any, args: Any, kwargs: Any, options: TaskOptions, items: int = 0
    ) -> PoolFuture[Any]:
        """Accept a call. Trouble with pickling it lands on its future, not here."""
        if self.closing:
            raise self._refusal()
        if self.dispatcher is None:
            self.start()
        place = None
        if self.room is not None:
            may_block = self.dispatcher is None or threading.current_thread() is not self.dispatcher()
            place = wait_for_room(self.room, self.options, lambda: self.closing, may_block=may_block)
        number = next(self.numbers)
        task = Task(number, self, options, time.monotonic_ns())
        if place is not None:
            task.place, place = place, None
        try:
            task.function = self.functions.find(call)
            if kwargs or items or not self._pack_plainly(task, args):
                task.items = items
                self._pack(task, call, args, kwargs)
        except BaseException as error:
            # Whatever it is, the place in a bounded queue must not be lost: each lost one makes the queue
            # shorter for good. Shown in test_a_call_that_cannot_be_pickled_keeps_no_place_in_the_queue
            leave_queue(self.room, task)
            if not belongs_to_call(error):
                raise
            task.settle(None, error, None)
            return task
        self.inbox.append(task)
        if self.eager or options.ages or not number & 31:
            self.pump()
        if self.ended:
            self._withdraw(task)
        return task

    def accept(self, tasks: Sequence[Task]) -> None:
        """Take in tasks that were packed by their owner, many at once; they settle as their class says."""
        if self.closing:
            raise self._refusal()
        if self.dispatcher is None:
            self.start()
        self.inbox.extend(tasks)
        self.pump()
        if self.ended:
            for task in tasks:
                self._withdraw(task)

    def _pack_plainly(self, task: Task, args: Any) -> bool:
        """The short way for short tasks: exact ints, floats, strings, bools and Nones are marshalled."""
        for arg in args:
            if type(arg) not in PLAIN:
                return False
        number = task.function.number
        if not number:
            return False
        data = marshal.dumps(args)
        task.body = frames.TASK.pack(task.number, task.submitted, number, len(data), frames.PLAIN) + data
        return True

    def _withdraw(self, task: Task) -> None:
        """The dispatcher ended while this task was on its way in."""
        try:
            self.inbox.remove(task)
        except ValueError:
            return  # the dispatcher found it and has settled it
        raise self._refusal()

    def start(self) -> None:
        """Start the dispatcher."""
        raise NotImplementedError

    def drive(self, future: PoolFuture[Any], limit: float | None) -> None:
        """Let a caller that waits read its own answer, for a short while."""
        raise NotImplementedError

    def close_quietly(self, owner: int) -> None:
        """Accept no more and let the work end, without waiting for it."""
        raise NotImplementedError

    def give_up(self) -> None:
        """The program ends by Ctrl-C: stop what runs."""
        raise NotImplementedError

    def disown(self) -> None:
        """After a fork, in the child: nothing of this pool works here."""
        self.closing = self.ended = True
        self.inbox.clear()
        self.rearm.clear()
        self.lock = threading.Lock()  # whoever held it is not in this process
        self.holder = 0
        self.finished.set()

    def open(self) -> None:
        """Get what the dispatcher waits on; not before it starts, so that a fork cannot share it."""
        self.owner_pid = os.getpid()
        self.epoll = select.epoll()
        self.bell = eventfd(0, NONBLOCK | CLOEXEC)
        self.epoll.register(self.bell, select.EPOLLIN)

    def _refusal(self) -> RuntimeError:
        if self.owner_pid != os.getpid():
            return PoolClosed(f"this pool belongs to process {self.owner_pid}: make your own after a fork")
        if exiting():
            return RuntimeError("cannot schedule new futures after interpreter shutdown")
        return PoolClosed("cannot schedule new futures after shutdown")

    def _pack(self, task: Task, call: Any, args: Any, kwargs: Any) -> None:
        function = task.function
        flags = frames.CHUNK if task.items else 0
        content = args
        if function.data is None:
            flags |= frames.INLINE
            content = (call, args, kwargs)
        elif kwargs:
            flags |= frames.KEYWORDS
            content = (args, kwargs)
        packed = pack(content, by_value=self.options.mp_context is None, scan=not task.items)
        data = packed.data
        if packed.buffers or packed.names:
            task.packed = packed._replace(definitions=self.functions.prepare(packed.names))
        task.body = frames.TASK.pack(task.number, task.submitted, function.number, len(data), flags) + data

    # --- turns ----------------------------------------------------------------------------------------
    def pump(self) -> None:
        """Take turns until nothing is left in the inbox, unless somebody else is at it.

        Whoever holds the lock looks at the inbox again after releasing it, so a task left behind by a
        failed try is always found.
        """
        while not self.ended and not self.shaken and self.lock.acquire(blocking=False):
            self.holder = threading.get_ident()
            try:
                self.turn(time.monotonic())
            except BaseException:
                self.shaken = True  # Ctrl-C in the middle of a turn: the dispatcher puts things right
                self.wake()
                raise
            finally:
                self.holder = 0
                self.lock.release()
            if not self.inbox and not self.rearm:
                break
        if self.attention or self.shaken:
            self.wake()

    def turn(self, now: float) -> None:
        """One round of work, with the lock held: inbox to queue, queue to workers."""
        while self.rearm:
            link = self.rearm.popleft()
            link.driven = False
            self.arm(link)
        if self.inbox and not self._hand_over(now):
            self._accept()
        if len(self.queue) or self.returned:
            self._assign(now)
        waiting = len(self.queue) + len(self.returned)
        self.eager = bool(self.idle) or len(self.links) < self.most or self.options.concurrency > 1
        if waiting and len(self.links) < (self.most if self.wanted is None else max(1, self.wanted)):
            self.attention = True

    def _hand_over(self, now: float) -> bool:
        """The short way, for a pool that waits for work: one task, straight to an idle worker."""
        task = self.inbox[0]
        if len(self.inbox) > 1 or not self.idle or self.waiting() or not self.simple or task.packed:
            return False
        link = self.idle[-1]
        unknown = not task.function.number or task.function.number not in link.known
        if unknown or len(self.links) > self.most or task.options.ages:
            return False
        self.moving = [task]
        self.inbox.popleft()
        self.tally.submitted += task.items or 1
        if self.begin(task, now):
            self.idle.pop()
            task.estimate = task.function.estimate or 0.0
            if not task.options.plain:
                self._watch_limits(link, [task], now)
            self._send(link, [task])
            link.fed_at = self.fed_at = now
            self.wake_by(now + LOOK)
            self.arm(link)
        self.moving = []
        return not self.inbox

    def _accept(self) -> None:
        inbox, put, tally = self.inbox, self.queue.put, self.tally
        while inbox:
            self.moving = [inbox[0]]
            task = inbox.popleft()
            tally.submitted += task.items or 1
            options = task.options
            if options.ages:
                limit = queue_limit(task.submitted_at, options.max_queue_age, options.deadline)
                assert limit is not None
                task.rejected_at = limit
                heapq.heappush(self.expiry, (limit, task.number, task))
                self.wake_by(limit)
            put(task)
        self.moving = []

    def _assign(self, now: float) -> None:
        """Idle workers first, then those that hold little; no more at work than the pool may have."""
        if self.options.concurrency > 1:
            self._assign_slots(now)
            return
        busy = 0
        for link in self.links.values():
            if link.inflight:
                busy += 1
        while self.idle and busy < self.most and (len(self.queue) or self.returned):
            link = self.idle.pop()
            if self._feed(link, now):
                busy += 1
            else:
                self.idle.append(link)
                return
        if self.peek is None:
            return
        for link in self.links.values():
            head = self._head(1)
            if head is None:
                return
            if link.inflight and self._open(link) and self._hungry(link, head, now):
                self._feed(link, now)

    def _hungry(self, link: Link, head: Task, now: float) -> bool:
        return hungry(len(link.inflight), link.load, head.bulky, link.running_for(now))

    def _assign_slots(self, now: float) -> None:
        """Async workers: the emptiest first, up to their number of slots."""
        open_links = [link for link in self.links.values() if self.has_room(link)]
        busy = sum(1 for link in self.links.values() if link.inflight)
        for link in sorted(open_links, key=lambda link: len(link.inflight)):
            if not self.waiting():
                return
            if not link.inflight and busy >= self.most:
                continue
            busy += not link.inflight
            if self._feed(link, now) and link in self.idle:
                self.idle.remove(link)

    def has_room(self, link: Link) -> bool:
        """May an async worker begin one more task?"""
        return self._open(link) and len(link.inflight) < self.options.concurrency

    def _open(self, link: Link) -> bool:
        return link.ready and not (link.draining or link.recalling or link.kill_at or link.gone_at)

    def _feed(self, link: Link, now: float) -> bool:
        """Send one worker what fits; False if nothing did."""
        waiting = len(self.queue) + len(self.returned)
        limit = quota(waiting, min(self.most, len(self.links)))
        budget = task_budget(self.options.max_tasks_per_child, link.identity)
        if budget is not None:
            limit = min(limit, budget - link.sent)
        batch = self._batch(link, limit, now)
        if not batch:
            return False
        self._watch_limits(link, batch, now)
        self._send(link, batch)
        self.moving = []
        if budget is not None and link.sent >= budget:
            link.draining = "tasks"
            self.attention = True
        link.fed_at = self.fed_at = now
        self.wake_by(now + (TICK if len(link.inflight) > 1 else LOOK))
        self.arm(link)
        return True

    def _send(self, link: Link, batch: list[Task]) -> None:
        self.sending = link
        if self.fence is not None:
            for task in batch:
                if task.fenced:
                    link.put_fence(task, self.fence)
                    break
        link.send_tasks(batch)
        self.sending = None

    def _batch(self, link: Link, limit: int, now: float) -> list[Task]:
        batch: list[Task] = []
        self.moving = batch
        returned, queue, slots = self.returned, self.queue, self.options.concurrency
        held, load, keep = len(link.inflight), link.load, batch.append
        while limit > 0 and (head := self._head(held if slots == 1 else 0)) is not None:
            estimate = head.function.estimate
            if head.items and estimate is not None:
                estimate *= head.items
            if not fits(held, load, estimate, head.bulky) if slots == 1 else held >= slots:
                break
            self.head = head
            task = returned.popleft() if returned else queue.take()
            if not self.begin(task, now):
                continue
            held += 1
            limit -= 1
            if estimate:
                task.estimate = estimate
                load += estimate
            keep(task)
        self.head = None
        return batch

    def _head(self, held: int) -> Task | None:
        """The next task, left where it is. A queue without peek() is only asked for idle workers."""
        if self.returned:
            return self.returned[0]
        if not len(self.queue):
            return None
        if self.peek is not None:
            return self.peek()  # type: ignore[no-any-return]
        if held:
            return None
        self.returned.append(self.queue.take())
        return self.returned[0]

    def begin(self, task: Task, now: float) -> bool:
        """Take a task out of the line for good: it is sent now, or it was cancelled or has expired."""
        if self.room is not None:
            leave_queue(self.room, task)
        state = task._state
        if state is PENDING:
            if task.spoiled is not None:
                task._state = RUNNING
                self.settle_soon(task, task.spoiled)
                return False
            if task.rejected_at is not None and now >= task.rejected_at:
                self._expire(task, now)
                return False
            task._state = RUNNING
            return True
        if state is RUNNING:  # it has been out before: recalled, or its worker died
            if task.rejected_at is None or now < task.rejected_at or task.crashes:
                return True
            self._expire(task, now)
            return False
        self.ended_in_line.take(task)
        if state is CANCELLED:
            task.confirm_cancel(self.later)
            if self.later.cancelled:
                self.wake()
        return False

    def _expire(self, task: Task, now: float) -> None:
        task._state = RUNNING  # from here on cancel() is refused
        self.tally.expired += 1
        self.settle_soon(task, expired_error(task.name, task, now))

    def _watch_limits(self, link: Link, batch: list[Task], now: float) -> None:
        soonest = link.check_at
        if self.options.max_memory is not None:
            self.wake_by(now + MEMORY_POLL)
        for task in batch:
            options = task.options
            if options.plain:
                continue
            if options.timeout is not None:
                due = now + options.timeout
                soonest = due if soonest is None or due < soonest else soonest
            deadline_at = task.deadline_at
            if deadline_at is not None:
                soonest = deadline_at if soonest is None or deadline_at < soonest else soonest
        if soonest is not None:
            link.check_at = soonest
            self.wake_by(soonest)

    def cancel(self, future: PoolFuture[Any]) -> bool:
        """Cancel a future whose task has not been sent; True if this call did it."""
        if self.holder == threading.get_ident():
            return False  # a destructor inside our own turn: say no rather than deadlock
        with self.exclusive():
            if future._state is not PENDING:
                return False
            future.mark_cancelled()
            self.tally.cancelled += 1
            self.ended_in_line.add(future, self.room)  # type: ignore[arg-type]
            if self.ended_in_line.are_many(self.queue):
                self.call_soon(self._sweep)
            return True

    def _sweep(self) -> None:
        self.ended_in_line.sweep(self.queue, lambda task: self.begin(task, time.monotonic()))

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock, and then do what others have left in the inbox meanwhile: whoever fails to get
        the lock relies on it."""
        if self.holder == threading.get_ident():
            yield  # a destructor inside our own turn: it may look, and must not wait for itself
            return
        with self.lock:
            self.holder = threading.get_ident()
            try:
                yield
            finally:
                self.holder = 0
        if self.inbox or self.rearm:
            self.pump()

    def waiting(self) -> int:
        """How many tasks nobody holds."""
        return len(self.queue) + len(self.returned)

    def take_next(self) -> Task:
        """Take the next task out of the line."""
        return self.returned.popleft() if self.returned else self.queue.take()

    # --- hearing --------------------------------------------------------------------------------------
    def collect(self, link: Link, now: float) -> None:
        """Take what a worker has to say; frames that are not answers wait for the dispatcher."""
        self.hearing = link
        try:
            link.collect(self.unsettled)
        except UNREADABLE:  # what it says makes no sense: it is not to be trusted any more
            logger.exception("Worker %d sent something unreadable and is killed", link.pid)
            link.stray = True
            link.kill()
        self.hearing = None
        if link.news or link.stray:
            self.attention = True
        if not link.inflight:
            self.rest(link, now)

    def rest(self, link: Link, now: float) -> None:
        """A worker holds nothing: it is idle, or it may go."""
        if link.draining is not None:
            self.attention = True
        elif not self._open(link):
            self.arm(link)
        elif link not in self.idle:
            link.idle_since = now
            link.check_at = None
            self.idle.append(link)
            if len(self.idle) > 1 or self.least < self.most:
                self.attention = self.attention or self._may_share()

    def _may_share(self) -> bool:
        return any(len(link.inflight) > 1 for link in self.links.values()) or self.least < self.most

    def call_soon(self, command: Callable[[], object]) -> None:
        """Have the dispatcher do something under the lock, soon."""
        self.commands.append(command)
        self.wake()

    # --- waking -------------------------------------------------------------------------------------
    def arm(self, link: Link) -> None:
        """Have the dispatcher read this worker, unless a caller does."""
        if link.closed or link.driven:
            return
        if link.out or link.reader.partial:
            wanted = (select.EPOLLOUT if link.out else 0) | (select.EPOLLIN if link.reader.partial else 0)
            self.epoll.modify(link.fd, wanted | select.EPOLLONESHOT)
        if not link.armed:  # an idle one, too: it may say that it is worn out
            self.epoll.modify(link.bell, READ)
            link.armed = True

    def wake(self) -> None:
        """Have the dispatcher take a turn."""
        try:
            eventfd_write(self.bell, 1)
        except (OSError, ValueError):
            return  # already rung, or closed for good

    def wake_by(self, instant: float) -> None:
        """Make sure the dispatcher is awake at that instant."""
        if instant < self.wake_at:
            self.wake_at = instant
            self.wake()
