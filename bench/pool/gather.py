"""The ways in which people wait for many tasks: each beside the standard library's pool in the same run."""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, as_completed, wait
from typing import Any

import work
from peer import ExecutorPeer, Peer
from sizes import Sizes
from speed import WORKERS, check, repeat
from values import Values, median

Way = Callable[[Executor, Sequence[int]], list[int]]


def by_result(executor: Executor, items: Sequence[int]) -> list[int]:
    futures = [executor.submit(work.noop, item) for item in items]
    return [future.result() for future in futures]


def by_wait(executor: Executor, items: Sequence[int]) -> list[int]:
    futures = [executor.submit(work.noop, item) for item in items]
    wait(futures)
    return [future.result() for future in futures]


def by_as_completed(executor: Executor, items: Sequence[int]) -> list[int]:
    futures = [executor.submit(work.noop, item) for item in items]
    return sorted(future.result() for future in as_completed(futures))


def by_asyncio(executor: Executor, items: Sequence[int]) -> list[int]:
    async def gather() -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*[loop.run_in_executor(executor, work.noop, item) for item in items])

    return asyncio.run(gather())


WAYS: dict[str, Way] = {
    "result": by_result,
    "wait": by_wait,
    "as_completed": by_as_completed,
    "asyncio": by_asyncio,
}


def gather(peer: Peer, sizes: Sizes) -> Values:
    """No-ops submitted one by one and gathered in each way, in tasks a second."""
    if not isinstance(peer, ExecutorPeer):
        return {}
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(200))
    items = range(sizes.gather)
    executor: Any = peer.executor

    def once(way: Way) -> float:
        start = time.perf_counter()
        results = way(executor, items)
        took = time.perf_counter() - start
        check(results == list(items))
        return len(items) / took

    values = {name: median(repeat(lambda way=way: once(way), sizes)) for name, way in WAYS.items()}
    peer.close()
    return dict(values)
