"""`map`: ordered results, eager start, and chunks sized by measurement.

Items shorter than two milliseconds travel in chunks worth about twenty. If a worker dies inside a chunk,
the window of items it was in is known; those run again one by one, and the one that kills fails alone.
Items of that chunk that were done but not yet reported run again, too. Tasks with a timeout, a deadline,
retries or a task budget are never put in chunks.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import chain
from typing import Any, Protocol

from millpond.pool.future import PoolFuture
from millpond.pool.options import TaskOptions
from millpond.pool.task import ChunkBroken
from millpond.rules.pool.dispatch import CHUNK_WINDOW, SLOW_ITEM, chunk_size

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
        self, engine: Engine, call: Callable[..., Any], items: list[Any], starred: bool, options: TaskOptions
    ) -> None:
        self._engine = engine
        self._call = call
        self._items = items
        self._starred = starred  # each item is a tuple of arguments
        self._options = options
        self._parts: list[tuple[PoolFuture[Any], int, int]] = []  # (future, from, to); a single has to == 0

    def submit_all(self, chunksize: int | None) -> None:
        """Submit every item; with no chunk size given, find one."""
        start, size = (0, chunksize) if chunksize is not None else self._choose()
        for begin in range(start, len(self._items), size):
            if size == 1:
                self._parts.append((self._single(begin), begin, 0))
            else:
                end = min(begin + size, len(self._items))
                self._parts.append((self._submit_chunk(begin, end), begin, end))

    def _single(self, index: int) -> PoolFuture[Any]:
        item = self._items[index]
        return self._engine.submit(self._call, item if self._starred else (item,), {}, self._options)

    def _submit_chunk(self, begin: int, end: int) -> PoolFuture[Any]:
        content = (self._starred, self._items[begin:end])
        return self._engine.submit(self._call, content, {}, self._options, items=end - begin)

    def _choose(self) -> tuple[int, int]:
        """(items submitted as probes, chunk size for the rest)."""
        items, engine = self._items, self._engine
        if len(items) < WORTH_CHUNKING or not self._options.plain:
            return 0, 1
        probes = 0
        estimate = engine.estimate(self._call)
        if estimate is None:
            future = self._single(0)
            self._parts.append((future, 0, 0))
            probes, estimate = 1, self._probe(future)
        return probes, chunk_size(estimate, len(items) - probes, engine.most)

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
        """The values in order; what is left is cancelled when the consumer stops."""
        if any(end for _, _, end in self._parts):
            return Values.of(self._lists(until))
        return self._one_by_one(until)

    def _one_by_one(self, until: float | None) -> Iterator[Any]:
        parts = self._parts
        parts.reverse()
        try:
            while parts:
                # No name may hold the future or its value while the consumer works with it
                yield take_result(parts.pop()[0], until)
        finally:
            for future, _, _ in parts:
                future.cancel()

    def _lists(self, until: float | None) -> Iterator[list[Any]]:
        parts = self._parts
        parts.reverse()
        try:
            while parts:
                future, begin, end = parts.pop()
                if end:
                    yield from self._chunk(future, begin, end, until)
                else:
                    yield [take_result(future, until)]
                del future
        finally:
            for future, _, _ in parts:
                future.cancel()

    def _chunk(
        self, future: PoolFuture[Any], begin: int, end: int, until: float | None
    ) -> Iterator[list[Any]]:
        """The values of a chunk, up to its first error, which is raised."""
        try:
            values, errors = take_result(future, until)
        except ChunkBroken as broken:
            yield from self._carefully(begin, begin + broken.index, end, until)
            return
        if errors is None:
            yield values
            return
        first = min(errors)
        yield values[:first]
        raise pickle.loads(errors[first])

    def _carefully(self, begin: int, window: int, end: int, until: float | None) -> Iterator[list[Any]]:
        """A worker died in a chunk, in the few items from `window` on: those go one by one now, so that
        the one that kills is the one that fails."""
        if begin < window:
            yield from self._chunk(self._submit_chunk(begin, window), begin, window, until)
        after = min(window + CHUNK_WINDOW, end)
        for future in [self._single(index) for index in range(window, after)]:
            yield [take_result(future, until)]
        if after < end:
            yield from self._chunk(self._submit_chunk(after, end), after, end, until)


class Values(chain[Any]):
    """An iterator over lists of values, at the speed of C, that can be closed like a generator."""

    _lists: Iterator[list[Any]]

    @classmethod
    def of(cls, lists: Iterator[list[Any]]) -> Values:
        """The values of these lists, one after the other."""
        values = cls.from_iterable(lists)
        assert isinstance(values, Values)
        values._lists = lists
        return values

    def close(self) -> None:
        """Cancel what has not begun."""
        self._lists.close()  # type: ignore[attr-defined]


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
