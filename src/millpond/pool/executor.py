"""`Pool`: the public face. Checks what it is told, picks the engine for the kind, delegates.

It holds no state of its own beyond that: the engine must not keep the pool alive, so that a pool that is
dropped without shutdown is still drained and cleaned up.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor, Future
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

from millpond.errors import OptionError
from millpond.events import Subscriber, logger, report
from millpond.pool import context_vars as contexts
from millpond.pool.map import Mapping, with_progress
from millpond.pool.options import (
    SERVICE,
    Duration,
    PoolKeywords,
    PoolOptions,
    TaskKeywords,
    TaskOptions,
    check_bounds,
    from_environment,
    pool_options,
    task_options,
)
from millpond.pool.statistics import Health, PoolStatistics
from millpond.units import seconds

if TYPE_CHECKING:
    from millpond.pool.process.control import CrewControl
    from millpond.pool.thread_engine import ThreadEngine

P = ParamSpec("P")
T = TypeVar("T")
ENDS = (KeyboardInterrupt, SystemExit)  # what ends a program


class _Submitter(Executor):
    """What a pool and its views share: submit and map with a set of task options."""

    _engine: CrewControl | ThreadEngine
    _options: PoolOptions
    _task: TaskOptions

    # An async function is run to its end: the future has what it returns
    @overload
    def submit(
        self, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]: ...

    @overload
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule `fn(*args, **kwargs)` and return its Future."""
        if self._task.context:
            return self._engine.submit(contexts.carry(self._task.context, fn), args, kwargs, self._task)
        return self._engine.submit(fn, args, kwargs, self._task)

    @overload
    def map(
        self,
        fn: Callable[..., Coroutine[Any, Any, T]],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        progress: bool = False,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        progress: bool = False,
    ) -> Iterator[T]: ...

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        progress: bool = False,
    ) -> Iterator[Any]:
        """Apply `fn` to every item, in parallel, and return an iterator over the results in order.

        Everything is submitted at once. `chunksize=None` lets the pool choose by measurement.
        """
        if chunksize is not None and chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        until = None if timeout is None else timeout + time.monotonic()
        starred = len(iterables) != 1
        # The standard library stops at the shortest, too
        items = list(zip(*iterables)) if starred else list(iterables[0])  # noqa: B905
        plain = self._task.plain and not self._task.context and self._options.max_tasks_per_child is None
        if self._options.kind == "thread" or not plain:
            chunksize = 1
        call = contexts.carry(self._task.context, fn) if self._task.context else fn
        mapping = Mapping(self._engine, call, items, starred, self._task)
        mapping.submit_all(chunksize)
        values = mapping.results(until)
        return with_progress(values, len(items)) if progress else values


class PoolView(_Submitter):
    """A pool seen through other task options; made by `Pool.using`."""

    def __init__(self, pool: Pool, task: TaskOptions) -> None:
        self._pool = pool  # a view keeps its pool alive
        self._engine = pool._engine
        self._options = pool._options
        self._task = task

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing: a view ends with its pool."""


class Pool(_Submitter):
    """A `concurrent.futures.Executor` whose workers survive crashes, hangs and leaks.

    A drop-in for `ProcessPoolExecutor`; every further option is keyword-only. See `docs/reference/pool.md`.
    """

    def __init__(
        self,
        max_workers: int | str | None = None,
        mp_context: BaseContext | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Unpack[PoolKeywords],
    ) -> None:
        self._options = pool_options(max_workers, mp_context, initializer, initargs, options)
        self._task = self._options.task
        contexts.check(self._task.context, self._options.kind)
        self._engine = _engine_for(self._options)
        # Not a method of self: the engine outlives the pool until its work is done
        self._finalizer = weakref.finalize(self, self._engine.close_quietly, os.getpid())
        self._finalizer.atexit = False  # at exit the dispatcher's own hook drains every pool

    @classmethod
    def from_env(cls, **options: Any) -> Pool:
        """A pool configured by `MILLPOND_POOL_*` variables; what is passed here wins over them."""
        return cls(**{**from_environment(), **options})

    @classmethod
    def for_service(cls, **options: Any) -> Pool:
        """A pool for a program that runs for months: every task ends, every worker is replaced in time, the
        queue is bounded. `MILLPOND_POOL_*` variables win over the preset, what is passed here over both."""
        return cls(**{**SERVICE, **from_environment(), **options})

    def using(self, **options: Unpack[TaskKeywords]) -> PoolView:
        """The same pool with other options for the tasks submitted through the returned view."""
        task = task_options(self._task, options, self._options.kind)
        contexts.check(task.context, self._options.kind)
        return PoolView(self, task)

    def __enter__(self) -> Self:
        self._engine.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Finish the work; but after Ctrl-C or a `sys.exit()` stop it, since the program ends. A cancelled
        coroutine or a closed generator does not end the program: it waits as after any other exception."""
        if kind is not None and issubclass(kind, ENDS) and self._options.kind != "thread":
            self.shutdown(cancel_futures=True, timeout=0)
        else:
            self.shutdown()

    # --- looking -----------------------------------------------------------------------------------
    @property
    def _max_workers(self) -> int:
        """What programs read from the standard library's executors to see how much fits."""
        return self._engine.most

    def statistics(self) -> PoolStatistics:
        """Counts, durations and one row for each worker, as of now."""
        return self._engine.statistics()

    def health(self) -> Health:
        """ok, degraded or failed, with the reasons."""
        return self._engine.health()

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every event of the pool; returns the function that ends it."""
        return self._engine.events.subscribe(subscriber)

    def monitor(self, every: Duration, callback: Callable[[PoolStatistics], object]) -> Callable[[], None]:
        """Call `callback` with the statistics every so often; returns the function that ends it."""
        period = seconds(every, name="every")
        if period <= 0:
            raise OptionError(f"every must be above zero, not {every!r}")
        if not callable(callback):
            raise TypeError("callback must be a callable")
        stop = threading.Event()
        threading.Thread(
            target=_report, args=(self._engine, period, callback, stop), daemon=True, name="millpond-monitor"
        ).start()
        return stop.set

    # --- steering -----------------------------------------------------------------------------------
    def kill(self, future: Future[Any]) -> bool:
        """Stop one task: cancelled if it has not begun, else its worker is killed and replaced.

        True if it was stopped or will be; False if it was done already.
        """
        return self._engine.kill(future)

    def resize(self, max_workers: int | None = None, min_workers: int | None = None) -> None:
        """Change the bounds of the pool; busy workers finish their task first."""
        engine = self._engine
        most = engine.most if max_workers is None else max_workers
        check_bounds(0, most)
        if min_workers is None:  # a pool of fixed size stays one
            min_workers = most if engine.least == engine.most else min(engine.least, most)
        least = min_workers
        check_bounds(least, most)
        self._engine.resize(least, most)

    def shutdown(
        self,
        wait: bool = True,
        *,
        cancel_futures: bool = False,
        timeout: Duration | None = None,
    ) -> None:
        """Accept no more work, finish what there is, then end the workers.

        With `timeout`, what is not done by then is stopped: waiting tasks are cancelled, running ones
        fail with TaskKilled.
        """
        limit = None if timeout is None else seconds(timeout, name="timeout")
        self._engine.shutdown(wait=wait, cancel=cancel_futures, timeout=limit)

    def terminate_workers(self) -> None:
        """SIGTERM every worker and shut the pool down at once, as in Python 3.14."""
        self._engine.stop_workers(force=False)

    def kill_workers(self) -> None:
        """SIGKILL every worker and shut the pool down at once, as in Python 3.14."""
        self._engine.stop_workers(force=True)

    def __repr__(self) -> str:
        engine = self._engine
        return f"<Pool {self._options.name!r} {self._options.kind} {engine.least}..{engine.most} workers>"


def _engine_for(options: PoolOptions) -> CrewControl | ThreadEngine:
    if options.kind == "thread":
        from millpond.pool.thread_engine import ThreadEngine

        return ThreadEngine(options)
    from millpond.pool.process.control import CrewControl  # needs Linux: threads must work without it
    from millpond.system.kernel import check

    check()
    return CrewControl(options)


def _report(
    engine: CrewControl | ThreadEngine,
    period: float,
    callback: Callable[[PoolStatistics], object],
    stop: threading.Event,
) -> None:
    while not stop.wait(period) and not engine.finished.is_set():
        statistics = engine.statistics()
        try:
            callback(statistics)
        except Exception as error:
            hook = engine.options.on_callback_error
            if hook is not None:
                report(hook, error, callback, statistics)
                continue
            logger.exception("A monitor callback failed; the pool goes on")
