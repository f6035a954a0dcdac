"""`map`: ordered results, eager start, and chunks sized by measurement.

Items shorter than two milliseconds travel in chunks worth about ten. If a worker dies inside a chunk,
the item it ran is known and fails alone; items of that chunk that were done but not yet reported run
again. Tasks with a timeout, a deadline, retries or a task budget are never put in chunks.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Protocol

from millpond.pool.future import PoolFuture
from millpond.pool.options import TaskOptions
from millpond.pool.upkeep import ChunkBroken
from millpond.rules.dispatch import SLOW_ITEM, chunk_size

PROBE_PATIENCE = 0.25  # how long map() waits to learn how long an item takes
WORTH_CHUNKING = 64


class Engine(Protocol):
    """What map needs of an engine."""

    most: int

    def submit(
        self, call: Any, args: Any, kwargs: Any, options: TaskOptions, items: int = 0
    ) -> PoolFuture[Any]:
        """Accept a call."""

    def estimate(self, call: Any) -> float | None:
        """How long a call takes, if that is known."""

    def running_for(self, future: PoolFuture[Any]) -> float | None:
        """How long the task has been running, if it has begun."""


class Mapping:
    """One call of map: everything submitted at once, results taken in order."""

    def __init__(
        self, engine: Engine, call: Callable[..., Any], calls: list[Any], options: TaskOptions
    ) -> None:
        self._engine = engine
        self._call = call
        self._calls = calls
        self._options = options
        self._parts: list[tuple[PoolFuture[Any], int, int]] = []  # (future, from, to); a single has to == 0

    def submit_all(self, chunksize: int | None) -> None:
        """Submit every item; with no chunk size given, find one."""
        calls, start = self._calls, 0
        if chunksize is None:
            start, chunksize = self._choose()
        if chunksize <= 1:
            for index in range(start, len(calls)):
                self._single(index)
            return
        for begin in range(start, len(calls), chunksize):
            end = min(begin + chunksize, len(calls))
            part = calls[begin:end]
            future = self._engine.submit(self._call, part, {}, self._options, items=end - begin)
            self._parts.append((future, begin, end))

    def _single(self, index: int) -> None:
        future = self._engine.submit(self._call, self._calls[index], {}, self._options)
        self._parts.append((future, index, 0))

    def _choose(self) -> tuple[int, int]:
        """(items submitted as probes, chunk size for the rest)."""
        calls, engine = self._calls, self._engine
        if len(calls) < WORTH_CHUNKING or not self._options.plain:
            return 0, 1
        probes = 0
        estimate = engine.estimate(self._call)
        if estimate is None:
            self._single(0)
            probes = 1
            estimate = self._probe(self._parts[0][0])
        return probes, chunk_size(estimate, len(calls) - probes, engine.most)

    def _probe(self, future: PoolFuture[Any]) -> float | None:
        """Wait until the first item is done, or has run long enough to need no chunk."""
        until = time.monotonic() + PROBE_PATIENCE
        while time.monotonic() < until:
            try:
                future.exception(SLOW_ITEM)
                break
            except FutureTimeout:
                if (self._engine.running_for(future) or 0.0) >= SLOW_ITEM:
                    return SLOW_ITEM
            except BaseException:
                break
        return self._engine.estimate(self._call)

    def results(self, until: float | None) -> Iterator[Any]:
        """Yield in order; what is left is cancelled when the consumer stops."""
        parts = self._parts
        parts.reverse()
        try:
            while parts:
                if not parts[-1][2]:
                    # No name may hold the future or its value while the consumer works with it
                    yield take_result(parts.pop()[0], until)
                    continue
                future, begin, end = parts.pop()
                values, error = self._chunk(future, begin, end, until)
                del future
                values.reverse()
                while values:
                    yield values.pop()
                if error is not None:
                    raise error
        finally:
            for future, _, _ in parts:
                future.cancel()

    def _chunk(
        self, future: PoolFuture[Any], begin: int, end: int, until: float | None
    ) -> tuple[list[Any], BaseException | None]:
        """The values of a chunk up to its first error, and that error."""
        try:
            values, errors = take_result(future, until)
        except ChunkBroken as broken:
            if not broken.index:
                return [], broken.error
            before = self._calls[begin : begin + broken.index]
            again = self._engine.submit(self._call, before, {}, self._options, items=len(before))
            values, error = self._chunk(again, begin, begin + broken.index, until)
            return values, error or broken.error
        if errors is None:
            return values, None
        first = min(errors)
        return values[:first], pickle.loads(errors[first])


def take_result(future: PoolFuture[Any], until: float | None) -> Any:
    """The future's result, waiting no longer than `until`; a future given up on is cancelled."""
    try:
        return future.result(None if until is None else until - time.monotonic())
    finally:
        future.cancel()
        del future


def with_progress(values: Iterator[Any], total: int) -> Iterator[Any]:
    """Show a progress bar on the terminal while the values are consumed."""
    from rich.console import Console
    from rich.progress import track

    return iter(track(values, total=total, description="map", console=Console(stderr=True), transient=True))
