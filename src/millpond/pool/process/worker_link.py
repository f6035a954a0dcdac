"""The parent's end of one worker: its socket, its shared page, its tickets and what it holds.

Sends without ever blocking, receives what is there, and keeps the books of tasks in flight. Called with
the engine's lock held. It decides nothing about which task goes where, or when a worker must go.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

from millpond.errors import Death
from millpond.pool.channel import frames as wire
from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.shared_page import Page, Regions
from millpond.pool.task import Task
from millpond.pool.worker.main import take_buffers
from millpond.pool.worker.result_writer import copy_in, tail_table
from millpond.pool.worker.template import DUMP_SIGNAL, Ends
from millpond.rules.pool.dispatch import learn
from millpond.rules.pool.stall import Stall
from millpond.system.kernel import (
    CLOEXEC,
    NONBLOCK,
    SEMAPHORE,
    eventfd,
    eventfd_read,
    eventfd_write,
    pidfd_send_signal,
)

KNOWN = 256  # functions a worker remembers
OUTPUT_KEPT = 8192
ORDERED = os.uname().machine in ("x86_64", "i686")  # stores are seen in the order they were made


# The end of one task, still pickled: (task, verdict, payload, buffers). A plain tuple, for speed.
Answer = tuple[Task, int, Any, Any]


class Doom(NamedTuple):
    """A task that must be stopped, and the error its future gets."""

    number: int
    reason: str  # timeout, memory, killed
    due_at: float
    error: Callable[[BaseException | None], BaseException]
    spares: bool = True  # its neighbours, if it can be cancelled alone


class Link:
    """One worker, seen from the parent."""

    # How a worker's life begins; each changes at most a few times in it.
    pid = 0
    pidfd: int | None = None
    exitcode: int | None = None
    gone_at: float | None = None  # the pidfd said so; the exit code may still be on its way
    greeted = False  # it has said that it is ready
    ready = False  # and can be watched: it may be given tasks
    draining: str | None = None  # gets no more tasks, and why
    leaving_at: float | None = None  # EXIT was sent
    leave_used = 0.0  # seconds of its time to leave
    leave_looked_at: float | None = None
    swollen = False  # large buffers have gone through its arenas since they were last emptied
    late = False  # in leaving: its stack was asked for
    evicted = False  # and it was killed
    killed_for: str | None = None
    kill_at: float | None = None  # a stack dump was asked for; kill by then
    dumped = 0
    killed_at: float | None = None  # SIGKILL was sent first
    stall: Stall | None = None  # it holds tasks, runs none, and is being watched for that
    needy: Task | None = None  # whose needs it was taking in when its tasks were taken back
    recalling = False  # tasks were recalled; nothing may be sent before it has confirmed
    stray = False
    failure: bytes | None = None
    start_error = ""  # why it could not even be begun
    closed = False
    armed = False
    driven = False  # a caller reads this worker's answers itself
    driven_at = 0.0
    lost = False  # it went down with its template
    interrupted = False  # its owner has sent it a SIGTERM: if it dies of that, it has not crashed
    check_at: float | None = None  # when a limit of a task it holds may be reached
    consumed = 0
    load = 0.0
    sent = 0  # tasks given to this worker in its life, recalled ones not counted
    fenced: Task | None = None  # a task here that must stop at the fence; None: no such, no fence
    failed = 0  # tasks whose value says that they failed, by whoever can read it

    def __init__(self, identity: int, name: str, *, capture: bool, concurrency: int) -> None:
        self.identity = identity
        self.concurrency = concurrency
        self.output: int | None = None
        self._their_output: int | None = None
        with ExitStack() as undo:  # out of descriptors half-way: none may be lost
            self.page = Page.create(f"millpond-{name}")
            undo.callback(self.page.close)
            self.tickets = eventfd(0, NONBLOCK | SEMAPHORE | CLOEXEC)
            undo.callback(os.close, self.tickets)
            self.bell = eventfd(0, NONBLOCK | CLOEXEC)
            undo.callback(os.close, self.bell)
            self.sock, self._theirs = socket.socketpair()
            undo.callback(self.sock.close)
            undo.callback(self._theirs.close)
            if capture:
                self.output, self._their_output = os.pipe2(os.O_CLOEXEC)
                os.set_blocking(self.output, False)
            undo.pop_all()
        self.sock.setblocking(False)
        self.fd = self.sock.fileno()
        self.printed = b""
        self.reader = wire.FrameReader(self.sock)
        self.frames = self.answered = 0  # frames received so far; calls whose end has been heard of
        self.inflight: dict[int, Task] = {}
        self.committing: list[Task] = []  # being sent right now
        self.known: set[int] = set()
        self.defined: set[int] = set()  # numbers of definitions that it has been sent
        self.out: deque[memoryview] = deque()
        self.regions = Regions(layout.ARENA_BYTES)
        self.born_at = time.monotonic()
        self.idle_since = self.fed_at = self.born_at
        self.measured_at = self.born_at
        self.news: list[wire.Frame] = []  # frames for the dispatcher
        self.cancelled: dict[int, Doom] = {}  # async tasks told to stop, and why
        self.doomed: list[tuple[Task, Doom]] = []  # tasks this worker is being killed for
        self.poll = select.poll()
        self.poll.register(self.bell, select.POLLIN)

    # --- starting ---------------------------------------------------------------------------------
    def highest_descriptor(self) -> int:
        """The highest number among our descriptors."""
        return max(self.page.descriptor, self.tickets, self.bell, self.fd, self.output or 0)

    def ends(self) -> Ends:
        """What the worker process must be given."""
        return Ends(self._theirs, self.page.descriptor, self.tickets, self.bell, self._their_output)

    def close_ends(self) -> None:
        """Our copies of the worker's ends, once it has its own."""
        self._theirs.close()
        if self._their_output is not None:
            os.close(self._their_output)
            self._their_output = None

    def introduce(self, definitions: Any, data: bytes) -> None:
        """Tell a new worker what it is; `data` is the pickled setup."""
        self._define_main(definitions)
        self._send(wire.SETUP, data)

    # --- sending ----------------------------------------------------------------------------------
    def send_tasks(self, tasks: list[Task]) -> None:
        """Give tasks to the worker, in this order. Tickets first: a worker that reads a task without a
        ticket would take it for recalled. If this is interrupted, nothing has left yet, and the link
        is not to be used again."""
        self.committing = tasks
        bodies: list[bytes] = []
        for task in tasks:
            function = task.function
            if function.number and function.number not in self.known:
                self._flush_bodies(bodies)
                self._define(function)
            task.link = self
            self.inflight[task.number] = task
            self.load += task.estimate
            packed = task.packed
            if packed is None:
                bodies.append(task.body)
                continue
            self._flush_bodies(bodies)
            if packed.definitions:
                self._define_main(packed.definitions)
            if packed.buffers:
                self._send_large(task)
            else:
                bodies.append(task.body)
        self.sent += len(tasks)
        eventfd_write(self.tickets, len(tasks))
        self._flush_bodies(bodies)
        self.committing = []
        self.push()

    def _flush_bodies(self, bodies: list[bytes]) -> None:
        if bodies:
            data = b"".join(bodies)
            self.out.append(memoryview(wire.FRAME.pack(wire.TASKS, len(data), 0) + data))
            bodies.clear()

    def _send_large(self, task: Task) -> None:
        """Buffers go through the arena if there is room, else behind the frame on the socket."""
        assert task.packed is not None
        buffers = task.packed.buffers
        total = sum((part.raw.nbytes + 63) & ~63 for part in buffers)
        region = self.regions.take(total) if total <= layout.ARENA_BYTES else None
        inline: list[memoryview] = []
        if region is None:
            table, inline = tail_table(list(buffers)), [part.raw for part in buffers]
        else:
            task.region, offset = region
            self.swollen = True
            table = copy_in(buffers, self.page.arena_in, offset)
        number, submitted, function, length, flags = wire.TASK.unpack_from(task.body)
        header = wire.TASK.pack(number, submitted, function, length + len(table), flags)
        count = struct.pack("<I", len(buffers))
        body = b"".join((header, task.body[wire.TASK.size :], table, count))
        self._queue(wire.LARGE, body, inline)

    def _define(self, function: Any) -> None:
        clear = len(self.known) >= KNOWN
        if clear:
            self.known.clear()
            self.defined.clear()
        self.known.add(function.number)
        if function.definitions:
            self._define_main(function.definitions)
        self._queue(
            wire.DEFINE, struct.pack("<BBQ", clear, function.by_value, function.number) + function.data
        )

    def _define_main(self, definitions: Any) -> None:
        if len(self.defined) > 8 * KNOWN:
            self.defined.clear()  # it ignores what it has already
        for definition in definitions:
            if definition.number not in self.defined:
                self.defined.add(definition.number)
                self._queue(wire.MAIN, definition.data)

    def _send(self, kind: int, body: bytes) -> None:
        self._queue(kind, body)
        self.push()

    def _queue(self, kind: int, body: bytes, inline: Any = ()) -> None:
        tail = sum(part.nbytes for part in inline)
        self.out.append(memoryview(wire.FRAME.pack(kind, len(body), tail) + body))
        self.out.extend(inline)

    def push(self) -> bool:
        """Write what the socket takes; True when nothing is left. Never blocks."""
        out = self.out
        try:
            while out:
                part = out[0]
                sent = self.sock.send(part)
                if sent < part.nbytes:
                    out[0] = part[sent:]
                else:
                    out.popleft()
        except BlockingIOError:
            return False
        except OSError:  # it is dying: its pidfd will say so
            out.clear()
        return True

    # --- receiving --------------------------------------------------------------------------------
    def collect(self, answers: deque[Answer]) -> None:
        """Take every answer that is there; the other frames become news for the engine.

        Silences the bell first: whatever is written after that rings again. The socket is only looked
        at when the page says that a frame has begun.
        """
        try:
            eventfd_read(self.bell)
        except BlockingIOError:
            pass
        while self.frames < self.page.words[layout.FRAMES] or self.reader.partial:
            try:
                frames = self.reader.read()
            except (BlockingIOError, EOFError, OSError):
                break
            self.frames += len(frames)
            for frame in frames:
                if frame.kind == wire.RESULT:
                    self._take_result(frame, answers)
                else:
                    self.news.append(frame)
            self.reader.torn = False
        self._take_ring(answers)
        if self.fenced is not None:
            self._ease_fence()

    def seen_within(self, seconds: float) -> bool:
        """Watch for an answer without sleeping. Only where the ring's bytes are visible no later than its
        counter: elsewhere the bell must order them."""
        if not seconds or not ORDERED or len(self.inflight) != 1:
            return False
        words, seen, until = self.page.words, self.consumed, time.monotonic() + seconds
        try:
            while words[layout.WRITTEN] == seen:
                if time.monotonic() > until:
                    return False
        except ValueError:  # the worker died and was buried meanwhile
            return False
        return True

    def _take_ring(self, answers: deque[Answer]) -> None:
        words = self.page.words
        written, position = words[layout.WRITTEN], self.consumed
        if position == written:
            return
        if not 0 < written - position <= layout.RING_BYTES:
            raise ValueError("the ring's counter makes no sense")
        memory, unpack, size = self.page.memory, wire.ANSWER.unpack_from, wire.ANSWER.size
        inflight, keep = self.inflight, answers.append
        ring, base = layout.RING_BYTES, layout.STATUS_BYTES
        task, run = None, 0
        while position < written:
            offset = position % ring
            if ring - offset < size:
                position += ring - offset
                continue
            number, run, length, verdict = unpack(memory, base + offset)
            if not number:
                position += ring - offset
                continue
            start = base + offset + size
            position += size + length
            task = inflight.get(number)
            if task is None:
                self.stray = True
                continue
            # Kept first and struck off second: an interrupt between the two must not lose it
            keep((task, verdict, memory[start : start + length], ()))
            del inflight[number]
            self.answered += task.items or 1
            self.load -= task.estimate
            if task.region is not None:
                self._free(task)
            if self.cancelled:
                task.doom = self.cancelled.pop(number, None)
        words[layout.CONSUMED] = self.consumed = position
        if task is not None:
            self._learn(task, run)

    def _take_result(self, frame: wire.Frame, answers: deque[Answer]) -> None:
        body = frame.body
        number, run, length, verdict = wire.ANSWER.unpack_from(body)
        (count,) = struct.unpack("<I", body[-4:])
        payload = body[wire.ANSWER.size : wire.ANSWER.size + length]
        table = body[wire.ANSWER.size + length : -4]
        buffers = take_buffers(table, count, self.page.arena_out, frame.tail, views=False, lasting=True)
        if count and wire.BUFFER.unpack_from(table)[0] >= 0:
            self.page.words[layout.ARENA_FREED] += 1
            self.swollen = True
        task = self.inflight.pop(number, None)
        if task is None:
            self.stray = True
            return
        self.load -= task.estimate
        self._free(task)
        task.doom = self.cancelled.pop(number, None)
        self.answered += task.items or 1
        answers.append((task, verdict, payload, buffers))
        self._learn(task, run)

    def _free(self, task: Task) -> None:
        if task.region is not None:
            self.regions.give_back(task.region)
            task.region = None

    def _learn(self, task: Task, run: int) -> None:
        """One measurement a look: enough to follow a function, cheap enough for the shortest."""
        if not self.inflight:
            self.load = 0.0
        measured = run / 1e9 / (task.items or 1)
        task.function.estimate = learn(task.function.estimate, measured)

    # --- recalling --------------------------------------------------------------------------------
    def tickets_left(self) -> int:
        """Take all tickets that the worker has not; those tasks will not begin over there."""
        count = 0
        try:
            while True:
                eventfd_read(self.tickets)
                count += 1
        except BlockingIOError:
            return count

    def takes_in(self) -> bool:
        """Is it taking in what its first task needs, which has not begun?"""
        return bool(self.page.words[layout.TAKING_IN]) and not self.running()

    def recall(self) -> list[Task]:
        """Take back every task that has not begun, in the order it was sent.

        A task whose needs the worker is taking in stays: where they hang they would hang in the next worker,
        too, and in one more with each recall, until none is left. Shown in
        test_what_one_task_needs_holds_up_one_worker_at_a_time.
        """
        left = self.tickets_left()
        if left and self.takes_in():
            left -= 1
            eventfd_write(self.tickets, 1)
        tasks = self.take_back(left)
        if tasks:
            self.recalling = True
            self._send(wire.RESET, b"")
        return tasks

    def take_back(self, count: int) -> list[Task]:
        """Strike the last `count` tasks off the books."""
        tasks = [self.inflight.popitem()[1] for _ in range(min(count, len(self.inflight)))]
        for task in tasks:
            task.link = None
            self.load -= task.estimate
            self.sent -= 1
            self._free(task)
        if self.fenced is not None:
            self._ease_fence()
        tasks.reverse()
        return tasks

    def running(self) -> dict[int, float]:
        """The tasks that have begun, with the instants they began; read from the page, no message."""
        found: dict[int, float] = {}
        for slot in range(self.concurrency):
            number, start = self.page.running(slot)
            if number in self.inflight:
                found[number] = start / 1e9
        return found

    def running_for(self, now: float) -> float:
        """How long the task of a one-task worker has run; 0.0 if none has begun."""
        number, start = self.page.running(0)
        return now - start / 1e9 if number in self.inflight else 0.0

    def send_cancel(self, number: int) -> None:
        """Ask an async worker to cancel one task."""
        self._send(wire.CANCEL, number.to_bytes(8, "little"))

    # --- the fence --------------------------------------------------------------------------------
    def put_fence(self, task: Task, until: int) -> None:
        """A task is about to be sent that must have stopped by then (ns since boot)."""
        self.fenced = task
        self.page.words[layout.FENCE] = until

    def move_fence(self, until: int) -> None:
        """The fence stands elsewhere from now on, if this worker still has one."""
        if self.fenced is not None:
            self._ease_fence()
        if self.fenced is not None:
            self.page.words[layout.FENCE] = until

    def _ease_fence(self) -> None:
        """Take the fence down once nothing is left that it stood for: the neighbours may run on. While one
        fenced task is known to be here the others need not be looked at."""
        known = self.fenced
        if known is not None and known.number in self.inflight:
            return
        held = [*self.inflight.values(), *(task for task, _ in self.doomed)]  # the latter still run
        self.fenced = next((task for task in held if task.fenced), None)
        if self.fenced is None:
            self.page.words[layout.FENCE] = 0

    # --- ending -----------------------------------------------------------------------------------
    def leave(self, now: float) -> None:
        """Ask the worker to go; it holds nothing."""
        self.leaving_at = now
        self._send(wire.EXIT, b"")

    def signal(self, number: int) -> None:
        """Signal the worker process itself."""
        if self.pidfd is not None:
            try:
                pidfd_send_signal(self.pidfd, number)
            except ProcessLookupError:
                return

    def ask_for_stack(self) -> None:
        """Have the worker dump its Python stacks; works while it holds the GIL, not with signals blocked."""
        self.signal(DUMP_SIGNAL)

    def kill(self) -> None:
        """SIGKILL, now. The group goes too: what the task started must not outlive it."""
        if self.killed_at is None:
            self.killed_at = time.monotonic()
        self.signal(signal.SIGKILL)
        if self.pid:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def read_output(self) -> bool:
        """Keep the last of what the worker printed; True when nothing can follow."""
        if self.output is None:
            return False
        try:
            while data := os.read(self.output, 65536):
                self.printed = (self.printed + data)[-OUTPUT_KEPT:]
            return True
        except BlockingIOError:
            return False

    def death(self, *, ran_for: float | None, suspects: int, out_of_memory: bool) -> Death:
        """Everything known about the end of this worker."""
        code = self.exitcode
        self.read_output()
        return Death(
            pid=self.pid,
            exitcode=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            ran_for=ran_for,
            suspects=suspects,
            out_of_memory=out_of_memory,
            output=self.printed.decode("utf-8", "replace"),
            stack=self.page.stack(),
            lost=self.lost,
        )

    def close(self) -> None:
        """Give back every descriptor and the memory. The worker is dead."""
        if self.closed:
            return
        self.closed = True
        self.close_ends()
        self.out.clear()
        self.sock.close()
        os.close(self.tickets)
        os.close(self.bell)
        for descriptor in (self.output, self.pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self.output = self.pidfd = None
        self.page.close()
