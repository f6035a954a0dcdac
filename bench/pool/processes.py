"""What Linux's /proc says about the processes below this one, and how to end them.

Only descendants of the calling process are ever signalled, each by its id.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make grandchildren whose parent dies ours, so that none escapes `end_descendants`."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root: int | None = None) -> list[int]:
    """Every living process below `root` (this process by default); zombies are left out."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found: list[int] = []
    waiting = [os.getpid() if root is None else root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_descendants(patience: float) -> None:
    """Give the children `patience` seconds to leave by themselves, kill whoever is left, reap all.

    Resource trackers go last: when all others are gone they remove the named semaphores of a
    killed pool and leave; killed with the rest, they would leave them in shared memory for ever.
    """
    _wait_until_gone(patience)
    _kill(pid for pid in descendants() if not _is_tracker(pid))
    _wait_until_gone(patience)
    _kill(descendants())
    _wait_until_gone(patience)


def _wait_until_gone(patience: float) -> None:
    end = time.monotonic() + patience
    while descendants() and time.monotonic() < end:
        _reap()
        time.sleep(0.01)
    _reap()


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _is_tracker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def proportional_memory(pid: int) -> float:
    """PSS in MiB: private pages plus this process's share of the shared ones."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of all threads of these processes, to the nanosecond."""
    total = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(thread.read_text().split()[0])
    return total / 1e9
