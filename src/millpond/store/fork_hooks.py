"""What a store must do when its process forks.

An SQLite connection may not even exist across a fork: the library keeps a process's file locks in its own
memory, which the child inherits without the locks. So stores close before a fork and open again after it.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forking(Protocol):
    """A store that wants to know."""

    def before_fork(self) -> None:
        """Close what must not be inherited, and let no one in."""

    def after_fork(self, *, in_child: bool) -> None:
        """Let others in again; in the child, forget who was inside."""


_stores: WeakSet[Forking] = WeakSet()
_one_at_a_time = threading.Lock()  # held from before a fork to after it: `_asked` belongs to one of them
_asked: list[Forking] = []  # kept from before to after: none may vanish in between


def watch_forks(store: Forking) -> None:
    """Tell this store about forks, for as long as it lives."""
    _stores.add(store)


def _before() -> None:
    _one_at_a_time.acquire()
    _asked[:] = list(_stores)
    for store in _asked:
        store.before_fork()


def _after_in_parent() -> None:
    _after(in_child=False)


def _after_in_child() -> None:
    _after(in_child=True)


def _after(*, in_child: bool) -> None:
    while _asked:
        _asked.pop().after_fork(in_child=in_child)
    _one_at_a_time.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
