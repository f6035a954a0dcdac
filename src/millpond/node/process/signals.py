"""Signals as bytes in a pipe, read by whoever waits for them.

The interpreter's C handler writes the number of each signal at once, whatever Python code runs; nothing
happens in a handler that could interrupt something halfway, and none is lost even when the pipe is full.
SIGUSR2 alone is answered in place: every thread's stack goes to stderr, though nobody may read the pipe.
Must be entered in the main thread; on leaving, everything is as it was.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from types import FrameType
from typing import Any, Self

HEARD = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTSTP,
    signal.SIGUSR1,
    signal.SIGCONT,
)
CAPACITY = 65_536  # of a pipe
WOKEN = 0  # the byte of `wake()`; no signal has this number


class Signals:
    """The signals of this process, one after the other, while the context lasts."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._heard: deque[int] = deque()
        self._noted: set[int] = set()  # what came since the pipe was last read to its end
        self._reader = self._writer = self._wakeup = -1
        self._poll = select.poll()  # unlike select, for descriptors beyond 1023 too
        self._has_terminal = False

    def __enter__(self) -> Self:
        """Begin to hear. An inherited "ignore SIGHUP" is kept: that is what nohup is for."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("signals come to the main thread only: elsewhere use node.start() and stop()")
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._reader, select.POLLIN)
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._has_terminal = terminal_is_there()
        for number in HEARD:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, self._note)
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be anything, or closed
            faulthandler.register(signal.SIGUSR2, sys.__stderr__ or 2, all_threads=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Put every handler back; a byte that comes later goes to whoever listened before."""
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        faulthandler.unregister(signal.SIGUSR2)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout: float) -> int | None:
        """The next signal, WOKEN, or None when the time is over.

        Signals keep their order, but for two that come in the same moment: their handlers may run at once,
        in two threads or one within the other.
        """
        deadline = time.monotonic() + timeout
        while not self._heard:
            left = max(0.0, deadline - time.monotonic())
            if not self._poll.poll(1000.0 * left):
                return None
            self._heard.extend(_without_repeats(self._read()))
        return self._heard.popleft()

    def _read(self) -> bytes:
        """What is in the pipe. One that was full may have turned bytes away: those were noted."""
        numbers = os.read(self._reader, CAPACITY)
        if len(numbers) == CAPACITY:
            numbers += bytes(sorted(self._noted - set(numbers)))
        self._noted.clear()
        return numbers

    def _note(self, number: int, _frame: FrameType | None) -> None:
        """The handler in Python; the byte was written before."""
        self._noted.add(number)

    def wake(self) -> None:
        """End somebody's wait; from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            os.write(self._writer, bytes([WOKEN]))

    def terminal_was_closed(self) -> bool:
        """Did this SIGHUP mean that the terminal is gone? Then nobody asked for a reload."""
        return self._has_terminal and not terminal_is_there()


def _without_repeats(numbers: bytes) -> list[int]:
    """A flood of one signal counts once where nobody came between: the kernel merges them too.

    Only for those that say "be so": three SIGTERM are three steps.
    """
    kept: list[int] = []
    for number in numbers:
        if number in (signal.SIGTERM, signal.SIGINT) or not kept or kept[-1] != number:
            kept.append(number)
    return kept


def terminal_is_there() -> bool:
    """Has this process a controlling terminal that is still connected?"""
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(descriptor)
    return True


def name_of(number: int) -> str:
    """Such as "SIGTERM"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
