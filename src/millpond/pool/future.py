"""The future a pool hands out: a real `concurrent.futures.Future` that is cheap until somebody waits.

The standard future builds a condition variable at birth, its largest cost. Here the condition, the list
of waiters and the list of callbacks appear on first use. Setting a result takes no lock: the setter
looks at `_watched` and publishes `_state` in one step; whoever wants to watch sets `_watched` first and
looks at `_state` second. Once a future is watched, its state changes only under its condition.

`result()` never takes that condition: an interrupt could leave it locked for ever. It sleeps on a lock
of its own, which whoever settles the future releases.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED, LOGGER, PENDING
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
DONE = frozenset({FINISHED, CANCELLED, CANCELLED_AND_NOTIFIED})
LOST = 10.0  # a condition held this long was left locked by an interrupted caller of the standard library
NAP = 5.0  # how long a sleeper can be left unrung by a settler that was interrupted


class Owner(Protocol):
    """What a future needs of the engine that runs it."""

    def cancel(self, future: PoolFuture[Any]) -> bool:
        """Move the future from pending to cancelled; True if this call did it."""

    def drive(self, future: PoolFuture[Any], limit: float | None) -> None:
        """Let the waiting caller read its worker's answer itself, for a short while."""


class PoolFuture(Future[T]):
    """A Future without a condition variable until one is needed."""

    # Instance attributes appear only when they differ from these: creating a future allocates one object.
    _state = PENDING
    _result: Any = None
    _exception: BaseException | None = None
    _watched = False
    _owner: Owner | None = None
    packed: Any = None
    body: Any = None  # what a task carries to its worker; let go when it is settled

    def __init__(self) -> None:
        pass  # not calling super() is the point: it would build the condition

    @property
    def _condition(self) -> threading.Condition:  # type: ignore[override]
        self._watched = True
        # setdefault is atomic: two threads that race here end up with the same condition
        return self.__dict__.setdefault("_lazy_condition", threading.Condition())  # type: ignore[no-any-return]

    @property
    def _waiters(self) -> list[Any]:  # type: ignore[override]
        return self.__dict__.setdefault("_lazy_waiters", [])  # type: ignore[no-any-return]

    @property
    def _done_callbacks(self) -> list[Callable[[Future[T]], object]]:
        return self.__dict__.setdefault("_lazy_callbacks", [])  # type: ignore[no-any-return]

    def settle(
        self, result: Any, exception: BaseException | None, later: deque[PoolFuture[Any]] | None
    ) -> None:
        """Finish this future; called exactly once, by the engine that took its task off the books.

        With `later`, callbacks are left there for the dispatcher: they must not run inside the
        `submit()` or `result()` of a caller who may hold locks of its own.
        """
        if exception is not None:
            self._exception = exception
        else:
            self._result = result
        self.body = None
        if self.packed is not None:
            self.packed = None  # the buffers are the user's again
        # These two lines are one step: the interpreter switches threads only at calls and backward jumps
        if not self._watched:
            self._state = FINISHED
            return
        self._publish(FINISHED)
        if self._done_callbacks:
            if later is None:
                self.run_callbacks()
            else:
                later.append(self)

    def _publish(self, state: str) -> None:
        """Change the state of a watched future and wake everybody who waits for it."""
        condition = self._condition  # wait() and as_completed() rely on the state not changing under it
        held = condition.acquire(timeout=LOST)
        try:
            self._state = state
            if state is FINISHED:
                for waiter in self._waiters:
                    if self._exception is not None:
                        waiter.add_exception(self)
                    else:
                        waiter.add_result(self)
            if held:
                condition.notify_all()
        finally:
            if held:
                condition.release()
        for sleeper in tuple(self._sleepers):
            if sleeper.locked():
                sleeper.release()

    @property
    def _sleepers(self) -> deque[threading.Lock]:
        return self.__dict__.setdefault("_lazy_sleepers", deque())  # type: ignore[no-any-return]

    def run_callbacks(self) -> None:
        """Run the callbacks. One that raises, whatever it raises, disturbs neither the others nor us."""
        for callback in self._done_callbacks:
            try:
                callback(self)
            except BaseException:
                LOGGER.exception("exception calling callback for %r", self)

    def mark_cancelled(self) -> None:
        """Pending to cancelled; the engine has made sure that nothing else happens to it."""
        if not self._watched:
            self._state = CANCELLED
            return
        self._publish(CANCELLED)

    def cancel(self) -> bool:
        """Cancel the call if its task has not been given to a worker."""
        owner = self._owner
        if owner is None:
            return super().cancel()
        if not owner.cancel(self):
            return self.cancelled()
        if self._watched:
            self.run_callbacks()
        return True

    def abandon(self, later: deque[PoolFuture[Any]]) -> None:
        """Cancel a future whose task was taken off the books; waiters hear of it, callbacks run later."""
        self._publish(CANCELLED)
        self.set_running_or_notify_cancel()
        if self._done_callbacks:
            later.append(self)

    def result(self, timeout: float | None = None) -> T:
        """Return the call's result, or raise what the call raised."""
        try:
            if self._state is not FINISHED:
                self._wait(timeout)
            if self._exception is not None:
                raise self._exception
            return self._result  # type: ignore[no-any-return]
        finally:
            self = None  # type: ignore[assignment]  # noqa: PLW0642  no cycle through the traceback

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the call raised, or None."""
        if self._state is not FINISHED:
            self._wait(timeout)
        return self._exception

    def done(self) -> bool:
        """Return True if the call finished or was cancelled."""
        return self._state in DONE

    def _wait(self, timeout: float | None) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        owner = self._owner
        if owner is not None and self._state not in DONE:
            owner.drive(self, timeout)
            if self._state is FINISHED:
                return
        bell = threading.Lock()
        bell.acquire()
        self._watched = True
        self._sleepers.append(bell)
        try:
            while self._state not in DONE:
                left = NAP if until is None else min(until - time.monotonic(), NAP)
                if left <= 0:
                    raise FutureTimeout
                bell.acquire(timeout=left)
        finally:
            self._sleepers.remove(bell)
        if self._state is not FINISHED:
            raise CancelledError
