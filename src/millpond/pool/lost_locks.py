"""The conditions of futures that an interrupted caller of the standard library has left locked.

`wait()` and `as_completed()` lock futures one after the other. Ctrl-C in between leaves those it has locked
locked for ever, ten thousand of them perhaps. A thread that finishes such a future must not wait for each:
it looks whether the holder is still inside the code that locks them.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import weakref
from concurrent.futures import _base
from typing import Any

LONGEST = 10.0  # seconds that a condition is waited for although its holder is inside
PATIENCE = 0.2  # ... and where the holder seems to be elsewhere, the first time
LOOK = 0.01
OWNER = re.compile(r"owner=(\d+)")
OURS = ("add_done_callback", "_publish", "tell_cancelled")  # what locks a condition in `future.py`
_losers: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # that have left a condition locked before


def hold(condition: Any) -> bool:
    """Lock a condition; False if that is not to be had because its holder has lost it."""
    if condition.acquire(False):
        return True
    begun = seen_inside = time.monotonic()
    while True:
        owner, now = owner_of(condition), time.monotonic()
        thread = None if owner is None else threading._active.get(owner)  # type: ignore[attr-defined]
        if owner is None or is_inside(owner):
            seen_inside = now
        elif thread is None or thread in _losers or now - seen_inside > PATIENCE:
            if thread is not None:
                _losers.add(thread)
            return bool(condition.acquire(False))  # it may have been given back between the two looks
        if now - begun > LONGEST:
            return False
        if condition.acquire(True, LOOK):
            return True


def owner_of(condition: Any) -> int | None:
    """The thread that holds a reentrant lock; None if it is free, or the interpreter does not tell."""
    found = OWNER.search(repr(condition))
    return int(found[1]) or None if found else None


def is_inside(thread: int) -> bool:
    """Is a thread in code that locks futures for a moment? It is not while it sleeps, or has gone."""
    frame = sys._current_frames().get(thread)
    called = None  # by that frame
    while frame is not None:
        code = frame.f_code
        if code.co_filename == _base.__file__:
            sleeps = called is not None and (called.co_filename, called.co_name) == (
                threading.__file__,
                "wait",
            )
            return not sleeps
        if code.co_name in OURS and frame.f_globals.get("__name__") == "millpond.pool.future":
            return True
        frame, called = frame.f_back, code
    return False
