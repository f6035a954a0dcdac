"""Ends of a pool: orderly, hurried, forgotten, and from inside an event loop or a callback."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, as_completed, wait
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from millpond import OptionError, PayloadError, Pool, PoolClosed, TaskKilled, WorkerDied
from tests.pool import faults, tasks
from tests.pool.tasks import PATIENCE, Gate, SlowToPickle, answers, holder

PROCESSES = ["process", "async"]
KINDS = [*PROCESSES, "thread"]
MakePool = Callable[..., Pool]
RunScript = Callable[..., str]
pytestmark = pytest.mark.timeout(40)


def one_at_a_time(kind: str) -> dict[str, Any]:
    return {"max_workers": 1, "kind": kind, "concurrency": 1 if kind == "async" else None}


def wait_until_gone(pids: set[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([descriptor], [], [], PATIENCE)[0], f"process {pid} lives on"
        finally:
            os.close(descriptor)


# --- orderly -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_finishes_everything_first(kind: str, new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(2, kind=kind)
    futures = [pool.submit(tasks.note, journal, n) for n in range(50)]
    pool.shutdown()
    assert all(future.done() for future in futures)
    assert sorted(map(int, tasks.lines(journal))) == list(range(50))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_is_shut_down_takes_nothing_more(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    pool.submit(tasks.square, 2).result(PATIENCE)
    pool.shutdown()
    with pytest.raises(PoolClosed, match="after shutdown") as caught:
        pool.submit(tasks.square, 3)
    assert isinstance(caught.value, RuntimeError)
    pool.shutdown()
    pool.shutdown(wait=False, cancel_futures=True, timeout=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_never_worked_can_be_shut_down(kind: str) -> None:
    pool = Pool(2, kind=kind)  # type: ignore[arg-type]
    pool.shutdown()
    with pytest.raises(PoolClosed):
        pool.submit(tasks.square, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_the_with_block_finishes_the_work_even_after_an_error(kind: str, journal: Path) -> None:
    pool = Pool(1, kind=kind)  # type: ignore[arg-type]

    def work() -> None:
        with pool:
            futures.append(pool.submit(tasks.note, journal, "done"))
            raise ZeroDivisionError

    futures: list[Future[Any]] = []
    with pytest.raises(ZeroDivisionError):
        work()
    [future] = futures
    assert future.result(0) == "done"
    with pytest.raises(PoolClosed):
        pool.submit(tasks.square, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_without_waiting_returns_at_once_and_the_work_goes_on(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**one_at_a_time(kind))
    futures = [pool.submit(holder(kind), gate.folder, n) for n in range(3)]
    gate.arrive()
    pool.shutdown(wait=False)
    assert not futures[0].done()
    with pytest.raises(PoolClosed):
        pool.submit(tasks.square, 2)
    gate.open()
    assert answers(futures) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_can_cancel_what_has_not_begun(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [pool.submit(tasks.square, n) for n in range(20)]
    pool.shutdown(wait=False, cancel_futures=True)
    assert not wait(waiting, PATIENCE).not_done
    assert all(future.cancelled() for future in waiting)
    assert not running.done()
    gate.let_pass()
    assert running.result(PATIENCE) == "-"
    pool.shutdown()
    assert pool.statistics().cancelled == 20


@pytest.mark.parametrize("kind", KINDS)
def test_shutdown_while_others_submit_leaves_nobody_waiting(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    accepted: list[Future[int]] = []
    busy = threading.Semaphore(0)

    def keep_submitting() -> None:
        try:
            for number in range(1_000_000):
                accepted.append(pool.submit(tasks.square, number))
                busy.release()
        except PoolClosed:
            pass

    submitters = [threading.Thread(target=keep_submitting) for _ in range(3)]
    for submitter in submitters:
        submitter.start()
    for _ in range(100):
        assert busy.acquire(timeout=PATIENCE)
    pool.shutdown()
    for submitter in submitters:
        submitter.join(PATIENCE)
        assert not submitter.is_alive()
    assert not wait(accepted, PATIENCE).not_done


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_submit_overtaken_by_the_shutdown_is_refused_or_done_but_never_forgotten(
    kind: str, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    pool.submit(tasks.square, 1).result(PATIENCE)
    begun, go = threading.Event(), threading.Event()
    outcome: list[Any] = []

    def submit() -> None:
        try:
            outcome.append(pool.submit(tasks.identity, SlowToPickle(begun, go)))
        except PoolClosed as error:
            outcome.append(error)

    submitter = threading.Thread(target=submit)
    submitter.start()
    assert begun.wait(PATIENCE)
    pool.shutdown()
    go.set()
    submitter.join(PATIENCE)
    if isinstance(outcome[0], Future):
        assert not wait(outcome, PATIENCE).not_done, "its future is never settled"


# --- hurried -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_shutdown_stops_what_is_not_done_in_time(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    pid = gate.arrive()[0].pid
    waiting = [pool.submit(tasks.square, n) for n in range(3)]
    began = time.monotonic()
    pool.shutdown(timeout=0.2)
    assert 0.2 <= time.monotonic() - began < 5
    with pytest.raises(TaskKilled, match="shutdown ran out of time"):
        running.result(0)
    assert all(future.cancelled() for future in waiting)
    wait_until_gone({pid})


def test_shutdown_of_threads_stops_waiting_for_them_in_time(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="thread")
    running = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    waiting = [pool.submit(tasks.square, n) for n in range(3)]
    began = time.monotonic()
    pool.shutdown(timeout=0.2)
    assert 0.2 <= time.monotonic() - began < 5
    assert all(future.cancelled() for future in waiting)
    gate.let_pass()
    assert running.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_is_done_in_time_is_not_disturbed_by_the_limit(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    futures = [pool.submit(tasks.square, n) for n in range(30)]
    began = time.monotonic()
    pool.shutdown(timeout="1m")
    assert time.monotonic() - began < PATIENCE
    assert answers(futures) == [n * n for n in range(30)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_without_waiting_returns_at_once(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    began = time.monotonic()
    pool.shutdown(wait=False, timeout=3)
    assert time.monotonic() - began < 2
    gate.let_pass()
    assert running.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_shutdown_may_be_in_more_of_a_hurry(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.submit(tasks.square, 2)
    pool.shutdown(wait=False)
    pool.shutdown(timeout=0.1)
    assert waiting.cancelled()
    if kind != "thread":
        assert isinstance(running.exception(0), TaskKilled)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [-1, "soon"])
def test_an_impossible_limit_is_refused_and_the_pool_goes_on(
    kind: str, limit: Any, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    with pytest.raises(OptionError, match="timeout"):
        pool.shutdown(timeout=limit)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("stop", ["terminate_workers", "kill_workers"])
def test_workers_can_be_stopped_all_at_once(kind: str, stop: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind, concurrency=1 if kind == "async" else None)
    running = [pool.submit(holder(kind), gate.folder) for _ in range(2)]
    pids = {arrival.pid for arrival in gate.arrive(2)}
    waiting = [pool.submit(tasks.square, n) for n in range(5)]
    getattr(pool, stop)()
    wait_until_gone(pids)
    for future in running:
        with pytest.raises(WorkerDied):
            future.result(PATIENCE)
    for future in waiting:
        with pytest.raises(CancelledError):
            future.result(PATIENCE)
    with pytest.raises(PoolClosed):
        pool.submit(tasks.square, 2)


@pytest.mark.parametrize("stop", ["terminate_workers", "kill_workers"])
def test_threads_cannot_be_stopped_and_the_error_says_so(stop: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind="thread")
    with pytest.raises(OptionError, match="kind='process'"):
        getattr(pool, stop)()
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


# --- forgotten -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_is_dropped_finishes_its_work(kind: str, gate: Gate) -> None:
    pool = Pool(**one_at_a_time(kind))
    futures = [pool.submit(holder(kind), gate.folder, n) for n in range(3)]
    pids = {gate.arrive()[0].pid} - {os.getpid()}
    del pool
    gc.collect()
    gate.open()
    assert answers(futures) == [0, 1, 2]
    wait_until_gone(pids)


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_ends_with_an_open_pool_finishes_its_work_and_exits(
    kind: str, run_script: RunScript
) -> None:
    printed = run_script(
        """
        import sys, time
        from millpond import Pool

        pool = Pool(2, kind=sys.argv[1])
        pool.submit(pow, 2, 3).result(8)
        late = pool.submit(time.sleep, 0.3)
        late.add_done_callback(lambda _: print("done", flush=True))
        print("end of program", flush=True)
        """,
        kind,
    )
    assert printed.split("\n")[:2] == ["end of program", "done"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_ends_right_after_its_results_exits(kind: str, run_script: RunScript) -> None:
    printed = run_script(
        """
        import sys
        from millpond import Pool

        pool = Pool(2, min_workers=1, kind=sys.argv[1])
        print(sum(pool.map(abs, range(-100, 100))))
        """,
        kind,
    )
    assert printed.strip() == "10000"


# --- from callbacks ------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_done_callback_may_shut_the_pool_down(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind=kind)
    closed = threading.Event()

    def close(_: Future[Any]) -> None:
        pool.shutdown()
        closed.set()

    future = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    future.add_done_callback(close)
    gate.let_pass()
    assert closed.wait(PATIENCE)
    with pytest.raises(PoolClosed):
        pool.submit(tasks.square, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_that_submits_during_shutdown_is_told(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind=kind)
    outcome: Future[Any] = Future()

    def follow_up(_: Future[Any]) -> None:
        try:
            outcome.set_result(pool.submit(tasks.square, 2))
        except PoolClosed as error:
            outcome.set_exception(error)

    future = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    future.add_done_callback(follow_up)
    pool.shutdown(wait=False)
    gate.let_pass()
    with pytest.raises(PoolClosed):
        outcome.result(PATIENCE)


# --- asyncio -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
async def test_an_event_loop_can_use_a_pool_as_its_executor(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    loop = asyncio.get_running_loop()
    calls = [loop.run_in_executor(pool, tasks.square, n) for n in range(20)]
    assert await asyncio.wait_for(asyncio.gather(*calls), PATIENCE) == [n * n for n in range(20)]
    with pytest.raises(ValueError, match="on purpose"):
        await asyncio.wait_for(loop.run_in_executor(pool, tasks.fail), PATIENCE)
    with pytest.raises(WorkerDied) if kind != "thread" else pytest.raises(ValueError, match="on purpose"):
        await asyncio.wait_for(
            loop.run_in_executor(pool, tasks.fail if kind == "thread" else tasks.crash), PATIENCE
        )


@pytest.mark.parametrize("kind", KINDS)
async def test_futures_can_be_awaited_and_cancelled(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = asyncio.wrap_future(pool.submit(holder(kind), gate.folder))
    await asyncio.get_running_loop().run_in_executor(None, gate.arrive)
    waiting = pool.submit(tasks.square, 2)
    wrapped = asyncio.wrap_future(waiting)
    wrapped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wrapped
    await asyncio.sleep(0)  # one turn of the loop: that is how a cancellation travels down
    assert waiting.cancelled()
    gate.let_pass()
    assert await asyncio.wait_for(running, PATIENCE) == "-"


@pytest.mark.parametrize("kind", KINDS)
def test_wait_and_as_completed_know_the_futures(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind, concurrency=1 if kind == "async" else None)
    held = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    quick = [pool.submit(partial(tasks.square, n)) for n in range(5)]
    assert sorted(f.result() for f in as_completed(quick, PATIENCE)) == [0, 1, 4, 9, 16]
    done, not_done = wait([held, *quick], 0.05)
    assert (done, not_done) == (set(quick), {held})
    gate.let_pass()
    assert next(as_completed([held], PATIENCE)).result() == "-"


@pytest.mark.parametrize("kind", PROCESSES)
def test_an_error_and_its_ended_pool_that_are_kept_do_not_keep_the_pools_thread(
    kind: str, new_pool: MakePool
) -> None:
    with new_pool(1, kind=kind, name="kept") as pool:
        error = pool.submit(faults.return_wont_arrive).exception(PATIENCE)
        [thread] = [weakref.ref(one) for one in threading.enumerate() if one.name == "millpond-kept"]
    assert isinstance(error, PayloadError)
    assert isinstance(error.__cause__, ValueError)
    assert "in explode" in str(error.__cause__.__cause__), "where it failed is told as text"
    assert thread() is None
