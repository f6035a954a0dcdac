"""Process 1 of a container inherits every orphan in it; ended ones stay zombies until it waits for them.

Waits by number for those that nobody in this program can be waiting for, and never for "any child": the
end of a template or of a user's subprocess belongs to whoever started it. Also for a child subreaper.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PR_GET_CHILD_SUBREAPER = 37


class Undertaker:
    """Reaps what two looks in a row found dead and unclaimed."""

    def __init__(self) -> None:
        self.needed = os.getpid() == 1 or _is_subreaper()
        self._seen: set[int] = set()

    def look(self) -> list[int]:
        """Reap; returns whom.

        A child is spared at the first look: `Popen` may have started it without knowing its number yet.
        """
        if not self.needed:
            return []
        dead = set(_zombies(os.getpid()))
        again, self._seen = dead & self._seen, dead
        if not again:
            return []
        return [pid for pid in sorted(again - _claimed()) if _reap(pid)]


def _reap(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # somebody was faster, or it is not ours any more
        return False


def _zombies(parent: int) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # it went away meanwhile
        state, owner = text.rpartition(")")[2].split()[:2]  # a command's name may hold blanks and brackets
        if state == "Z" and int(owner) == parent:
            yield int(folder.name)


def _claimed() -> set[int]:
    """Children that an object of this program stands for: it wants their exit code.

    Goes through the heap, which takes milliseconds, but only when there is an orphan.
    """
    found: set[int] = set()
    for thing in gc.get_objects():
        # By its type alone: `isinstance` would ask the object, and a proxy may do anything then.
        if issubclass(type(thing), subprocess.Popen) and getattr(thing, "returncode", 0) is None:
            found.add(getattr(thing, "pid", 0))
    processes = sys.modules.get("multiprocessing.process")
    return found | {child.pid for child in getattr(processes, "_children", ())}


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    try:
        answer = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return answer == 0 and flag.value == 1
