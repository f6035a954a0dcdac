"""What starting a worker costs here: from the submit that needs one to the task that runs in it."""

import statistics
import time

from millpond import Pool

ROUNDS = 9


def _when() -> float:
    return time.monotonic()  # the same clock in every process of a machine


def _hold(seconds: float) -> None:
    time.sleep(seconds)


def start_cost() -> float:
    """Seconds, the median of a few starts of a worker beside one that is busy."""
    taken = []
    for _ in range(ROUNDS):
        with Pool(max_workers=2, min_workers=1, idle_timeout=60) as pool:
            pool.submit(_when).result(30)  # the template and the first worker are up
            held = pool.submit(_hold, 1.0)
            while not held.running():
                time.sleep(0.001)
            time.sleep(0.1)  # the pool is at rest
            asked = time.monotonic()
            taken.append(pool.submit(_when).result(30) - asked)
            pool.kill(held)
    return statistics.median(taken)
