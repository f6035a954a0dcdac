"""A signal handler that raises in the middle of `submit()` or `result()` loses no future."""

from __future__ import annotations

from collections.abc import Callable

import pytest

RunScript = Callable[..., str]
pytestmark = pytest.mark.timeout(60)

TORTURE = """
import random, signal, sys
from concurrent.futures import wait
from millpond import Pool, WorkerDied


class Interrupt(BaseException):
    pass


def strike(*_):
    if armed:
        raise Interrupt


armed = False
signal.signal(signal.SIGALRM, strike)
chance = random.Random(sys.argv[1])
futures = []


def until_struck(pool, pattern):
    global armed
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0003, 0.003))
        while True:
            futures.append(pool.submit(abs, -len(futures)))
            if pattern == "each" or (pattern == "some" and chance.random() < 0.2):
                chance.choice(futures).result()
    except (Interrupt, RuntimeError):  # the latter: a threading.Condition that was struck while waking up
        armed = False


with Pool(2) as pool:
    pool.submit(abs, 1).result()
    for _ in range(40):
        until_struck(pool, sys.argv[1])
    unsettled = wait(futures, 20).not_done
    failed = [future for future in futures if future.done() and future.exception() is not None]
    print(len(unsettled), all(isinstance(future.exception(), WorkerDied) for future in failed))
    print(len(failed) <= 40 and pool.submit(abs, -7).result(20))
"""


@pytest.mark.parametrize("pattern", ["none", "some", "each"])
def test_every_future_is_settled_after_many_interrupts(pattern: str, run_script: RunScript) -> None:
    assert run_script(TORTURE, pattern).split() == ["0", "True", "7"]


STORM = """
import random, signal, sys, threading
from concurrent.futures import wait
from millpond import Pool


class Interrupt(BaseException):
    pass


def strike(*_):
    if armed:
        raise Interrupt


armed = False
signal.signal(signal.SIGALRM, strike)
chance = random.Random(7)
with Pool(2, max_queue=20) as pool:
    futures = []
    for _ in range(150):
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0003, 0.003))
            while True:
                futures.append(pool.submit(abs, -1))
                until = chance.choice(["FIRST_COMPLETED", "ALL_COMPLETED"])
                wait(futures[-40:], return_when=until, timeout=5)
        except (Interrupt, RuntimeError):
            armed = False
    answers = [pool.submit(abs, -n).result(20) for n in range(100)]
    print(answers == list(range(100)), pool.health().status)
"""


def test_interrupts_of_wait_and_of_a_bounded_queue_neither_stop_nor_close_the_pool(
    run_script: RunScript,
) -> None:
    assert run_script(STORM).split() == ["True", "ok"]
