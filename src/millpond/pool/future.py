"""The future a pool hands out: a real `concurrent.futures.Future` that is cheap until somebody waits.

The standard future builds a condition variable at birth, its largest cost. Here the condition, the list
of waiters and the list of callbacks appear on first use, and the condition is a bare lock. Setting a result
takes no lock: the setter looks at `_watched` and publishes `_state` in one step; a thread that wants to watch
sets `_watched` first and looks at `_state` second. Once a future is watched, its state changes only under
its condition.

`result()` never takes that condition: an interrupt could leave it locked for ever. It sleeps on a lock
of its own, which whoever settles the future releases.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED, LOGGER, PENDING
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from millpond.events import report
from millpond.pool.lost_locks import hold
from millpond.pool.notices import Notices, tell_waiter
from millpond.pool.options import PoolOptions

T = TypeVar("T")
DONE = frozenset({FINISHED, CANCELLED, CANCELLED_AND_NOTIFIED})
RLOCK = type(threading.RLock())
NAP = 5.0  # how long a sleeper can be left unrung by a settler that was interrupted


class _Condition(RLOCK):  # type: ignore[misc, valid-type]
    """What the standard library locks while it looks at a future. Nothing waits for a notification of it:
    `result()` sleeps on a lock of its own."""

    __slots__ = ()

    def notify_all(self) -> None:
        """Nothing: no thread waits for it."""


LAZY: Mapping[str, Callable[[], Any]] = {
    "_condition": _Condition,
    "_waiters": list,
    "_done_callbacks": list,
    "_sleepers": deque,
}


class Owner(Protocol):
    """What a future needs of the engine that runs it."""

    options: PoolOptions

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

    if TYPE_CHECKING:
        _condition: Any
        _waiters: list[Any]
        _done_callbacks: list[Callable[[Future[T]], object]]
        _sleepers: deque[threading.Lock]
    else:

        def __getattr__(self, name: str) -> Any:
            make = LAZY.get(name)
            if make is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name == "_condition":
                self._watched = True
                self.__dict__.setdefault("_waiters", [])  # a thread that locks it is about to wait, as a rule
            # setdefault is atomic: two threads that race here end up with the same object
            return self.__dict__.setdefault(name, make())

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
        # One line and no call: the interpreter switches threads only at calls and backward jumps, a tracer
        # only between lines. A switch between the look and the step would lose a waiter's wake-up.
        self._state = self._state if self._watched else FINISHED
        if self._state is FINISHED:
            return
        self._publish(FINISHED, later)
        if "_done_callbacks" in self.__dict__:
            if later is None:
                self.run_callbacks()
            else:
                later.append(self)

    def _publish(self, state: str, notices: deque[PoolFuture[Any]] | None = None) -> None:
        """Change the state of a watched future and wake everybody who waits for it."""
        condition = self._condition  # wait() and as_completed() rely on the state not changing under it
        held = hold(condition)
        try:
            self._state = state
            if state is FINISHED and "_waiters" in self.__dict__:
                for waiter in self._waiters:
                    if not isinstance(notices, Notices) or not notices.add(waiter, self):
                        tell_waiter(waiter, [self])
        finally:
            if held:
                condition.release()
        if "_sleepers" in self.__dict__:
            for sleeper in tuple(self._sleepers):
                if sleeper.locked():
                    sleeper.release()

    def add_done_callback(self, fn: Callable[[Future[T]], object]) -> None:
        """Call `fn(self)` when the future is finished or cancelled; at once if it is."""
        with self._condition:
            if self._state not in DONE:
                self._done_callbacks.append(fn)
                return
        self._call_back(fn)

    def run_callbacks(self) -> None:
        """Run the callbacks. One that raises, whatever it raises, disturbs neither the others nor us."""
        for callback in self._done_callbacks:
            self._call_back(callback)

    def _call_back(self, callback: Callable[[Future[T]], object]) -> None:
        try:
            callback(self)
        except BaseException as error:
            hook = None if self._owner is None else self._owner.options.on_callback_error
            if hook is None:
                LOGGER.exception("exception calling callback for %r", self)
            else:
                report(hook, error, callback, self)

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
        # As in `settle`: a future that no thread watches costs one step, also where a million are cancelled
        self._state = self._state if self._watched else CANCELLED_AND_NOTIFIED
        if self._state is CANCELLED_AND_NOTIFIED:
            return
        self._publish(CANCELLED)
        self.tell_cancelled()
        if "_done_callbacks" in self.__dict__:
            later.append(self)

    def confirm_cancel(self, later: Notices) -> None:
        """The engine has met this cancelled future. It holds its lock, so if a thread watches the future, the
        dispatcher tells that one later: an interrupted caller may have left the condition locked. Shown in
        test_a_cancelled_future_that_an_interrupt_has_left_locked_stops_nothing."""
        self._state = self._state if self._watched else CANCELLED_AND_NOTIFIED
        if self._state is CANCELLED:
            later.cancelled.append(self)

    def tell_cancelled(self) -> None:
        """What `set_running_or_notify_cancel` does with a cancelled future, without waiting for ever."""
        held = hold(self._condition)
        try:
            if self._state is CANCELLED:
                self._state = CANCELLED_AND_NOTIFIED
                for waiter in self._waiters:
                    waiter.add_cancelled(self)
        finally:
            if held:
                self._condition.release()

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
