"""Scenarios about throughput and latency: an open, warm pool of two workers is given work.

Every result is checked, outside the measured time.
"""

import resource
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

import work
from peer import Peer
from processes import cpu_seconds, descendants
from sizes import Sizes
from values import Value, Values, median

T = TypeVar("T")

WORKERS = 2
ARRAY_BYTES = 10_000_000
MILLION = 1_000_000


def submit(peer: Peer, sizes: Sizes) -> Values:
    """No-ops submitted one by one, then all awaited; also what that costs in CPU time."""
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(200))
    items = range(sizes.submit)

    def once() -> dict[str, float]:
        workers = descendants()
        before, start = _costs(workers), time.perf_counter()
        results = peer.submit_all(work.noop, items)
        took, after = time.perf_counter() - start, _costs(workers)
        check(results == list(items))
        each = [(end - begin) / len(items) for begin, end in zip(before, after, strict=True)]
        return {
            "tasks_s": len(items) / took,
            "parent_us": each[0] * MILLION,
            "parent_switches": each[1],
            "workers_us": each[2] * MILLION,
        }

    runs = repeat(once, sizes)
    peer.close()
    return {name: median([run[name] for run in runs]) for name in runs[0]}


def latency(peer: Peer, sizes: Sizes) -> Values:
    """One task at a time on an idle pool: back to back, and after 2 ms of rest."""
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(200))
    count = min(sizes.round_trips, peer.round_trips_at_most)
    peer.round_trips(work.noop, count // 5, 0)
    runs = [sorted(peer.round_trips(work.noop, count, 0)) for _ in range(sizes.repeats)]
    rested = sorted(peer.round_trips(work.noop, count // 4, 0.002))
    peer.close()
    return {
        "p50_us": median([run[count // 2] for run in runs]) * MILLION,
        "p99_us": median([run[count * 99 // 100] for run in runs]) * MILLION,
        "rested_p50_us": median(rested) * MILLION,
    }


def map_small(peer: Peer, sizes: Sizes) -> Values:
    return _map(peer, sizes, sizes.map, (None, *peer.chunks))


def map_large(peer: Peer, sizes: Sizes) -> Values:
    return _map(peer, sizes, sizes.map_large, peer.large_chunks)


def _map(peer: Peer, sizes: Sizes, count: int, chunks: Sequence[int | None]) -> Values:
    """The library's map of no-ops, with its default and with each hand-tuned chunk size."""
    peer.open(WORKERS)
    peer.map(work.noop, range(400), chunks[0])
    items = list(range(count))
    values: dict[str, float] = {}
    for chunk in chunks:

        def once(chunk: int | None = chunk) -> float:
            start = time.perf_counter()
            results = peer.map(work.noop, items, chunk)
            took = time.perf_counter() - start
            check(results == items)
            return count / took

        values["default" if chunk is None else f"chunk_{chunk}"] = median(repeat(once, sizes))
    peer.close()
    return {**values, "best": max(values.values())}


def cpu(peer: Peer, sizes: Sizes) -> Values:
    """Tasks that use 1 ms of CPU each; 1.0 would be both workers busy all the time."""
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(200))
    tasks = [1] * sizes.cpu

    def once(way: Callable[[], list[Any]]) -> tuple[float, float]:
        before, start = time.process_time(), time.perf_counter()
        check(way() == tasks)
        took, used = time.perf_counter() - start, time.process_time() - before
        return len(tasks) / 1000 / WORKERS / took, used / len(tasks) * MILLION

    submitted = repeat(lambda: once(lambda: peer.submit_all(work.burn, tasks)), sizes)
    mapped = repeat(lambda: once(lambda: peer.map(work.burn, tasks, None)), sizes)
    peer.close()
    return {
        "submit": median([run[0] for run in submitted]),
        "map": median([run[0] for run in mapped]),
        "parent_us": median([run[1] for run in submitted]),
    }


def arrays(peer: Peer, sizes: Sizes) -> Values:
    """10 MB NumPy arrays: one way, and there and back (counting both directions)."""
    numpy: Any = import_module("numpy")
    peer.open(WORKERS)
    peer.submit_all(work.noop, range(200))
    sent = [numpy.full(ARRAY_BYTES // 8, float(index)) for index in range(sizes.arrays)]
    megabytes = sizes.arrays * ARRAY_BYTES / 1e6
    peer.submit_all(work.first_and_last, sent[:4])

    def one_way() -> float:
        start = time.perf_counter()
        sums = peer.submit_all(work.first_and_last, sent)
        took = time.perf_counter() - start
        check(sums == [2.0 * index for index in range(len(sent))])
        return megabytes / took

    def there_and_back() -> float:
        start = time.perf_counter()
        back = peer.submit_all(work.noop, sent)
        took = time.perf_counter() - start
        check(all(numpy.array_equal(got, array) for got, array in zip(back, sent, strict=True)))
        return 2 * megabytes / took

    values: dict[str, Value] = {
        "one_way": median(repeat(one_way, sizes)),
        "there_and_back": median(repeat(there_and_back, sizes)),
    }
    peer.close()
    return values


def repeat(once: Callable[[], T], sizes: Sizes) -> list[T]:
    """Up to `sizes.repeats` measurements, fewer when one takes seconds."""
    end = time.perf_counter() + 3
    runs = [once()]
    while len(runs) < sizes.repeats and time.perf_counter() < end:
        runs.append(once())
    return runs


def check(right: bool) -> None:
    if not right:
        raise ValueError("wrong results")


def _costs(workers: list[int]) -> tuple[float, float, float]:
    """CPU seconds and context switches of this process, CPU seconds of the workers."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    switches = used.ru_nvcsw + used.ru_nivcsw
    return used.ru_utime + used.ru_stime, switches, cpu_seconds(workers)
