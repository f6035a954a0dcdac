"""What a task can ask and say while it runs as a job: which job, how far, and "not now".

The exceptions here are answers, not errors: raised by a task, they decide how its job goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from millpond.options import duration

if TYPE_CHECKING:
    from millpond.job_runner import Order

Report = Callable[[bytes], None]
Reporter = Callable[["Order"], Report]  # who takes what a job reports


class Snooze(Exception):
    """Raised by a task: come back later; costs no attempt."""

    def __init__(self, delay: float | timedelta | str) -> None:
        super().__init__(delay)
        self.delay = duration(delay, "Snooze")

    def __str__(self) -> str:
        return f"snoozed for {self.delay:g} s"


class RetryAfter(Exception):
    """Raised by a task: it failed, and should be tried again after this long."""

    def __init__(self, delay: float | timedelta | str, message: str = "") -> None:
        super().__init__(delay, message)
        self.delay = duration(delay, "RetryAfter")
        self.message = message

    def __str__(self) -> str:
        return self.message or f"to be tried again after {self.delay:g} s"


class Cancel(Exception):
    """Raised by a task: this job is not to be run, now or later."""


class CurrentJob:
    """The job that runs here and now."""

    __slots__ = ("_report", "attempt", "id", "queue", "task", "token")

    def __init__(self, job: Order, report: Report | None = None) -> None:
        self.id = job.id
        self.task = job.task  # its name
        self.queue = job.queue
        self.attempt = job.attempt + 1  # 1 for the first
        self.token = job.token  # grows with every claim: hand it to systems that should refuse a late worker
        self._report = report

    def progress(self, share: float, note: str = "") -> None:
        """Tell how far this job has come, from 0 to 1."""
        if not 0 <= share <= 1:
            raise ValueError(f"progress is a share from 0 to 1, not {share!r}")
        if self._report is not None:
            text = str(note)[:1000].encode(errors="replace").decode()
            self._report(msgspec.json.encode({"share": float(share), "note": text}))

    @property
    def cancelled(self) -> bool:
        """Has somebody asked for the end of this job? A long task that looks can end in good order,
        best by raising Cancel; one that does not is terminated after some seconds."""
        unwanted = getattr(self._report, "unwanted", None)
        return unwanted is not None and bool(unwanted())

    def __repr__(self) -> str:
        return f"<CurrentJob {self.id}, attempt {self.attempt}>"


class running:  # noqa: N801  used as a function; a generator would cost seven times as much
    """Make this the current job for the time being. What a task may ask of it is made when it asks."""

    __slots__ = ("_before", "_current", "_order", "_reporter")

    def __init__(self, job: Order, reporter: Reporter | None) -> None:
        self._order, self._reporter = job, reporter
        self._current: CurrentJob | None = None

    def __enter__(self) -> None:
        self._before = _running.set(self)

    def __exit__(self, *_: object) -> None:
        _running.reset(self._before)

    def current(self) -> CurrentJob:
        """The job as its task sees it."""
        if self._current is None:
            report = None if self._reporter is None else self._reporter(self._order)
            self._current = CurrentJob(self._order, report)
        return self._current


_running: ContextVar[running | None] = ContextVar("millpond_current_job", default=None)


def current_job() -> CurrentJob:
    """The job whose task is running here. Raises LookupError outside of one."""
    found = _running.get()
    if found is None:
        raise LookupError("no job is running here: current_job() works inside a task that was enqueued")
    return found.current()
