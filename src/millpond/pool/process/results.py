"""From a worker's answer to a finished future: the part of the engine that runs without the lock.

Unpickling a value runs user code, so nothing here may be called inside a turn, but for `settle_soon`,
which unpickles nothing and leaves callbacks to the dispatcher.
"""

from __future__ import annotations

import marshal
import pickle
from collections import deque
from typing import Any

from millpond.errors import PayloadError
from millpond.pool.admission import EndedInLine
from millpond.pool.channel import frames
from millpond.pool.channel.remote_errors import arrive, describe, text_of
from millpond.pool.notices import Notices
from millpond.pool.process.worker_link import Answer
from millpond.pool.task import Task


class Settling:
    """The answers that have come in and the callbacks that must run."""

    def __init__(self) -> None:
        self.unsettled: deque[Answer] = deque()  # answers whose futures wait for their value
        self.later = Notices()  # callbacks for the dispatcher to run, and waiters for it to tell
        self.ended_in_line = EndedInLine()
        self.round_since: float | None = None  # when the dispatcher began its present round; None between two

    def wake(self) -> None:
        """Have the dispatcher take a turn."""
        raise NotImplementedError

    def settle_soon(self, task: Task, error: BaseException) -> None:
        """Fail a task that is off the books; its callbacks run in the dispatcher."""
        task.settle(None, error, self.later)
        if self.later:
            self.wake()

    def settle(self) -> None:
        """Unpickle answers and finish their futures. Called without the lock: this runs user code.

        Every thread takes from the same line: what one that is interrupted leaves, another settles.
        """
        unsettled = self.unsettled
        if not unsettled:
            return
        try:
            # Not `answer = popleft()`: an interrupt comes after a call, before its value is anybody's
            for answer in iter(unsettled.popleft, None):
                try:
                    if not answer[0].done():
                        self._settle_one(*answer)
                except BaseException:
                    if not answer[0].done():
                        unsettled.appendleft(answer)
                        self.wake()
                    raise
        except IndexError:
            if unsettled:  # not the end of the line
                raise

    def _settle_one(self, task: Task, verdict: int, payload: Any, buffers: Any) -> None:
        later = self.later
        if verdict == frames.PLAIN_VALUE:
            task.settle(marshal.loads(payload), None, later)  # noqa: S302  our own worker wrote it
            return
        try:
            value = pickle.loads(payload, buffers=buffers) if buffers else pickle.loads(payload)
        except BaseException as error:
            # As text: a traceback's frames would keep the dispatcher's thread alive as long as the error
            cause = arrive(error, describe(error)).with_traceback(None)
            task.settle(None, unreadable(f"the result of {task.name}", "here", cause), later)
            return
        if verdict == frames.VALUE:
            task.settle(value, None, later)
        elif verdict == frames.UNREADABLE:
            task.settle(None, unreadable(f"{task.name} or its arguments", "in the worker", value), later)
        else:
            task.settle(None, value if task.doom is None else task.doom.error(value), later)


def unreadable(what: str, where: str, cause: BaseException) -> PayloadError:
    """The error for something that could not be unpickled."""
    error = PayloadError(f"{what} could not be unpickled {where}: {text_of(cause)}")
    error.__cause__ = cause
    return error
