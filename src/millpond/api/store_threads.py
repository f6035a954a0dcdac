"""The few threads in which the API waits for its store: bounded in number, in line and in time.

A store's verbs are synchronous. The event loop never calls one; a request that would have to wait behind too
many others is refused at once, and nobody waits longer than the patience given.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from millpond.api.options import Limits
from millpond.api.problems import Problem

P = ParamSpec("P")
R = TypeVar("R")
STOPPING = "this server is stopping"


class Threads:
    """Runs store calls beside the event loop."""

    def __init__(self, limits: Limits) -> None:
        self._executor = ThreadPoolExecutor(limits.threads, "millpond-api")
        self._room = limits.threads + limits.waiting
        self._patience = limits.request_within
        self._taken = 0
        self._closed = False

    async def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result; a Problem when there is no room or no answer in time."""
        if self._closed:
            raise Problem("overloaded", STOPPING)
        if self._taken >= self._room:
            raise Problem("overloaded", f"{self._taken} requests wait for the store already")
        loop = asyncio.get_running_loop()
        self._taken += 1
        future = loop.run_in_executor(self._executor, functools.partial(function, *args, **kwargs))
        future.add_done_callback(self._is_done)
        try:
            # Shielded: a thread cannot be stopped, and keeps its place in the count until it ends.
            return await asyncio.wait_for(asyncio.shield(future), self._patience)
        except TimeoutError:
            if future.done():
                raise  # the function's own, such as a store that is busy
            raise Problem("timed-out", f"the store did not answer within {self._patience:g} s") from None
        except asyncio.CancelledError:
            if not future.cancelled():
                raise  # the request itself was given up
            raise Problem("overloaded", STOPPING) from None  # it stood in line when this was closed

    def _is_done(self, future: asyncio.Future[Any]) -> None:
        self._taken -= 1
        if not future.cancelled():
            future.exception()  # taken note of, also when nobody waits any more

    def close(self) -> None:
        """Begin nothing more; requests that are still on their way are refused."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
