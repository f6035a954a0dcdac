"""The main loop of a worker process: take tasks, run them, leave the answers in shared memory.

A task may begin only after its ticket was taken from the shared counter; the parent takes tickets back
when it recalls tasks that have not begun. The kernel decides each race, so no task runs twice and none
is lost, even when this process is stopped in the middle of anything. Nothing here decides policy.
"""

from __future__ import annotations

import marshal
import os
import pickle
import socket
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from itertools import starmap
from multiprocessing.process import current_process
from types import CoroutineType
from typing import Any, NamedTuple, NoReturn

from millpond.pool.channel import frames
from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.buffers import fresh
from millpond.pool.channel.remote_errors import Unreadable
from millpond.pool.channel.shared_page import Page
from millpond.pool.proc import own_memory
from millpond.pool.worker import main_module
from millpond.pool.worker.lifetime import flush
from millpond.pool.worker.result_writer import Outbox
from millpond.rules.pool.dispatch import CHUNK_WINDOW
from millpond.system.kernel import eventfd_read

ASYNC = 0x80  # CO_COROUTINE; importing inspect for it would cost every worker a megabyte
QUICK = 1_500_000  # ns: a function that last ran longer than this gets the ring emptied first


class Setup(NamedTuple):
    """What a worker is told before its first task."""

    kind: str
    concurrency: int
    initializer: bytes | None
    views: bool
    memory_soft_limit: int | None
    max_age: float | None
    authkey: bytes  # so that what multiprocessing hands out in the parent can be opened here


# One task as it arrived: number, submitted (ns), function, flags, payload, buffers.
# A plain tuple: a worker unpacks several hundred thousand of these in a second.
Call = tuple[int, int, int, int, Any, Sequence[Any]]


NO_KEYWORDS: dict[str, Any] = {}
Initializer = tuple[Callable[..., object], Sequence[Any]]


current: Worker | None = None  # the one that this process is
farewells: list[Callable[[], object]] = []  # what is done before it ends in good order


class Leave(BaseException):
    """The worker ends in good order. Raised where no task runs, so that its loop is left behind as well."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Worker:
    """One worker process's end of the channel."""

    def __init__(self, sock: socket.socket, memory: int, tickets: int, bell: int) -> None:
        self.sock = sock
        self.page = Page(memory)
        self.tickets = tickets
        self.reader = frames.FrameReader(sock)
        self.functions: dict[int, Callable[..., Any]] = {}
        self.unread: dict[int, tuple[bool, bytes]] = {}
        self.outbox = Outbox(sock, self.page, bell)
        self.setup = Setup("process", 1, None, False, None, None, b"")
        self.born = time.monotonic()
        self.worn: str | None = None  # why it may run no further task
        self.watched = False  # is there anything to look at between tasks?
        self.forked = False
        self.statm: int | None = None
        os.register_at_fork(after_in_child=self._note_fork)

    def _note_fork(self) -> None:
        self.forked = True  # a child made by a task must never go on as if it were this worker

    # --- reading ---------------------------------------------------------------------------------
    def calls(self, frame: frames.Frame) -> list[Call]:
        """The tasks in a frame; an empty list if the frame was a command, which has been obeyed."""
        kind = frame.kind
        if kind == frames.TASKS:
            return _split(frame.body)
        if kind == frames.LARGE:
            return [self._large(frame)]
        if kind == frames.DEFINE:
            self._define(frame.body)
        elif kind == frames.MAIN:
            self._take_in(frame.body)
        elif kind == frames.RESET:
            self.outbox.send(frames.RESET_DONE, b"")
        elif kind == frames.EXIT:
            raise Leave(0)
        return []

    def _take_in(self, body: Any) -> None:
        """Unpickle what tasks need of `__main__`; the mark tells the parent what this worker may hang in."""
        words = self.page.words
        words[layout.TAKING_IN] = 1
        main_module.define(bytes(body))
        words[layout.TAKING_IN] = 0

    def _define(self, body: Any) -> None:
        clear, by_value, number = struct.unpack_from("<BBQ", body)
        if clear:
            self.functions.clear()
            self.unread.clear()
        # Unpickled inside the first task that calls it, so that a failing import is that task's error
        self.functions.pop(number, None)
        self.unread[number] = bool(by_value), bytes(body[10:])

    def _large(self, frame: frames.Frame) -> Call:
        [(number, submitted, function, flags, payload, _)] = _split(frame.body[:-4])
        (count,) = struct.unpack("<I", frame.body[-4:])
        table = len(payload) - count * frames.BUFFER.size
        buffers = take_buffers(payload[table:], count, self.page.arena_in, frame.tail, views=self.setup.views)
        return number, submitted, function, flags, payload[:table], buffers

    # --- running ---------------------------------------------------------------------------------
    def bind(self, call: Call) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
        """The function and arguments of a call; raises Unreadable if they cannot be unpickled."""
        _, _, number, flags, payload, buffers = call
        try:
            if flags & frames.PLAIN:
                content = marshal.loads(payload)  # noqa: S302  our own parent wrote it
            else:
                if flags & frames.INLINE:
                    return pickle.loads(payload, buffers=buffers)  # type: ignore[no-any-return]
                content = pickle.loads(payload, buffers=buffers) if buffers else pickle.loads(payload)
            function = self.functions.get(number) or self._load(number)
        except BaseException as error:
            raise Unreadable from error
        if flags & frames.KEYWORDS:
            return function, content[0], content[1]
        return function, content, NO_KEYWORDS

    def _load(self, number: int) -> Callable[..., Any]:
        by_value, data = self.unread[number]
        function: Callable[..., Any] = main_module.function_at(data) if by_value else pickle.loads(data)
        self.functions[number] = function
        return function

    def run(self, call: Call) -> Any:
        """Run one call to its value."""
        function = self.functions.get(call[2])
        if call[3] == frames.PLAIN and function is not None:  # the short way for short tasks
            value = function(*marshal.loads(call[4]))  # noqa: S302  our own parent wrote it
        else:
            function, args, kwargs = self.bind(call)
            if call[3] & frames.CHUNK:
                return self.run_chunk(function, *args)
            value = function(*args, **kwargs)
        if type(value) is CoroutineType:
            return run_coroutine(value)
        return value

    def run_chunk(self, function: Callable[..., Any], starred: bool, items: list[Any]) -> Any:
        """Run the items of one map chunk; the page names the window of items that is running.

        `extend` keeps what it has appended when the iterator raises, so the length of the list tells
        which item raised.
        """
        words, apply = self.page.words, starmap if starred else map
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & ASYNC:
            function = partial(_call_and_run, function)
        values: list[Any] = []
        errors: dict[int, bytes] | None = None
        while (position := len(values)) < len(items):
            words[layout.ITEM] = position
            try:
                values.extend(apply(function, items[position : position + CHUNK_WINDOW]))
            except BaseException as error:
                errors = errors or {}
                errors[len(values)] = self.outbox.pack_error(error)
                values.append(None)
        return values, errors

    def over_budget(self) -> str | None:
        """Which budget this worker has used up, looked at between tasks."""
        if self.worn is not None:
            return self.worn
        setup = self.setup
        if setup.memory_soft_limit is not None:
            if self.statm is None:
                self.statm = os.open("/proc/self/statm", os.O_RDONLY)
            rss = own_memory(os.pread(self.statm, 64, 0))
            self.page.words[layout.RSS] = rss
            if rss > setup.memory_soft_limit:
                return "memory"
        if setup.max_age is not None and time.monotonic() - self.born > setup.max_age:
            return "age"
        return None

    def wear_out(self, reason: str) -> None:
        """The task that runs is the last of this worker."""
        self.worn, self.watched = reason, True

    # --- the loop --------------------------------------------------------------------------------
    def serve(self) -> None:
        """Run tasks one after the other until told to leave."""
        while True:
            for frame in self.reader.read():
                calls = self.calls(frame)
                if calls:
                    self._run_all(calls)

    def _run_all(self, calls: list[Call]) -> None:
        words, clock, take, run = self.page.words, time.monotonic_ns, eventfd_read, self.run
        outbox, slot = self.outbox, layout.SLOTS
        waits: list[int] = []
        runs: list[int] = []
        errors = items = 0
        reason = None
        value: Any = None
        for call in calls:
            value = None  # its destructor must not run inside the next task
            try:
                take(self.tickets)
            except BlockingIOError:
                break  # recalled: this task and all behind it belong to the parent again
            start = clock()
            words[slot + 1] = start
            words[slot] = call[0]
            if outbox.last_run > QUICK:
                outbox.flush()
            try:
                value = run(call)
                good = True
            except BaseException as error:
                value, good = error, False
                errors += 1
            if self.forked:
                os._exit(0)
            end = clock()
            done = 1
            if call[3] & frames.CHUNK and good:
                done = len(value[0])
                errors += len(value[1] or ())
            outbox.answer(call[0], end - start, value, good, end, items=done)
            items += done
            waits.append(start - call[1])
            runs.append(end - start)
            if self.watched:
                value = None
                if (reason := self.over_budget()) is not None:
                    break
        # Before counting: a caller may be waiting. And before the last value is destroyed: a destructor that
        # hangs would keep an answer that is done. Shown in
        # test_a_result_whose_destructor_hangs_holds_up_no_other_task
        outbox.flush()
        value = None
        outbox.count(waits, runs, errors, items)
        if reason is not None:
            self.retire(reason)

    def retire(self, reason: str) -> None:
        """Stop taking tasks and say so; the parent recalls the rest and sends EXIT."""
        self.outbox.flush()
        self.outbox.send(frames.RETIRE, reason.encode())
        while True:
            for frame in self.reader.read():
                if frame.kind in (frames.RESET, frames.EXIT):
                    self.calls(frame)


def _split(body: Any) -> list[Call]:
    calls: list[Call] = []
    keep, unpack_from, size = calls.append, frames.TASK.unpack_from, frames.TASK.size
    position, end = 0, len(body)
    while position < end:
        number, submitted, function, length, flags = unpack_from(body, position)
        position += size
        keep((number, submitted, function, flags, body[position : position + length], ()))
        position += length
    return calls


def take_buffers(
    table: Any, count: int, arena: memoryview, tail: memoryview, *, views: bool, lasting: bool = False
) -> list[Any]:
    """The buffers a payload refers to: the receiver's own memory, or views where those will do.

    `lasting`: the payload is unpickled after the arena was given back, so nothing may point into it.
    """
    buffers: list[Any] = []
    used = 0
    for offset, length, transient in frames.BUFFER.iter_unpack(table):
        if offset < 0:
            buffers.append(tail[used : used + length])
            used += length
            continue
        part = arena[offset : offset + length]
        if transient and lasting:
            buffers.append(bytes(part))
        elif views or transient:
            buffers.append(part.toreadonly())
        else:
            own = fresh(length)
            own[:] = part
            buffers.append(own)
    if len(buffers) != count:
        raise ValueError("a payload's table of buffers is damaged")
    return buffers


_runner: Any = None


def _call_and_run(function: Callable[..., Any], *args: Any) -> Any:
    return run_coroutine(function(*args))


def run_coroutine(coroutine: Any) -> Any:
    """An async function in a plain worker runs on a loop that the worker keeps."""
    global _runner
    if _runner is None:
        import asyncio

        _runner = asyncio.Runner()
    return _runner.run(coroutine, context=copy_context())


def say_farewell() -> None:
    """What is done before any end that this process chooses itself."""
    for step in farewells:
        with suppress(Exception):  # leaving matters more
            step()
    flush()


def give_up(code: int) -> NoReturn:
    """End this process at once: nothing more of its code is run."""
    say_farewell()
    os._exit(code)


def main(
    sock: socket.socket, memory: int, tickets: int, bell: int, initializer: Initializer | None = None
) -> int:
    """Be a worker until the parent says EXIT, and return the exit code; the caller ends the process in good
    order. Does not return if the parent is gone or the channel to it is of no use any more.

    `initializer` is given when `multiprocessing` has brought it along; else it is in the setup frame.
    """
    global current
    try:
        worker = current = Worker(sock, memory, tickets, bell)
        prepare(worker, initializer)
        if worker.setup.kind == "async":
            from millpond.pool.worker.async_main import serve

            serve(worker)
        else:
            worker.serve()
    except Leave as order:
        say_farewell()
        return order.code
    except EOFError:
        give_up(0)  # the parent is gone
    except OSError:
        give_up(72)  # a task closed our descriptors: its answer is in the ring, a fresh worker follows
    except BaseException:
        traceback.print_exc()
        give_up(70)
    return 0


def prepare(worker: Worker, initializer: Initializer | None) -> None:
    """Read up to the setup frame, run the initializer, report ready or failed."""
    told = False
    while not told:
        for frame in worker.reader.read():
            if frame.kind == frames.SETUP:
                worker.setup, told = pickle.loads(frame.body), True
                worker.watched = (worker.setup.memory_soft_limit, worker.setup.max_age) != (None, None)
                current_process().authkey = worker.setup.authkey
            else:
                worker.calls(frame)
    try:
        if initializer is not None:
            initializer[0](*initializer[1])
        elif worker.setup.initializer is not None:
            function, args = pickle.loads(worker.setup.initializer)
            function(*args)
    except BaseException as error:
        worker.outbox.send(frames.FAILED, worker.outbox.pack_error(error))
        raise Leave(71) from error
    worker.outbox.send(frames.READY, struct.pack("<q", os.getpid()))
