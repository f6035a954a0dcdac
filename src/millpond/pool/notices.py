"""What follows when futures have finished: waiters are told and callbacks run, many at once where that is
cheaper.

The standard library wakes a waiter for each future, and asyncio writes to its loop's socket for each: both
cost more than a short task. The dispatcher finishes many futures in one round, so it tells each waiter and
each loop once for all of them. Other threads tell at once: a signal handler may interrupt them half-way.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, _base
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millpond.pool.future import PoolFuture

AT_ONCE = 256  # futures that may have finished before their waiters are told
CELLS = {"destination", "dest_loop", "_set_state"}  # what asyncio's callback must know to be told in one go


class Notices(deque["PoolFuture[Any]"]):
    """The futures whose callbacks must run, and beside them the waiters that must be told."""

    def __init__(self) -> None:
        super().__init__()
        self._collector = 0  # the thread that tells many at once: the dispatcher
        self._told: dict[int, tuple[Any, list[Future[Any]]]] = {}  # by id of the waiter
        self._count = 0
        self.cancelled: deque[PoolFuture[Any]] = deque()  # their waiters must be told outside the lock

    def collect_here(self) -> None:
        """From now on this thread gathers what it finishes, until it calls `tell`."""
        self._collector = threading.get_ident()

    def add(self, waiter: Any, future: Future[Any]) -> bool:
        """Gather one notice; False: the caller must tell the waiter itself."""
        if threading.get_ident() != self._collector:
            return False
        found = self._told.get(id(waiter))
        if found is None:
            found = self._told[id(waiter)] = waiter, []
        found[1].append(future)
        self._count += 1
        if self._count >= AT_ONCE:
            self.tell()
        return True

    def tell(self) -> None:
        """Tell every waiter of what has been gathered."""
        while self.cancelled:
            self.cancelled.popleft().tell_cancelled()
        if self._count:
            told, self._told, self._count = self._told, {}, 0
            for waiter, futures in told.values():
                tell_waiter(waiter, futures)

    def run_callbacks(self) -> None:
        """Run what waits here, in the dispatcher: asyncio's own callbacks many at once."""
        loops: dict[Any, list[tuple[Any, ...]]] = {}
        while self:
            future = self.popleft()
            callbacks = future._done_callbacks
            if len(callbacks) == 1 and (cells := asyncio_cells(callbacks[0])) is not None:
                loops.setdefault(cells["dest_loop"], []).append(
                    (cells["_set_state"], cells["destination"], future)
                )
            else:
                future.run_callbacks()
        for loop, states in loops.items():
            try:
                loop.call_soon_threadsafe(_set_states, loop, states)
            except RuntimeError:  # the loop is closed: nobody awaits these any more
                continue


def tell_waiter(waiter: Any, futures: list[Future[Any]]) -> None:
    """Tell a waiter of the standard library that these have finished."""
    kind = type(waiter)
    if kind is _base._AsCompletedWaiter:
        with waiter.lock:
            waiter.finished_futures.extend(futures)
            waiter.event.set()
    elif kind is _base._AllCompletedWaiter and not waiter.stop_on_exception:
        waiter.finished_futures.extend(futures)
        with waiter.lock:
            waiter.num_pending_calls -= len(futures)
            if not waiter.num_pending_calls:
                waiter.event.set()
    else:
        for future in futures:
            if future._exception is not None:
                waiter.add_exception(future)
            else:
                waiter.add_result(future)


# --- asyncio ---------------------------------------------------------------------------------------------
def _find_code() -> CodeType | None:
    """The code of the callback by which asyncio follows a future of ours; None if it is not as we know it."""
    asyncio = sys.modules.get("asyncio.futures")
    chain = getattr(asyncio, "_chain_future", None)
    for constant in getattr(getattr(chain, "__code__", None), "co_consts", ()):
        if isinstance(constant, CodeType) and constant.co_name == "_call_set_state":
            return constant if set(constant.co_freevars) >= CELLS else None
    return None


_code: CodeType | None = None


def asyncio_cells(callback: Callable[..., object]) -> dict[str, Any] | None:
    """What asyncio's callback knows, if this is one and its loop is open."""
    global _code
    code, closure = getattr(callback, "__code__", None), getattr(callback, "__closure__", None)
    if code is None or closure is None or code.co_name != "_call_set_state":
        return None
    _code = _code or _find_code()
    if _code is None or code is not _code:
        return None
    cells = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
    loop = cells["dest_loop"]
    return None if loop is None or loop.is_closed() else cells


def _set_states(loop: Any, states: list[tuple[Any, ...]]) -> None:
    """In the loop's thread: what asyncio would have been called for one by one."""
    for set_state, destination, source in states:
        try:
            set_state(destination, source)
        except Exception as error:
            loop.call_exception_handler({"message": "a future could not be finished", "exception": error})
