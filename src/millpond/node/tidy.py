"""Puts a worker process back as it was: what one job changes must not reach the next.

Folder, environment, signal handlers and mask, timers, locale, umask. Looking costs a few microseconds a
job, so each is asked in the cheapest way; only what differs is set again. Workers that run several jobs
at once cannot be kept apart like this.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import contextlib
import ctypes
import os
import signal
from typing import Any

# Numbers, not enums: `signal` wraps each answer in one, which costs more than the question
WATCHED = tuple(
    int(number)
    for number in (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGALRM,
        signal.SIGCHLD,
        signal.SIGPIPE,
        signal.SIGUSR1,
        signal.SIGUSR2,
    )
)
NO_TIMER = (0.0, 0.0)

# The C library's own: Python's makes text of each answer, which costs more than any other look
_locale_name = ctypes.PyDLL(None).setlocale
_locale_name.argtypes, _locale_name.restype = (ctypes.c_int, ctypes.c_char_p), ctypes.c_char_p


class Surroundings:
    """What a process looks like between two jobs."""

    def __init__(self) -> None:
        self._folder = _folder()
        self._variables: Any = getattr(os.environ, "_data")  # noqa: B009
        self._environment = dict(self._variables)
        self._handlers = [(number, _signal.getsignal(number)) for number in WATCHED]
        self._mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
        self._locale = _locale_name(_locale.LC_ALL, None)
        self._umask = _umask()

    def restore(self) -> None:
        """Undo what a job has changed. Its timer first: it would meet the worker's own handler, which is
        none, or stop this halfway by the job's."""
        if _signal.getitimer(_signal.ITIMER_REAL) != NO_TIMER:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
        if self._folder is not None and _folder() != self._folder:
            with contextlib.suppress(OSError):  # it is gone for good, as after a deployment: jobs go on
                os.chdir(self._folder)
        if self._variables != self._environment:
            self._restore_environment()
        for number, handler in self._handlers:
            if _signal.getsignal(number) is not handler:
                _signal.signal(number, handler)
        if _signal.pthread_sigmask(_signal.SIG_BLOCK, ()) != self._mask:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._mask)
        if _locale_name(_locale.LC_ALL, None) != self._locale:
            _locale_name(_locale.LC_ALL, self._locale)
        if _umask() != self._umask:
            os.umask(self._umask)

    def _restore_environment(self) -> None:
        for name in [name for name in os.environ if os.environ.encodekey(name) not in self._environment]:
            del os.environ[name]
        for key, value in self._environment.items():
            if self._variables.get(key) != value:
                os.environ[os.environ.decodekey(key)] = os.environ.decodevalue(value)


def _folder() -> str | None:
    """Where this process stands; None if somebody has removed it."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return None


def _umask() -> int:
    mask = os.umask(0o77)
    os.umask(mask)
    return mask
