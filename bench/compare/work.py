"""One measurement of one commit, in a process of its own: `work.py pool N | fill N | drain N | pickup N`.

The commit is the tree in PYTHONPATH, the store is in COMPARE_STORE, the file of marks in COMPARE_MARKS. The
last line printed is a JSON document with the figures and the place of the package that was measured.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs import MARKS, app, nothing, stamp

import millpond
from millpond import Pool

CHUNK = 1000
WORKERS = 2  # of the pool
TRIPS = 2000  # round trips of the pool
WARM = 20  # jobs, or tasks, that do not count
REST = 0.02  # seconds in which a node becomes idle again
PATIENCE = 60.0  # seconds without progress after which a measurement is given up
NODE = (sys.executable, "-m", "millpond", "run", "jobs:app", "--log-level", "warning", "--no-health")


def pool(tasks: int) -> dict[str, float]:
    """No-op tasks a second from the first submit to the last result; one task there and back."""
    with Pool(WORKERS) as workers:
        for _ in range(WARM):
            workers.submit(nothing).result()
        begin = time.perf_counter()
        for future in [workers.submit(nothing) for _ in range(tasks)]:
            future.result()
        rate = tasks / (time.perf_counter() - begin)
        trips = []
        for _ in range(TRIPS):
            begin = time.perf_counter()
            workers.submit(nothing).result()
            trips.append(time.perf_counter() - begin)
    return {"submit": rate, "round trip": statistics.median(trips) * 1e6}


def fill(jobs: int) -> dict[str, float]:
    """A store with its schema and so many jobs."""
    app.store.migrate()
    for first in range(0, jobs, CHUNK):
        stamp.enqueue_many([()] * min(CHUNK, jobs - first))
    return {}


def drain(jobs: int) -> dict[str, float]:
    """Jobs a second, from the first beginning until the store has all of them as completed."""
    with _node():
        _wait(lambda: _begun() >= jobs, "every job has begun")
        _wait(lambda: _completed() >= jobs, "every job is completed")
        end = time.monotonic_ns()
    return {"drain": jobs / ((end - min(_marks())) / 1e9)}


def pickup(jobs: int) -> dict[str, float]:
    """The median from the call that enqueues one job to its beginning, on a node with nothing else to do."""
    with _node():
        sent = [_one(number) for number in range(WARM + jobs)][WARM:]
    waits = [began - at for began, at in zip(_marks()[WARM:], sent, strict=True)]
    return {"pickup": statistics.median(waits) / 1e6}


def _one(number: int) -> int:
    """Enqueue one job on an idle node and see it begin; returns when it was enqueued."""
    time.sleep(REST)
    at = time.monotonic_ns()
    stamp.enqueue()
    _wait(lambda: _begun() > number, "a single job begins", every=0.001)
    return at


@contextmanager
def _node() -> Iterator[None]:
    """A node in its own process, stopped at the end."""
    node = subprocess.Popen(NODE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        node.terminate()
        try:
            node.wait(30)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()


def _begun() -> int:
    return os.path.getsize(MARKS) // 8


def _marks() -> list[int]:
    data = Path(MARKS).read_bytes()
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def _completed() -> int:
    return sum(queue.states.get(millpond.JobState.COMPLETED, 0) for queue in app.store.counts().queues)


def _wait(ready: Callable[[], bool], what: str, every: float = 0.005) -> None:
    """Look until it is so. A node that stands still is given up: the older commit may have no other end."""
    seen, until = 0, time.monotonic() + PATIENCE
    while not ready():
        if (now := _begun()) != seen:
            seen, until = now, time.monotonic() + PATIENCE
        if time.monotonic() > until:
            raise SystemExit(f"{what}: no progress for {PATIENCE:g} s, {seen} jobs have begun")
        time.sleep(every)


VERBS = {"pool": pool, "fill": fill, "drain": drain, "pickup": pickup}

if __name__ == "__main__":
    figures = VERBS[sys.argv[1]](int(sys.argv[2]))
    app.store.close()
    print(json.dumps({"package": str(Path(millpond.__file__).resolve().parent), "figures": figures}))
