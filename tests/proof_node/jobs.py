"""The app whose nodes are broken in these proofs: every task leaves evidence of what it did.

Imported by the nodes and their workers, which find store, pools and evidence in the environment, and by the
tests, which only enqueue.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import time

from millpond import App, Retry, RetryAfter, Snooze, current_job
from tests.history import Evidence, witnessed
from tests.history.evidence import FOLDER, NODE
from tests.node.mischief import (
    CHANGES,
    CRASHED,
    MISCHIEF,
    RETURNED,
    TIMED_OUT,
    limit_its_files,
    print_a_hundred_megabytes,
)

STORE, HEART, POOLS = "MILLPOND_TEST_PROOF_STORE", "MILLPOND_TEST_PROOF_HEART", "MILLPOND_TEST_PROOF_POOLS"
UNLUCKY = Retry(first=0, max_crashes=1000, max_lost=1000)  # for jobs that others do harm to

app = App(os.environ.get(STORE, "memory://"))
evidence = Evidence(os.environ.get(FOLDER, "."), os.environ.get(NODE, ""))
if STORE in os.environ:
    witnessed(app.store, evidence)
    app._address = os.environ.get(HEART, app._address)  # the heartbeat may take another way to the same store
for name, options in json.loads(os.environ.get(POOLS, '{"default": {"workers": [1, 2]}}')).items():
    app.pool(name, **options)
arrived: list[int] = []  # the coroutines that this worker has begun
HOSTILE = {act.__name__: (act, end) for act, end in MISCHIEF.items()}
HOSTILE |= {act.__name__: (act, RETURNED) for act in (*CHANGES, print_a_hundred_megabytes)}
del HOSTILE[limit_its_files.__name__]  # its evidence goes to a file, after it


@app.task(retry=UNLUCKY)
def work(seconds: float = 0.0) -> float:
    """Takes a while."""
    with evidence.execution():
        time.sleep(seconds)
        evidence.effect()
        return seconds


@app.task(retry=UNLUCKY)
def moody(number: int) -> int:
    """Raises, or comes back later, before it is done."""
    with evidence.execution():
        if number % 3 == 0 and current_job().attempt == 1:
            raise RetryAfter(0)
        if number % 3 == 1 and current_job().token == 1:
            raise Snooze(0)
        evidence.effect()
        return number


@app.task(key="{name}", limit=2, retry=UNLUCKY)
def guarded(name: str, seconds: float) -> str:
    """Two at a time for each name."""
    with evidence.execution():
        time.sleep(seconds)
        evidence.effect()
        return name


@app.task(retry=UNLUCKY)
def in_c(seconds: float) -> float:
    """Keep the interpreter's lock for as long, in one call of C: no other thread of the worker runs."""
    with evidence.execution():
        ctypes.PyDLL(None).poll(None, 0, int(seconds * 1000))
        evidence.effect()
        return seconds


@app.task(queue="storm", retry=Retry(first=0, max_crashes=2))
def poison() -> None:
    """Kills its worker, each time."""
    die()


@app.task(queue="storm", retry=Retry(max_crashes=1))
def poison_once() -> None:
    """Kills its worker, and is not given another."""
    die()


def die() -> None:
    with evidence.execution():
        evidence.breaking()
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)


@app.task(queue="storm", retry=UNLUCKY)
def healthy() -> None:
    """What the storm is compared with."""
    with evidence.execution():
        evidence.effect()


@app.task(queue="loops", retry=Retry(first=0, max_crashes=2))
async def neighbour() -> None:
    """Waits at first, until the worker dies of another job; then it has only to return."""
    with evidence.execution():
        arrived.append(1)
        if current_job().attempt == 1:
            await asyncio.sleep(3600)
        evidence.effect()


@app.task(queue="loops", retry=Retry(first=0, max_crashes=2))
async def apoison(others: int) -> None:
    """Kills the worker when all its neighbours are there; later ones find it alone."""
    with evidence.execution():
        while current_job().attempt == 1 and len(arrived) < others:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        evidence.breaking()
        os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(60)


@app.task(retry=Retry(attempts=1))
def failing(number: int) -> None:
    """Fails for good; a message of its own for each, so that nothing can be remembered once for all."""
    with evidence.execution():
        raise ValueError(f"{number:0200}")


@app.task(timeout=5.0, retry=Retry(attempts=1, max_crashes=1))
def misbehave(name: str) -> int | None:
    """Does what a job should not do."""
    act, end = HOSTILE[name]
    with evidence.execution():
        evidence.effect()
        if end in (CRASHED, TIMED_OUT):
            evidence.breaking(hangs=end is TIMED_OUT)
        return act()
