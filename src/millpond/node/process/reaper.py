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
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PR_GET_CHILD_SUBREAPER = 37

_hidden: list[weakref.ref[object]] = []  # the Popens that the collector does not list any more


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


def freeze() -> None:
    """`gc.freeze()`, which takes every object out of the collector's lists: the Popens are noted first,
    or they could not be found again. One that another thread makes between the two calls is missed."""
    things = _popens()
    gc.freeze()
    _hidden.extend(weakref.ref(thing) for thing in things)


def unfreeze() -> None:
    """`gc.unfreeze()`: the collector lists all of them again."""
    gc.unfreeze()
    _hidden.clear()


def _claimed() -> set[int]:
    """Children that an object of this program stands for: it wants their exit code.

    Goes through what the collector lists, which takes milliseconds, but only when there is an orphan; and
    through what `freeze` has noted. A program that calls `gc.freeze` itself hides its own from us.
    """
    found: set[int] = set()
    for thing in (*_popens(), *(reference() for reference in _hidden)):
        if getattr(thing, "returncode", 0) is None:
            found.add(getattr(thing, "pid", 0))
    processes = sys.modules.get("multiprocessing.process")
    return found | {child.pid for child in getattr(processes, "_children", ())}


def _popens() -> list[object]:
    """Every Popen that the collector lists: an object refers to its class.

    `gc.get_objects` would give every object there is a second owner, among them tuples that other threads are
    just making: the interpreter cannot finish such a one and raises SystemError, anywhere in the program.
    Shown by tests/node_signals/test_orphans.py.
    """
    kinds = set(_kinds(subprocess.Popen))
    # By its type alone: `isinstance` would ask the object, and a proxy may do anything then
    return [thing for thing in gc.get_referrers(*kinds) if type(thing) in kinds]


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    """A class and all that are made of it."""
    yield kind
    for other in kind.__subclasses__():
        yield from _kinds(other)


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    try:
        answer = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return answer == 0 and flag.value == 1
