"""The Linux system calls that a pool is built on, also in a Python that was compiled without them.

Interpreters made for old systems (conda, some portable builds) leave out `os.memfd_create`, `os.eventfd`,
`os.pidfd_open` and `signal.pidfd_send_signal`, whatever the kernel can do. There they are called by number.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import struct
import sys
from collections.abc import Callable

from millpond.errors import OptionError

# memfd_create, eventfd2, pidfd_open, pidfd_send_signal
NUMBERS = {"x86_64": (319, 290, 434, 424), "aarch64": (279, 19, 434, 424)}
CLOEXEC, NONBLOCK, SEMAPHORE = 0o2000000, 0o4000, 1  # of eventfd, on both of these machines
MEMFD_CLOEXEC = 1
COUNT = struct.Struct("=Q")


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, number: int, *args: int | bytes | None) -> int:
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in (number, *args)]
    result: int = _library().syscall(*wide)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def _numbers() -> tuple[int, int, int, int]:
    machine = os.uname().machine
    if machine not in NUMBERS or sys.maxsize < 2**32:
        raise OptionError(
            "this Python was built without os.memfd_create, os.eventfd or os.pidfd_open, and Millpond does "
            f"not know how to make these calls on {machine}: use another build of Python, or kind='thread'"
        )
    return NUMBERS[machine]


def check() -> None:
    """Raise OptionError if this Python leaves some of them out and their numbers are not known here."""
    if not all(hasattr(os, name) for name in ("memfd_create", "eventfd", "pidfd_open")):
        _numbers()


def _memfd_create(name: str, flags: int = MEMFD_CLOEXEC) -> int:
    return _call("memfd_create", _numbers()[0], name.encode(), flags)


def _eventfd(initial: int, flags: int = CLOEXEC) -> int:
    return _call("eventfd", _numbers()[1], initial, flags)


def _eventfd_read(descriptor: int) -> int:
    (value,) = COUNT.unpack(os.read(descriptor, COUNT.size))
    return int(value)


def _eventfd_write(descriptor: int, value: int) -> None:
    os.write(descriptor, COUNT.pack(value))


def _pidfd_open(pid: int, flags: int = 0) -> int:
    descriptor = _call("pidfd_open", _numbers()[2], pid, flags)
    os.set_inheritable(descriptor, False)
    return descriptor


def _pidfd_send_signal(pidfd: int, number: int) -> None:
    _call("pidfd_send_signal", _numbers()[3], pidfd, number, None, 0)


memfd_create: Callable[..., int] = getattr(os, "memfd_create", _memfd_create)
eventfd: Callable[..., int] = getattr(os, "eventfd", _eventfd)
eventfd_read: Callable[[int], int] = getattr(os, "eventfd_read", _eventfd_read)
eventfd_write: Callable[[int, int], None] = getattr(os, "eventfd_write", _eventfd_write)
pidfd_open: Callable[..., int] = getattr(os, "pidfd_open", _pidfd_open)
pidfd_send_signal: Callable[[int, int], None] = getattr(signal, "pidfd_send_signal", _pidfd_send_signal)
