"""Pools still open when the interpreter exits finish their work, as the standard library's do.

And after a fork the child has the parent's memory but not its threads: there, every pool is closed.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Protocol


class Closable(Protocol):
    """What an engine must offer to be drained at exit."""

    def close_quietly(self, owner: int) -> None:
        """Accept no more and let the work end, without waiting for it."""

    def give_up(self) -> None:
        """The program ends by Ctrl-C: stop what runs, if that is possible."""

    def disown(self) -> None:
        """In a forked child: the pool is the parent's."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()
_exiting = False


def remember(engine: Closable) -> None:
    """Drain this engine if the interpreter exits before it is shut down."""
    _open.add(engine)


def forget(engine: Closable) -> None:
    """The engine is done."""
    _open.discard(engine)


def exiting() -> bool:
    """Is the interpreter on its way out?"""
    return _exiting


def _drain() -> None:
    # Runs before the interpreter joins non-daemon threads, so the engines' threads can still finish
    global _exiting
    _exiting = True
    interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
    for engine in list(_open):
        if interrupted:
            engine.give_up()
        engine.close_quietly(os.getpid())


def _disown() -> None:
    for engine in list(_open):
        engine.disown()
    _open.clear()


threading._register_atexit(_drain)  # type: ignore[attr-defined]
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)
