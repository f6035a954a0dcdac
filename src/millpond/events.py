"""Typed events, and the one place where they are handed to subscribers.

A subscriber that raises is logged and disturbs nobody. Publishing with no subscriber costs one test.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger("millpond")


class WorkerStarted(NamedTuple):
    """A worker is up and takes tasks."""

    pid: int


class WorkerStopped(NamedTuple):
    """A worker is gone: idle, resize, tasks, memory, age, timeout, killed, stalled, start, stray,
    changed, shutdown or died."""

    pid: int
    reason: str
    exitcode: int | None = None
    signal: int | None = None


class WorkerStalled(NamedTuple):
    """A worker held tasks and began none of them: they were given to others and it was killed."""

    pid: int
    reason: str
    stood_for: float
    stack: str


class WorkerFailedToStart(NamedTuple):
    """A worker could not start; the next try comes after `retry_in` seconds."""

    cause: str
    failures: int
    retry_in: float


class TaskTimedOut(NamedTuple):
    """A task overran its time and its worker was killed."""

    task: str
    pid: int
    ran_for: float


class TaskCrashed(NamedTuple):
    """A worker died while it ran this task."""

    task: str
    pid: int
    cause: str


class PoolBecameDegraded(NamedTuple):
    """No worker can be started; tasks fail with PoolDegraded until one can."""

    cause: str


class PoolRecovered(NamedTuple):
    """Workers start again, after so many starts in a row that failed."""

    failures: int


Event = (
    WorkerStarted
    | WorkerStopped
    | WorkerStalled
    | WorkerFailedToStart
    | TaskTimedOut
    | TaskCrashed
    | PoolBecameDegraded
    | PoolRecovered
)
Subscriber = Callable[[Event], object]


# What is called with the error that a callback raised, the callback, and what it was called with
ErrorHook = Callable[[BaseException, Callable[..., object], object], object]


def report(hook: ErrorHook, error: BaseException, callback: Callable[..., object], given: object) -> None:
    """Hand a callback's error to the user's hook; what the hook itself raises is only logged."""
    try:
        hook(error, callback, given)
    except BaseException:
        logger.exception("on_callback_error failed on %r of %r", error, callback)


class Events:
    """The subscribers of one pool."""

    def __init__(self, failed: ErrorHook | None = None) -> None:
        self._subscribers: tuple[Subscriber, ...] = ()
        self._failed = failed

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event from now on; returns the function that ends it."""
        if not callable(subscriber):
            raise TypeError(f"a subscriber must be callable, not {type(subscriber).__name__}")
        self._subscribers = (*self._subscribers, subscriber)

        def unsubscribe() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Hand the event to every subscriber, in the calling thread."""
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except BaseException as error:  # also SystemExit: it is the pool's thread, not the subscriber's
                if self._failed is not None:
                    report(self._failed, error, subscriber, event)
                    continue
                logger.exception("A subscriber failed on %r; the pool goes on", event)
