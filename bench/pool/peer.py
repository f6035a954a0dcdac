"""The few verbs through which every pool is measured, and what they share.

A library is imported by name, when a pool is opened or `load` is called: a run pays only for the
library it measures.
"""

import importlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from concurrent.futures import Executor

Function = Callable[[Any], Any]
Outcome = str  # "ok", "wrong", "timeout", "error" or "lost" (no answer before the limit)


class Peer:
    name: ClassVar[str]
    label: ClassVar[str]
    module: ClassVar[str]
    standard: ClassVar[bool] = False  # part of Python: its version is Python's
    only: ClassVar[frozenset[str] | None] = None  # scenarios that make sense for it; None: all
    has_timeout: ClassVar[bool] = False  # a timeout per task that frees the worker
    can_recycle: ClassVar[bool] = False
    # Hand-tuned chunk sizes `map` is tried with besides the default, and for the large map.
    chunks: ClassVar[tuple[int, ...]] = (100, 1_000, 2_500, 10_000)
    large_chunks: ClassVar[tuple[int | None, ...]] = (1_000, 10_000, 100_000)
    round_trips_at_most: ClassVar[int] = 1_000_000

    @classmethod
    def load(cls) -> Any:
        return importlib.import_module(cls.module)

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def submit(self, function: Function, argument: Any) -> Any:
        raise NotImplementedError

    def submit_limited(self, function: Function, argument: Any, seconds: float) -> Any:
        raise NotImplementedError

    def result(self, handle: Any, seconds: float | None = None) -> Any:
        return handle.result(seconds)

    def map(self, function: Function, items: Sequence[Any], chunk: int | None) -> list[Any]:
        raise NotImplementedError

    def submit_all(self, function: Function, items: Sequence[Any]) -> list[Any]:
        """Submit one by one, then wait for all."""
        handles = [self.submit(function, item) for item in items]
        return [self.result(handle) for handle in handles]

    def round_trips(self, function: Function, count: int, pause: float) -> list[float]:
        taken, clock = [], time.perf_counter
        for index in range(count):
            if pause:
                time.sleep(pause)
            start = clock()
            self.result(self.submit(function, index))
            taken.append(clock() - start)
        return taken

    def outcomes(
        self, function: Function, items: Sequence[Any], within: float, timeout: float | None = None
    ) -> list[Outcome]:
        """What became of each task; the wait as a whole is bounded."""
        end = time.monotonic() + within
        handles = [self._try_submit(function, item, timeout) for item in items]
        return [self._outcome(handle, item, end) for handle, item in zip(handles, items, strict=True)]

    def _try_submit(self, function: Function, item: Any, timeout: float | None) -> Any:
        try:
            if timeout is None:
                return self.submit(function, item)
            return self.submit_limited(function, item, timeout)
        except Exception as error:  # a broken pool refuses: that is the outcome
            return error

    def _outcome(self, handle: Any, expected: Any, end: float) -> Outcome:
        if isinstance(handle, Exception):
            return "error"
        try:
            value = self.result(handle, max(0.0, end - time.monotonic()))
            return "ok" if value == expected else "wrong"
        except BaseException as error:
            if time.monotonic() >= end - 0.001:
                return "lost"
            return "timeout" if "Timeout" in type(error).__name__ else "error"


class ExecutorPeer(Peer):
    """Whatever speaks `concurrent.futures.Executor`."""

    executor: "Executor"

    def close(self) -> None:
        self.executor.shutdown()

    def submit(self, function: Function, argument: Any) -> Any:
        return self.executor.submit(function, argument)

    def map(self, function: Function, items: Sequence[Any], chunk: int | None) -> list[Any]:
        if chunk is None:
            return list(self.executor.map(function, items))
        return list(self.executor.map(function, items, chunksize=chunk))
