"""Small readings of the machine: a process's memory, and whether the kernel has killed for memory."""

from __future__ import annotations

import os

PAGE_SIZE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident(pid: int) -> int:
    """The resident memory of a process in bytes; 0 if it is gone. Shared arenas are not counted."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            fields = file.read().split()
        return int(fields[1]) * PAGE_SIZE
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
