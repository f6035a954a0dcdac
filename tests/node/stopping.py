"""SIGSTOP for a node, never in the middle of a write to a SQLite file: that would lock it for all."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import apsw

from tests.node.waiting import until


def stop(pid: int, url: str) -> None:
    """Stop a process and all its threads; the store at this URL can be written by others meanwhile."""
    _stand_still(pid)
    while _is_locked(url):
        os.kill(pid, signal.SIGCONT)
        until(lambda: not _is_locked(url), "the file's lock is free")  # stopped at once, it would never be
        _stand_still(pid)


def _stand_still(pid: int) -> None:
    """One thread that goes on could yet take the file's lock."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    until(lambda: all(_has_stopped(thread) for thread in threads.iterdir()), "every thread to stand still")


def _has_stopped(thread: Path) -> bool:
    """One that has left counts."""
    try:
        return (thread / "stat").read_text().rpartition(")")[2].split()[0] in ("T", "t")
    except (FileNotFoundError, ProcessLookupError):
        return True


def _is_locked(url: str) -> bool:
    """Has somebody the write lock of the file who does not let it go?"""
    if not url.startswith("sqlite:"):
        return False
    foreign = apsw.Connection(url.removeprefix("sqlite:///"))
    foreign.set_busy_timeout(500)
    try:
        foreign.execute("BEGIN IMMEDIATE; ROLLBACK")
    except apsw.BusyError:
        return True
    finally:
        foreign.close()
    return False
