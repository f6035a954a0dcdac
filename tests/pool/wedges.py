"""Ways in which a worker can stand still between two tasks, for the tests; importable by workers.

Each is a task that ends in good order and leaves something behind, or returns it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

HOUR = 3600


def sleep() -> None:
    time.sleep(HOUR)


def spin() -> None:
    while True:
        pass


def spin_in_c() -> None:
    re.match(r"(a|a)*b", "a" * 200)


def sleep_with_the_lock() -> None:
    """PyDLL keeps the interpreter's lock; a signal would end the sleep, so it goes on."""
    pause = ctypes.PyDLL(None).sleep
    while True:
        pause(HOUR)


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def read_from_a_pipe() -> None:
    os.read(os.pipe()[0], 1)


def write_to_a_full_pipe() -> None:
    _, end = os.pipe()
    while True:
        os.write(end, bytes(65536))


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def stop_from_a_child() -> None:
    """A forked child stops its worker and stays."""
    parent = os.getpid()
    if os.fork() == 0:
        os.kill(parent, signal.SIGSTOP)
        time.sleep(HOUR)
        os._exit(0)
    signal.pause()


STILL: dict[str, Callable[[], None]] = {
    "sleeps": sleep,
    "spins": spin,
    "spins in C": spin_in_c,
    "keeps the interpreter's lock": sleep_with_the_lock,
    "waits for a lock": wait_for_a_lock,
    "reads from a pipe": read_from_a_pipe,
    "writes to a full pipe": write_to_a_full_pipe,
    "is stopped": stop,
    "is stopped by its child": stop_from_a_child,
}


class Hanging:
    """Its destructor does not return, in a worker."""

    def __init__(self, how: str) -> None:
        self.how, self.home = how, os.getpid()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return str, ()

    def __del__(self) -> None:
        STILL[self.how]()


def in_a_destructor(how: str) -> Any:
    return Hanging(how)


def in_a_thread_left_behind(how: str) -> None:
    threading.Thread(target=_later, args=(how,), daemon=True).start()


def _later(how: str) -> None:
    time.sleep(0.05)  # not before the task has ended
    STILL[how]()


def in_a_signal_handler(how: str) -> None:
    signal.signal(signal.SIGALRM, lambda *_: STILL[how]())
    signal.setitimer(signal.ITIMER_REAL, 0.05)


async def in_a_callback_of_the_loop(how: str) -> None:
    asyncio.get_running_loop().call_soon(STILL[how])


async def in_a_destructor_on_the_loop(how: str) -> Any:
    return Hanging(how)


def kill_if_alive(pid: int) -> None:
    """For a test that has failed: leave nothing behind."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
