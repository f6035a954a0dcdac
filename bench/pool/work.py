"""The task bodies every pool is given.

Each takes one argument. Every worker process imports this module, so it must stay import-light:
nothing beyond the standard library's smallest modules, and nothing about any pool.
"""

import os
import time
from collections.abc import Awaitable, Callable
from typing import Any


def noop(value: Any) -> Any:
    return value


async def noop_async(value: Any) -> Any:
    return value


def burn(milliseconds: float) -> float:
    """Use that much CPU time of this thread; being pre-empted does not count as work done."""
    clock = time.thread_time
    end = clock() + milliseconds / 1000
    while clock() < end:
        pass
    return milliseconds


def first_and_last(array: Any) -> float:
    return float(array[0]) + float(array[-1])


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def hangs(index: int) -> bool:
    return index % 10 == 3


def hang_sometimes(index: int) -> int:
    """One in ten sleeps for ever."""
    while hangs(index):
        time.sleep(3600)
    return index


def dies(index: int) -> bool:
    return index % 50 == 25


def exit_sometimes(index: int) -> int:
    """One in fifty leaves without a word."""
    if dies(index):
        os._exit(1)
    return index


def segfault_sometimes(index: int) -> int:
    """One in fifty reads address zero."""
    if dies(index):
        import ctypes

        ctypes.string_at(0)
    return index


def die(_: Any) -> None:
    os._exit(1)


def started(_: Any) -> tuple[int, float]:
    """Who ran this, and when; the monotonic clock is the same for all processes of the machine."""
    return os.getpid(), time.monotonic()


def hold(pipes: tuple[str, str]) -> int:
    """Tell the first named pipe who is busy, then stay busy until the second one has a byte."""
    said, release = pipes
    with open(said, "wb", buffering=0) as out:
        out.write(b"%d\n" % os.getpid())
    with open(release, "rb", buffering=0) as wait:
        wait.read(1)
    return os.getpid()


AS_COROUTINE: dict[Callable[[Any], Any], Callable[[Any], Awaitable[Any]]] = {noop: noop_async}
