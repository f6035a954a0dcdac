"""A claimed job becomes an outcome: its task is found, its arguments read, the function called.

Whatever the function does ends as an Outcome; nothing it raises gets out, except an interrupt. Decides
nothing about how the job goes on, and touches no store.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from types import TracebackType
from typing import Any, Protocol

from millpond.errors import ArgumentsRefused, PayloadRefused
from millpond.job import Cancelled, Failure, Outcome, Raised, Returned, Snoozed, Unread
from millpond.options import Retry
from millpond.payload.codec import encode
from millpond.task import Task
from millpond.task_context import Cancel, Reporter, RetryAfter, Snooze, running

MOST_NAME = 200  # characters kept of the name of an exception's class
PLAIN = frozenset({type(None), bool, int, float, str, list, dict, tuple})  # nothing to wait for
NOTHING = Returned(b"null")
MOST_TEXT = 4_000  # characters kept of a message
MOST_TRACEBACK = 16_000  # and of a traceback: its end, where the error is
OURS = (__file__, str(PurePath(asyncio.__file__).parent))  # what lies above the function's own frames


class Order(Protocol):
    """What must be known of a job to run it; a Job has it."""

    @property
    def id(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def token(self) -> int: ...
    @property
    def payload(self) -> bytes: ...


class Registry(Protocol):
    """Where tasks are found by name; an App is one."""

    def get_task(self, name: str) -> Task[Any, Any]:
        """The task of that name, or UnknownTask."""


def run(
    registry: Registry,
    job: Order,
    reporter: Reporter | None = None,
    finish: Callable[[Awaitable[Any]], Any] | None = None,
) -> Outcome:
    """Run a job here and now; an async task is run to its end by `finish`, or on a loop of its own."""
    prepared = _prepared(registry, job)
    if not isinstance(prepared, tuple):
        return prepared
    task, args, kwargs = prepared
    with running(job, reporter):
        try:
            value = task.function(*args, **kwargs)
            if type(value) not in PLAIN and inspect.isawaitable(value):
                value = (finish or _finish)(value)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            return outcome_of(error, task.retry)
    return _returned(value)


async def arun(registry: Registry, job: Order, reporter: Reporter | None = None) -> Outcome:
    """The same on the event loop that is running. A cancelled loop task stays cancelled."""
    prepared = _prepared(registry, job)
    if not isinstance(prepared, tuple):
        return prepared
    task, args, kwargs = prepared
    with running(job, reporter):
        try:
            value = task.function(*args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
        except asyncio.CancelledError as error:
            around = asyncio.current_task()
            if around is not None and around.cancelling():
                raise
            return outcome_of(error, task.retry)
        except (Exception, SystemExit) as error:
            return outcome_of(error, task.retry)
    return _returned(value)


def outcome_of(error: BaseException, retry: Retry) -> Outcome:
    """What a task says by raising this."""
    if isinstance(error, Snooze):
        return Snoozed(error.delay)
    if isinstance(error, Cancel):
        return Cancelled()
    failure = failure_of(error)
    if isinstance(error, RetryAfter):
        return Raised(failure, retry_in=error.delay)
    return Raised(failure, final=isinstance(error, retry.never), retry_in=retry.delay_for(error))


def failure_of(error: BaseException) -> Failure:
    """An exception as text that every store can keep."""
    kind = type(error)
    try:
        message = str(error)
    except Exception:  # its __str__ is the user's
        message = "(its message cannot be read)"
    try:
        lines = traceback.format_exception(kind, error, _without_ours(error))
    except Exception:  # the same
        lines = []
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return Failure(
        _clean(name)[:MOST_NAME], _clean(message)[:MOST_TEXT], _clean("".join(lines))[-MOST_TRACEBACK:]
    )


def _prepared(registry: Registry, job: Order) -> tuple[Task[Any, Any], list[Any], dict[str, Any]] | Outcome:
    """The task and its arguments, or the outcome: reading runs code of the app, such as validators.

    Another version of the code may know the task or read the arguments; what is no payload stays none.
    """
    try:
        task = registry.get_task(job.task)
    except Exception as error:  # UnknownTask, mostly; a registry may be anything
        return Unread(failure_of(error))
    try:
        return (task, *task.read(job.payload))
    except ArgumentsRefused as error:
        return Unread(failure_of(error))
    except PayloadRefused as error:
        return Raised(failure_of(error), final=True)
    except Exception as error:  # raised by `upgrade`, so it is an error of the task
        return outcome_of(error, task.retry)


def _returned(value: Any) -> Outcome:
    if value is None:
        return NOTHING
    try:
        return Returned(encode(value, "the result"))
    except Exception as error:  # mostly PayloadRefused; but a value may do anything when it is looked at
        said = failure_of(error)
        named = "" if isinstance(error, PayloadRefused) else f"the result cannot be stored: {said.type}: "
        return Returned(refused=named + said.message)


def _finish(awaitable: Awaitable[Any]) -> Any:
    """Run a coroutine to its end, also where a loop is running already: then beside it."""

    async def whole() -> Any:
        return await awaitable

    if asyncio._get_running_loop() is None:  # the public question raises, and would be in every traceback
        return asyncio.run(whole())
    return _beside(contextvars.copy_context(), whole)


def _beside(context: contextvars.Context, whole: Callable[[], Any]) -> Any:
    ends: list[Any] = []

    def target() -> None:
        try:
            ends.append((context.run(asyncio.run, whole()), None))
        except BaseException as error:  # handed to the one that waits
            ends.append((None, error))

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    value, error = ends[0]
    if error is not None:
        raise error
    return value


def _without_ours(error: BaseException) -> TracebackType | None:
    """The traceback from where the function begins: how it came to be called tells nobody anything."""
    found = error.__traceback__
    while found is not None and found.tb_next is not None:
        if not found.tb_frame.f_code.co_filename.startswith(OURS):
            break
        found = found.tb_next
    return found


def _clean(text: str) -> str:
    """Without what some store or line-by-line reader could stumble over."""
    plain = text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
    return plain if plain.isascii() else "\n".join(plain.splitlines())
