"""What the pool tests run in their workers: importable, small, and steered from outside.

A `Gate` holds tasks, of whatever kind, until the test lets them go: two named pipes, so that no test has to
sleep. A journal is a file that every task appends a line to, so that runs can be counted exactly.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 8.0  # seconds; nothing in these tests may come near
RECORD = 32

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="nobody")


def untyped(function: Any) -> Any:
    """The result of an async task is what it returns, not a coroutine: no type says so."""
    return function


# --- gates and journals --------------------------------------------------------------------------------
class Arrival(NamedTuple):
    """A task that stands at the gate."""

    pid: int
    thread: int
    label: str


class Gate:
    """The test's side of a gate; tasks get its `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("entrance", "exit"):
            os.mkfifo(folder / name)
        self._entrance = os.open(folder / "entrance", os.O_RDWR)
        self._exit = os.open(folder / "exit", os.O_RDWR)

    def arrive(self, count: int = 1) -> list[Arrival]:
        """Wait until that many more tasks stand at the gate."""
        found: list[Arrival] = []
        while len(found) < count:
            assert select.select([self._entrance], [], [], PATIENCE)[0], (
                f"only {len(found)} of {count} arrive"
            )
            pid, thread, label = os.read(self._entrance, RECORD).decode().split()
            found.append(Arrival(int(pid), int(thread), label))
        return found

    def nobody_else(self) -> bool:
        """Has nobody arrived beyond those already seen?"""
        return not select.select([self._entrance], [], [], 0)[0]

    def let_pass(self, count: int = 1) -> None:
        """Let that many tasks go on."""
        os.write(self._exit, b"." * count)

    def open(self) -> None:
        """Let everybody pass from now on."""
        self.let_pass(4096)

    def close(self) -> None:
        """Let go of the descriptors."""
        os.close(self._entrance)
        os.close(self._exit)


def _say(folder: Path, label: object) -> None:
    record = f"{os.getpid()} {threading.get_native_id()} {label}".ljust(RECORD).encode()
    entrance = os.open(folder / "entrance", os.O_WRONLY)
    try:
        os.write(entrance, record)
    finally:
        os.close(entrance)


def hold(folder: Path, label: object = "-") -> Any:
    """Stand at the gate until it lets this task pass; returns the label."""
    _say(folder, label)
    way_out = os.open(folder / "exit", os.O_RDONLY)
    try:
        os.read(way_out, 1)
    finally:
        os.close(way_out)
    return label


@untyped
async def hold_async(folder: Path, label: object = "-") -> Any:
    """The same without blocking the event loop."""
    way_out = os.open(folder / "exit", os.O_RDONLY | os.O_NONBLOCK)
    loop = asyncio.get_running_loop()
    free = asyncio.Event()

    def look() -> None:
        try:
            if os.read(way_out, 1):
                loop.remove_reader(way_out)
                free.set()
        except BlockingIOError:
            pass  # a neighbour was quicker

    loop.add_reader(way_out, look)
    _say(folder, label)
    try:
        await free.wait()
    finally:
        loop.remove_reader(way_out)
        os.close(way_out)
    return label


def holder(kind: str) -> Callable[..., Any]:
    """The way to stand at a gate that fits the kind of worker."""
    return hold_async if kind == "async" else hold


def note(journal: Path, text: object) -> Any:
    """Append one line; whole even if many processes write at once."""
    file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{text}\n".encode())
    finally:
        os.close(file)
    return text


def note_or_hold(folder: Path | None, journal: Path, text: object) -> Any:
    """One function that is short in most calls and long in some."""
    return note(journal, text) if folder is None else hold(folder, text)


def hold_and_note(folder: Path, journal: Path, label: object) -> Any:
    """Note when it comes and when it goes, and from which process."""
    note(journal, f"+ {os.getpid()}")
    try:
        return hold(folder, label)
    finally:
        note(journal, f"- {os.getpid()}")


def hold_first(folder: Path, journal: Path, number: int) -> int:
    """The first item waits at the gate; the others note that they are done."""
    if number == 0:
        hold(folder)
    else:
        note(journal, number)
    return number


@untyped
async def hold_first_async(folder: Path, journal: Path, number: int) -> int:
    if number == 0:
        await hold_async(folder)
    else:
        note(journal, number)
    return number


def fail_or_hold(folder: Path, number: int) -> None:
    """The first item fails, the others wait at the gate."""
    if number == 0:
        raise ValueError("on purpose")
    hold(folder)


def note_once(journal: Path) -> None:
    note(journal, "once")
    raise FileExistsError(journal)


def lines(journal: Path) -> list[str]:
    """What was noted, in order."""
    return journal.read_text().splitlines() if journal.exists() else []


# --- ordinary work -------------------------------------------------------------------------------------
def identity(value: Any) -> Any:
    return value


def pid_of(*_: object) -> int:
    return os.getpid()


def thread_of(*_: object) -> int:
    return threading.get_native_id()


def square(number: int) -> int:
    return number * number


def spin(seconds: float) -> None:
    """Compute for a while."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def report(*args: object, **kwargs: object) -> tuple[tuple[object, ...], dict[str, object]]:
    return args, kwargs


def takes_option_names(fn: int, self: int, timeout: int, priority: int) -> tuple[int, int, int, int]:
    return fn, self, timeout, priority


def fail(text: str = "on purpose") -> None:
    raise ValueError(text)


def fail_at(bad: int, number: int) -> int:
    if number == bad:
        raise ValueError(f"item {number}")
    return number


def loaded(module: str) -> bool:
    return module in sys.modules


def leave_a_line(path: Path) -> None:
    note(path, os.getpid())


def need(path: Path) -> None:
    """An initializer that works only while the file is there."""
    if not path.exists():
        raise LookupError(f"{path.name} is missing")


def is_writable(buffer: Any) -> bool:
    return not memoryview(buffer).readonly


class Counter:
    """A callable object, and something with a bound method."""

    def __init__(self, start: int) -> None:
        self.value = start

    def __call__(self, more: int) -> int:
        return self.value + more

    def plus(self, more: int) -> int:
        return self.value + more


class SlowToPickle:
    """An argument that is being pickled until the test says go."""

    def __init__(self, begun: threading.Event, go: threading.Event) -> None:
        self._begun = begun
        self._go = go

    def __reduce__(self) -> tuple[type, tuple[()]]:
        self._begun.set()
        self._go.wait(PATIENCE)
        return int, ()


# --- async work ----------------------------------------------------------------------------------------
@untyped
async def square_async(number: int) -> int:
    await asyncio.sleep(0)
    return number * number


@untyped
async def sleep_async(seconds: float) -> None:
    await asyncio.sleep(seconds)


@untyped
async def block_the_loop(folder: Path) -> None:
    """Says it is there, then blocks everything in its worker."""
    _say(folder, "blocking")
    hang()


@untyped
async def crash_async(folder: Path) -> None:
    await hold_async(folder, "crash")
    os._exit(7)


@untyped
async def request_id_later() -> str:
    await asyncio.sleep(0)
    return request_id.get()


# --- trouble -------------------------------------------------------------------------------------------
def crash(code: int = 3) -> None:
    os._exit(code)


def crash_by_signal(number: int = signal.SIGKILL) -> None:
    os.kill(os.getpid(), number)


def crash_at(bad: int, journal: Path, number: int) -> int:
    """Note the number, then crash if it is the bad one."""
    note(journal, number)
    if number == bad:
        os._exit(9)
    return number


def crash_at_quickly(bad: int, number: int) -> int:
    if number == bad:
        os._exit(9)
    return number


def crash_until(journal: Path, runs: int) -> int:
    """Crash in the first runs, then return how often it was run."""
    note(journal, os.getpid())
    seen = len(lines(journal))
    if seen <= runs:
        os._exit(4)
    return seen


def print_and_crash(text: str) -> None:
    print(text)
    print("and to stderr", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(5)


_kept: list[bytes] = []


def _fill(size: int) -> bytes:
    """Private memory that is really there, not only promised."""
    return b"\1" * size


def leak(size: int) -> int:
    """Keep some memory for ever."""
    _kept.append(_fill(size))
    return os.getpid()


def grow_and_hold(folder: Path, size: int) -> None:
    """Take much memory in one task, and keep it until let go."""
    memory = _fill(size)
    hold(folder)
    del memory


def hang() -> None:
    time.sleep(3600)


def hang_with(first: bool) -> int:
    """Hang in some calls and be quick in the others."""
    if first:
        time.sleep(3600)
    return os.getpid()


def see_request_id(*_: object) -> str:
    return request_id.get()


def answers(futures: Sequence[Any]) -> list[Any]:
    """All results, with a bound on the wait for each."""
    return [future.result(PATIENCE) for future in futures]


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that no event announces."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it never comes true"
        threading.Event().wait(0.001)
