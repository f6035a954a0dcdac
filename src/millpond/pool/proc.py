"""Small readings of the machine: a process's memory, time and birth, and kills for want of memory."""

from __future__ import annotations

import os

from millpond.rules.pool.stall import READY, SLEEPING, STOPPED, WAITING, Sight

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def own_memory(statm: bytes) -> int:
    """The resident memory that is a process's own, in bytes: shared pages, such as those of the arenas
    and of libraries, are not counted."""
    fields = statm.split()
    return (int(fields[1]) - int(fields[2])) * PAGE_SIZE


def resident(pid: int) -> int:
    """The resident memory that is a process's own; 0 if the process is gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return own_memory(file.read())
    except (OSError, IndexError):
        return 0


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used in its life; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except (OSError, IndexError):
        return 0.0


def sight(pid: int) -> Sight:
    """What the threads of a process are doing: ready to run if one of them is, else stopped if one is.

    A process that cannot be looked at counts as sleeping: then only the wall's clock is left.
    """
    states = {_state(pid, thread) for thread in _threads(pid)}
    if b"R" in states:
        state = READY
    elif states & {b"T", b"t"}:
        state = STOPPED
    else:
        state = WAITING if b"D" in states else SLEEPING
    return Sight(state, cpu_seconds(pid))


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _state(pid: int, thread: str) -> bytes:
    """The letter by which the kernel tells what a thread does; empty if it has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""


def birth(pid: int) -> int:
    """When a process was started, in clock ticks since boot; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since boot."""
    try:
        with open("/proc/vmstat", "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0
