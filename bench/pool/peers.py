"""One small adapter per pool library, and the order in which the tables show them.

An adapter must never tune a library beyond what its scenario asks for.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import work
from peer import ExecutorPeer, Function, Outcome, Peer

if TYPE_CHECKING:  # a measured process loads no more than its own library does
    from concurrent.futures import Executor


class ProcessPoolExecutorPeer(ExecutorPeer):
    """Always with fork, its fastest and smallest; recycling is offered with spawn only."""

    name = "ppe"
    label = "ProcessPoolExecutor"
    module = "concurrent.futures.process"
    standard = True
    can_recycle = True

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        import multiprocessing

        context = multiprocessing.get_context("spawn" if recycle_after else "fork")
        self.executor = self.load().ProcessPoolExecutor(
            workers, mp_context=context, max_tasks_per_child=recycle_after
        )


class MultiprocessingPoolPeer(Peer):
    name = "mppool"
    label = "multiprocessing.Pool"
    module = "multiprocessing.pool"
    standard = True
    can_recycle = True
    large_chunks = (None, 10_000, 100_000)

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        import multiprocessing

        self.pool = multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=recycle_after)

    def close(self) -> None:
        self.pool.terminate()

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.apply_async(function, (argument,))

    def result(self, handle: Any, seconds: float | None = None) -> Any:
        return handle.get(seconds)

    def map(self, function: Function, items: Sequence[Any], chunk: int | None) -> list[Any]:
        return self.pool.map(function, items, chunksize=chunk)


class LokyPeer(ExecutorPeer):
    name = "loky"
    label = "loky"
    module = "loky"

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.executor = self.load().ProcessPoolExecutor(workers)


class PebblePeer(Peer):
    name = "pebble"
    label = "pebble"
    module = "pebble"
    has_timeout = True
    can_recycle = True

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.pool = self.load().ProcessPool(max_workers=workers, max_tasks=recycle_after or 0)

    def close(self) -> None:
        self.pool.stop()
        self.pool.join()

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.schedule(function, args=(argument,))

    def submit_limited(self, function: Function, argument: Any, seconds: float) -> Any:
        return self.pool.schedule(function, args=(argument,), timeout=seconds)

    def map(self, function: Function, items: Sequence[Any], chunk: int | None) -> list[Any]:
        options = {} if chunk is None else {"chunksize": chunk}
        return list(self.pool.map(function, items, **options).result())


class MpirePeer(Peer):
    """Recycling exists for its map family only, so there it stands in for submit."""

    name = "mpire"
    label = "mpire"
    module = "mpire"
    has_timeout = True
    can_recycle = True
    chunks = (100, 1_000)
    large_chunks = (None,)  # its chunk size hardly matters

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.lifespan = recycle_after
        self.pool = self.load().WorkerPool(n_jobs=workers)

    def close(self) -> None:
        self.pool.terminate()

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.apply_async(function, (argument,))

    def submit_limited(self, function: Function, argument: Any, seconds: float) -> Any:
        return self.pool.apply_async(function, (argument,), task_timeout=seconds)

    def result(self, handle: Any, seconds: float | None = None) -> Any:
        return handle.get(seconds)

    def map(self, function: Function, items: Sequence[Any], chunk: int | None) -> list[Any]:
        return list(self.pool.map(function, items, chunk_size=chunk, worker_lifespan=self.lifespan))

    def outcomes(
        self, function: Function, items: Sequence[Any], within: float, timeout: float | None = None
    ) -> list[Outcome]:
        if self.lifespan is None:
            return super().outcomes(function, items, within, timeout)
        results = self.map(function, items, 1)
        return ["ok" if got == item else "wrong" for got, item in zip(results, items, strict=True)]


class MillpondPeer(ExecutorPeer):
    name = "millpond"
    label = "millpond.Pool"
    module = "millpond"
    has_timeout = True
    can_recycle = True
    chunks = ()
    large_chunks = (None,)

    @classmethod
    def load(cls) -> Any:
        module = super().load()
        _ = module.Pool  # the package imports its parts when they are first named
        return module

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.executor = self.load().Pool(workers, max_tasks_per_child=recycle_after)
        self.views: dict[float, Executor] = {}

    def submit_limited(self, function: Function, argument: Any, seconds: float) -> Any:
        view = self.views.get(seconds)
        if view is None:
            pool: Any = self.executor
            view = self.views[seconds] = pool.using(timeout=seconds)
        return view.submit(function, argument)


class ThreadPoolExecutorPeer(ExecutorPeer):
    name = "tpe"
    label = "ThreadPoolExecutor"
    module = "concurrent.futures.thread"
    standard = True
    only = frozenset({"submit", "latency"})

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.executor = self.load().ThreadPoolExecutor(workers)


class AtOnce:
    """No pool at all: each call is made at `submit`. What is left is the standard library's own waiting."""

    def submit(self, function: Function, *args: Any) -> Any:
        from concurrent.futures import Future

        future: Future[Any] = Future()
        future.set_result(function(*args))
        return future

    def shutdown(self) -> None:
        pass


class AtOncePeer(ExecutorPeer):
    """The bound of every ratio: a pool whose tasks cost nothing could not be gathered faster."""

    name = "at-once"
    label = "no pool, called at submit"
    module = "concurrent.futures"
    standard = True
    only = frozenset({"gather"})

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        executor: Any = AtOnce()
        self.executor = executor


class MillpondThreadPeer(ExecutorPeer):
    name = "millpond-thread"
    label = 'millpond.Pool(kind="thread")'
    module = "millpond"
    only = frozenset({"submit", "latency"})

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.executor = self.load().Pool(workers, kind="thread")


class MillpondAsyncPeer(ExecutorPeer):
    name = "millpond-async"
    label = 'millpond.Pool(kind="async")'
    module = "millpond"
    only = frozenset({"submit", "latency"})

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        self.executor = self.load().Pool(workers, kind="async")

    def submit(self, function: Function, argument: Any) -> Any:
        return self.executor.submit(work.AS_COROUTINE[function], argument)


class AiomultiprocessPeer(Peer):
    name = "aiomultiprocess"
    label = "aiomultiprocess"
    module = "aiomultiprocess"
    only = frozenset({"submit", "latency"})
    round_trips_at_most = 200  # it polls every 10 ms

    def open(self, workers: int, *, recycle_after: int | None = None) -> None:
        import asyncio

        self.asyncio = asyncio
        self.loop = asyncio.new_event_loop()

        async def opened() -> Any:
            return self.load().Pool(processes=workers)

        self.pool = self.loop.run_until_complete(opened())

    def close(self) -> None:
        self.pool.terminate()

    def submit_all(self, function: Function, items: Sequence[Any]) -> list[Any]:
        async def all_of_them() -> list[Any]:
            body = work.AS_COROUTINE[function]
            return list(await self.asyncio.gather(*[self.pool.apply(body, (i,)) for i in items]))

        return self.loop.run_until_complete(all_of_them())

    def submit(self, function: Function, argument: Any) -> Any:
        return self.pool.apply(work.AS_COROUTINE[function], (argument,))

    def result(self, handle: Any, seconds: float | None = None) -> Any:
        return self.loop.run_until_complete(self.asyncio.wait_for(handle, seconds))


OURS = MillpondPeer.name
PROCESS_POOLS: tuple[type[Peer], ...] = (
    ProcessPoolExecutorPeer,
    MultiprocessingPoolPeer,
    LokyPeer,
    PebblePeer,
    MpirePeer,
    MillpondPeer,
)
OTHER_KINDS: tuple[type[Peer], ...] = (
    AtOncePeer,
    ThreadPoolExecutorPeer,
    MillpondThreadPeer,
    AiomultiprocessPeer,
    MillpondAsyncPeer,
)
PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in PROCESS_POOLS + OTHER_KINDS}
