"""Puts a worker process back as it was: what one job changes must not reach the next.

Folder, environment, signal handlers and mask, timers, locale, umask, limits, standard streams and user.
Looking costs a few microseconds a job, so each is asked in the cheapest way; only what differs is set
again. Workers that run several jobs at once cannot be kept apart like this.
"""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import contextlib
import ctypes
import os
import signal
import sys
from typing import Any

from millpond.pool.worker.resource_limits import resource, watch

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
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE)

# The C library's own: Python's makes text of each answer, which costs more than any other look
_locale_name = ctypes.PyDLL(None).setlocale
_locale_name.argtypes, _locale_name.restype = (ctypes.c_int, ctypes.c_char_p), ctypes.c_char_p
_limit, _user, _group = resource.getrlimit, os.geteuid, os.getegid


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
        self._limits = [(number, _limit(number)) for number in LIMITS]
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._closable: list[Any] = [stream for stream in self._streams if hasattr(stream, "closed")]
        self._user, self._group = _user(), _group()

    def restore(self) -> bool:
        """Undo what a job has changed; False if something stays changed, and the next job must not run here.
        The job's timer first: it would meet the worker's own handler, which is none, or stop this halfway by
        the job's. Then its limits, which could stop the rest."""
        if _signal.getitimer(_signal.ITIMER_REAL) != NO_TIMER:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
        undone = not watch.take() or self._are_limits_back()
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
        return self._are_streams_open() and undone and _user() == self._user and _group() == self._group

    def _are_limits_back(self) -> bool:
        """A hard limit that was lowered stays so without root's rights."""
        back = True
        for number, limit in self._limits:
            if _limit(number) != limit:
                try:
                    resource.setrlimit(number, limit)
                except (OSError, ValueError):
                    back = False
        return back

    def _are_streams_open(self) -> bool:
        """With those back that were replaced. One that was closed stays closed: loggers and libraries hold on
        to the object."""
        stdin, stdout, stderr = self._streams
        if sys.stdout is not stdout or sys.stderr is not stderr or sys.stdin is not stdin:
            sys.stdin, sys.stdout, sys.stderr = self._streams
        for stream in self._closable:  # noqa: SIM110  a generator costs more than the looks
            if stream.closed:
                return False
        return True

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
