"""Jobs that share a worker, a pool or a line with one that is slow, stuck or fatal: they hardly notice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest

from millpond import Retry
from millpond.job import JobState
from millpond.node.jobs import claim_loop
from tests.node.waiting import all_ended, ended, until


def hold(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.005)


def test_those_beside_a_job_that_overran_go_back_together_and_pay_nothing(local, start, tmp_path):
    local.pool("default", workers=1, kind="thread", concurrency=3)
    go = tmp_path / "go"
    beside = local.task(name="beside")(hold)

    @local.task(timeout=0.3, retry=Retry(attempts=1))
    def stuck() -> None:
        time.sleep(600)

    start(local)
    handles = beside.enqueue_many([(str(go),)] * 2)
    until(lambda: all(handle.job().started_at for handle in handles), "they run")
    assert ended(stuck.enqueue()).reason == "timeout"
    until(lambda: all(handle.job().attempt == 1 for handle in handles), "their worker was killed")
    assert not any(handle.job().alone for handle in handles)
    go.touch()
    jobs = all_ended(handles)
    assert {(job.state, job.crashes, job.attempt) for job in jobs} == {(JobState.COMPLETED, 0, 2)}


def test_jobs_that_must_run_alone_keep_nobody_else_from_running(local, start, tmp_path):
    """Suspects of a crash have workers of their own, and those who come later have theirs."""
    local.pool("default", workers=1, kind="thread", concurrency=3)
    go, killed = tmp_path / "go", tmp_path / "killed"
    suspect = local.task(name="suspect")(hold)

    @local.task
    def kill_once(path: str) -> None:
        if not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)

    @local.task
    def quick() -> int:
        return 1

    start(local)
    handles = suspect.enqueue_many([(str(go),)] * 2)
    until(lambda: all(handle.job().started_at for handle in handles), "they run")
    kill_once.enqueue(str(killed))
    until(lambda: all(handle.job().alone for handle in handles), "they are suspects")
    later = [handle.result(timeout=30) for handle in quick.enqueue_many([()] * 9)]
    assert later == [1] * 9
    assert not any(handle.job().state == JobState.COMPLETED for handle in handles)
    go.touch()
    assert {job.crashes for job in all_ended(handles)} == {0}


def is_first(path: str) -> bool:
    try:
        open(path, "x").close()
    except FileExistsError:
        return False
    return True


async def leave() -> None:
    sys.exit(3)


@pytest.mark.parametrize(
    "end",
    [
        lambda loop: setattr(loop, "forgotten", loop.create_task(leave())),
        lambda loop: loop.call_soon(sys.exit, 3),
        lambda loop: loop.stop(),
    ],
    ids=["task", "callback", "stop"],
)
def test_those_in_a_loop_that_a_job_ended_run_again_and_pay_nothing(local, start, tmp_path, end):
    local.pool("default", workers=1, kind="async", concurrency=4)
    go, once = tmp_path / "go", tmp_path / "once"

    @local.task(retry=Retry(attempts=1, max_crashes=1))
    async def beside(path: str) -> None:
        await asyncio.to_thread(hold, path)

    @local.task
    async def end_the_loop(path: str) -> None:
        if is_first(path):
            end(asyncio.get_running_loop())

    start(local)
    handles = beside.enqueue_many([(str(go),)] * 3)
    until(lambda: all(handle.job().started_at for handle in handles), "they run")
    end_the_loop.enqueue(str(once))
    until(lambda: all(handle.job().attempt == 1 for handle in handles), "their worker has died")
    go.touch()
    jobs = all_ended(handles)
    assert {(job.state, job.errors, job.crashes) for job in jobs} == {(JobState.COMPLETED, 0, 0)}


def test_a_pool_of_several_queues_does_not_wait_behind_an_empty_one(app, start, monkeypatch):
    monkeypatch.setattr(claim_loop, "POLL", 3600.0)  # nobody looks but for a reason
    app.pool("rest", queues=["a", "b", "c"], workers=1)

    @app.task(queue="b")
    def one() -> int:
        return 1

    start(app)
    assert {job.state for job in all_ended(one.enqueue_many([()] * 10))} == {JobState.COMPLETED}
    assert [one.using(queue=queue).enqueue().result(timeout=30) for queue in "abcabc"] == [1] * 6


def test_what_was_claimed_ahead_goes_back_when_every_worker_is_stuck(app, start, tmp_path):
    """Others may have it; once a worker is free it comes again, and has paid nothing."""
    go = tmp_path / "go"
    app.pool("default", workers=1)

    @app.task(name="maybe")
    def maybe_hold(path: str) -> None:
        time.sleep(0.002)
        if path:
            hold(path)

    node = start(app)
    pool = node._state.pools["default"]
    all_ended(maybe_hold.enqueue_many([("",)] * 20))  # short ones: now some are claimed ahead
    long = maybe_hold.enqueue(str(go))
    until(lambda: long.job().started_at, "the only worker is busy")
    behind = maybe_hold.enqueue_many([("",)] * 3)
    until(lambda: pool.long and list(pool.held) == [long.id], "the others went back, or never came")
    until(lambda: {handle.job().state for handle in behind} == {JobState.QUEUED}, "the store knows it")
    go.touch()
    jobs = all_ended([long, *behind])
    assert {(job.state, job.attempt) for job in jobs} == {(JobState.COMPLETED, 1)}


@pytest.mark.parametrize("number", [0, 3])
def test_what_was_given_back_is_no_attempt_that_ended(local, start, tmp_path, number):
    go = tmp_path / "go"
    local.pool("default", workers=1)
    task = local.task(name="task")(hold)
    node = start(local)
    pool = node._state.pools["default"]
    first = task.enqueue(str(go))
    until(lambda: first.job().started_at, "it runs")
    pool.run = 0.001  # as if they were short: some are claimed ahead
    handles = task.enqueue_many([(str(go),)] * number)
    until(lambda: pool.long and list(pool.held) == [first.id], "they went back, or never came")
    assert pool.done == 0
    go.touch()
    all_ended([first, *handles])
    until(lambda: pool.done == 1 + number, "each is counted once")
