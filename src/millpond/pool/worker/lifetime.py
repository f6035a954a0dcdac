"""The first and the last steps of a worker as a process of `multiprocessing`.

A worker that `mp_context` started runs inside the standard library's own frame, which does both. One that
the template forked does them here: it gets a name and a parent, and when it leaves in good order its
finalizers run, its threads end and its exit handlers are called. The parent bounds how long that takes
(`rules/pool/size.py`, `leave_wait`).
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import process, util
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

_preloaded: list[Callable[..., Any]] = []  # exit handlers that modules registered while they were preloaded
_stdlib: Any = process


@contextmanager
def noting_exit_handlers() -> Iterator[None]:
    """Note which exit handlers are registered in here: those belong to this process, not to its forks."""
    register = atexit.register

    def note(handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
        _preloaded.append(handler)
        return register(handler, *args, **kwargs)

    atexit.register = note  # type: ignore[assignment]
    try:
        yield
    finally:
        atexit.register = register


def become_process(identity: int, owner: int, sentinel: int) -> None:
    """Be a process of its own for `multiprocessing`, as a child that it had started itself would be.

    `sentinel` becomes readable when the owner ends; it is the worker's from here on.
    """
    itself: Any = BaseProcess(name=f"millpond-worker-{identity}")
    itself._identity = (identity,)
    itself._parent_pid = owner
    _stdlib._process_counter = itertools.count(1)
    _stdlib._children = set()
    _stdlib._current_process = itself
    _stdlib._parent_process = _stdlib._ParentProcess(_stdlib._current_process._parent_name, owner, sentinel)
    _forget_handlers()
    util._finalizer_registry.clear()  # type: ignore[attr-defined]
    util._run_after_forkers()  # type: ignore[attr-defined]


def _forget_handlers() -> None:
    """Let go of the exit handlers of the template's modules. A handler that removes the folder a module made
    would remove it under all other workers. What was registered before the first import (a measurement of
    coverage, say) is for every process."""
    for handler in _preloaded:
        if handler is not logging.shutdown:  # flushes, which is each worker's own business
            atexit.unregister(handler)
    finalize: Any = weakref.finalize
    for info in finalize._registry.values():
        info.atexit = False
    finalize._registered_with_atexit = False


def end_process(code: int) -> NoReturn:
    """End this process the way the standard library ends one that it has started. Never returns."""
    for step in (util._exit_function, threading._shutdown, atexit._run_exitfuncs, flush):  # type: ignore[attr-defined]
        with suppress(BaseException):  # the next step matters all the same
            step()
    os._exit(code)


def flush() -> None:
    """Write out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be closed or broken
            stream.flush()
