"""What a long-running program needs: a preset in which nothing waits for ever, and a hook for callbacks that
raise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, as_completed, wait
from typing import Any

import pytest

from millpond import OptionError, Pool, PoolFull
from millpond.events import WorkerStarted
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, eventually

MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(60)


# --- the preset -------------------------------------------------------------------------------------------
def test_the_preset_bounds_runs_waits_workers_and_the_queue() -> None:
    with Pool.for_service(max_workers=1) as pool:
        options = pool._options
        assert (options.max_tasks_per_child, options.max_queue, options.when_full) == (
            10_000,
            10_000,
            "raise",
        )
        assert (options.task.timeout, options.task.max_queue_age) == (3600, 1800)


def test_each_bound_of_the_preset_comes_from_the_environment_or_from_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MILLPOND_POOL_TIMEOUT", "5m")
    monkeypatch.setenv("MILLPOND_POOL_MAX_QUEUE", "none")
    monkeypatch.setenv("MILLPOND_POOL_MAX_QUEUE_AGE", "10s")
    with Pool.for_service(max_workers=1, max_tasks_per_child=None, max_queue_age="1h") as pool:
        options = pool._options
        assert (options.max_tasks_per_child, options.max_queue) == (None, None)
        assert (options.task.timeout, options.task.max_queue_age) == (300, 3600)


def test_the_preset_refuses_threads_because_they_can_hang() -> None:
    with pytest.raises(OptionError, match="thread"):
        Pool.for_service(kind="thread")


def test_a_full_queue_of_the_preset_is_an_error_and_not_a_wait(gate: Gate) -> None:
    with Pool.for_service(max_workers=1, max_queue=1) as pool:
        running = pool.submit(tasks.hold, gate.folder)
        gate.arrive()
        waiting = pool.submit(tasks.hold, gate.folder)
        with pytest.raises(PoolFull):
            pool.submit(tasks.hold, gate.folder)
        gate.open()
        assert [running.result(PATIENCE), waiting.result(PATIENCE)] == ["-", "-"]


# --- the hook ---------------------------------------------------------------------------------------------
def fail(given: object) -> None:
    raise ValueError("a callback's own mistake")


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_callback_that_raises_is_handed_to_the_hook(
    kind: str, new_pool: MakePool, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    called = threading.Event()

    def hook(error: BaseException, callback: object, given: object) -> None:
        heard.append((str(error), callback, given))
        called.set()

    pool = new_pool(1, kind=kind, on_callback_error=hook)
    future = pool.submit(tasks.square, 3)
    future.add_done_callback(fail)
    assert called.wait(PATIENCE)
    assert heard == [("a callback's own mistake", fail, future)]
    future.add_done_callback(fail)  # at once: the future is done
    assert len(heard) == 2
    assert not caplog.records


def test_subscribers_and_monitors_that_raise_are_handed_to_the_hook_too(new_pool: MakePool) -> None:
    heard: list[Any] = []
    pool = new_pool(1, on_callback_error=lambda error, callback, given: heard.append(type(given).__name__))
    pool.subscribe(fail)
    stop = pool.monitor("10ms", fail)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    eventually(lambda: {WorkerStarted.__name__, "PoolStatistics"} <= set(heard))
    stop()


def test_a_hook_that_raises_itself_is_logged_and_disturbs_nothing(
    new_pool: MakePool, caplog: pytest.LogCaptureFixture
) -> None:
    called = threading.Event()

    def hook(*_: object) -> None:
        called.set()
        raise SystemExit(3)

    pool = new_pool(1, on_callback_error=hook)
    pool.submit(tasks.square, 3).add_done_callback(fail)
    assert called.wait(PATIENCE)
    assert pool.submit(tasks.square, 4).result(PATIENCE) == 16
    eventually(lambda: "on_callback_error failed" in caplog.text)


def test_the_hook_must_be_callable() -> None:
    with pytest.raises(TypeError, match="on_callback_error"):
        Pool(1, on_callback_error=3)  # type: ignore[arg-type]


# --- many futures at once -----------------------------------------------------------------------------------
MANY = 2000


@pytest.mark.parametrize("kind", ["process", "async", "thread"])
def test_wait_and_as_completed_see_each_of_many_futures_once(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    futures = [pool.submit(abs, -n) for n in range(MANY)]
    done, missing = wait(futures, PATIENCE)
    assert (len(done), missing) == (MANY, set())
    futures = [pool.submit(abs, -n) for n in range(MANY)]
    assert sorted(future.result() for future in as_completed(futures, PATIENCE)) == list(range(MANY))


def test_wait_for_the_first_error_sees_it_among_many(new_pool: MakePool) -> None:
    pool = new_pool(2)
    futures: list[Future[Any]] = [pool.submit(abs, -n) for n in range(MANY)]
    futures[MANY // 2] = pool.submit(tasks.fail)
    done, _ = wait(futures, PATIENCE, "FIRST_EXCEPTION")
    assert futures[MANY // 2] in done


def test_many_threads_wait_for_the_same_futures(new_pool: MakePool) -> None:
    pool = new_pool(2)
    futures = [pool.submit(abs, -n) for n in range(MANY)]
    told: list[int] = []
    threads = [
        threading.Thread(target=lambda: told.append(len(wait(futures, PATIENCE).done))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert told == [MANY] * 4


async def test_asyncio_gets_many_results_and_errors_and_its_other_callbacks_run(new_pool: MakePool) -> None:
    pool = new_pool(2)
    loop = asyncio.get_running_loop()
    seen: list[Future[int]] = []
    wrapped = []
    for n in range(MANY):
        future = pool.submit(abs, -n)
        if n % 100 == 0:
            future.add_done_callback(seen.append)
        wrapped.append(asyncio.wrap_future(future))
    bad = loop.run_in_executor(pool, tasks.fail)
    assert await asyncio.wait_for(asyncio.gather(*wrapped), PATIENCE) == list(range(MANY))
    with pytest.raises(ValueError, match="on purpose"):
        await asyncio.wait_for(bad, PATIENCE)
    eventually(lambda: len(seen) == MANY // 100)


CLOSED_LOOP = """
import asyncio
from millpond import Pool

async def leave(pool):
    for n in range(50):
        asyncio.get_running_loop().run_in_executor(pool, abs, n)

if __name__ == "__main__":
    with Pool(1) as pool:
        asyncio.run(leave(pool))
        print(pool.submit(abs, -3).result(30))
"""


def test_a_loop_that_is_closed_meanwhile_harms_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CLOSED_LOOP],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
        env=dict(os.environ),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
