"""What starting a worker costs here: from a pool's wish for one more until that one takes tasks.

It is the pool's own figure, the one a node's scaling law is told. How soon a pool without a node looks at its
line and wishes for one more is no part of it.
"""

import statistics
import time
from concurrent.futures import Future

from millpond import Pool

ROUNDS, EACH = 3, 8
PATIENCE = 60.0


def _hold(seconds: float) -> None:
    time.sleep(seconds)


def start_costs() -> list[float]:
    """Seconds of some starts, one at a time, beside workers that are there."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        with Pool(max_workers=EACH + 1, min_workers=1, idle_timeout=60) as pool:
            pool.submit(_hold, 0.0).result(60)  # the template and the first worker are up
            futures = [_held(pool)]
            for _ in range(EACH):
                pool._engine.start_cost = None
                futures.append(_held(pool))
                cost = pool._engine.start_cost
                taken += [] if cost is None else [cost]
            for future in futures:
                pool.kill(future)
    return taken


def _held(pool: Pool) -> Future[None]:
    """A task that keeps a worker, once it has begun."""
    future, until = pool.submit(_hold, 3600.0), time.monotonic() + PATIENCE
    while not future.running():
        if time.monotonic() > until:
            raise SystemExit("a pool did not start a worker within a minute")
        time.sleep(0.002)
    return future


def start_cost() -> float:
    """Seconds, the median."""
    return statistics.median(start_costs())


if __name__ == "__main__":
    found = sorted(start_costs())
    shown = ", ".join(f"{1000 * seconds:.1f}" for seconds in found)
    print(f"median {1000 * statistics.median(found):.1f} ms of {len(found)} starts: {shown}")
