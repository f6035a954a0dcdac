"""A node runs jobs: what its tasks return, raise and say reaches the store, on every store."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from millpond import Cancel, Retry, Snooze, current_job
from millpond.job import JobState
from tests.node.waiting import all_ended, ended, until


def test_a_job_runs_in_a_process_of_its_own_and_its_result_is_kept(app, start):
    @app.task
    def whose(number: int) -> list[int]:
        return [number, os.getpid()]

    start(app)
    number, pid = whose.enqueue(7).result(timeout=30)
    assert number == 7
    assert pid != os.getpid()


def test_many_jobs_all_complete_once(app, start):
    @app.task
    def double(number: int) -> int:
        return 2 * number

    handles = double.enqueue_many([(number,) for number in range(500)])
    start(app)
    jobs = all_ended(handles)
    assert [job.result for job in jobs] == [str(2 * number).encode() for number in range(500)]
    assert {(job.state, job.attempt, len(job.attempts)) for job in jobs} == {(JobState.COMPLETED, 1, 1)}


def test_a_job_that_fails_is_tried_again_and_ends_dead_with_its_traceback(app, start):
    @app.task(retry=Retry(attempts=2, first=0))
    def fail() -> None:
        raise ValueError("no such page")

    start(app)
    job = ended(fail.enqueue())
    assert (job.state, job.reason, job.attempt, job.errors) == (JobState.DEAD, "failed", 2, 2)
    assert [attempt.error for attempt in job.attempts] == ["ValueError", "ValueError"]
    assert "no such page" in (job.attempts[1].traceback or "")


def test_a_job_may_come_back_later_at_no_cost(app, start):
    @app.task
    def wait_for(path: str) -> str:
        if not os.path.exists(path):
            open(path, "w").close()
            raise Snooze(0.05)
        return "there"

    path = f"{os.environ.get('TMPDIR', '/tmp')}/millpond-{os.getpid()}-{time.monotonic_ns()}"
    start(app)
    try:
        job = ended(wait_for.enqueue(path))
        assert (job.state, job.result, job.errors) == (JobState.COMPLETED, b'"there"', 0)
    finally:
        os.unlink(path)


def test_a_job_may_give_itself_up(app, start):
    @app.task
    def give_up() -> None:
        raise Cancel

    start(app)
    assert ended(give_up.enqueue()).state == JobState.CANCELLED


def test_a_job_that_overruns_is_stopped_and_says_where_it_was(local, start):
    @local.task(timeout=0.3, retry=Retry(attempts=1))
    def sleep_on() -> None:
        time.sleep(60)

    start(local)
    job = ended(sleep_on.enqueue())
    assert (job.state, job.reason) == (JobState.DEAD, "timeout")
    assert job.attempts[0].ended == "timed out"
    assert "sleep_on" in (job.attempts[0].traceback or "")


def test_a_job_that_kills_its_worker_each_time_ends_dead_after_exactly_max_crashes(app, start):
    @app.task(retry=Retry(max_crashes=2))
    def crash() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    start(app)
    job = ended(crash.enqueue())
    assert (job.state, job.reason, job.crashes, job.attempt) == (JobState.DEAD, "crashed", 2, 2)
    assert [attempt.ended for attempt in job.attempts] == ["crashed", "crashed"]
    assert "SIGKILL" in (job.attempts[-1].message or "")


def test_a_job_knows_itself_and_tells_how_far_it_is(app, start, tmp_path):
    @app.task
    def count(go_on: str) -> list[object]:
        job = current_job()
        job.progress(0.5, "half way")
        while not os.path.exists(go_on):
            time.sleep(0.01)
        return [job.id, job.attempt, job.token]

    start(app)
    handle = count.enqueue(str(tmp_path / "go"))
    told = until(lambda: handle.job().progress, "its progress")
    assert b"half way" in told
    (tmp_path / "go").touch()
    assert handle.result(timeout=30) == [handle.id, 1, 1]


def test_coroutines_share_a_worker(local, start):
    local.pool("mail", workers=1, kind="async", concurrency=20)

    @local.task(queue="mail")
    async def meet(others: int) -> int:
        arrived = vars(asyncio).setdefault("arrived", [])  # the worker's own: nobody else uses this name
        arrived.append(1)
        while len(arrived) < others:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return os.getpid()

    handles = meet.enqueue_many([(10,)] * 10)
    start(local)
    assert len({handle.result(timeout=30) for handle in handles}) == 1


def test_threads_share_a_worker(local, start):
    local.pool("io", workers=1, kind="thread", concurrency=4)

    @local.task(queue="io")
    def meet(folder: str, others: int) -> int:
        name = current_job().id
        open(f"{folder}/{name}", "w").close()
        while len(os.listdir(folder)) < others:
            time.sleep(0.01)
        return os.getpid()

    folder = os.path.join(os.path.dirname(local.store.path), "met")
    os.mkdir(folder)
    handles = meet.enqueue_many([(folder, 4)] * 4)
    start(local)
    assert len({handle.result(timeout=30) for handle in handles}) == 1


@pytest.mark.parametrize(("kind", "concurrency"), [("process", 1), ("async", 1), ("async", 4), ("thread", 4)])
def test_a_worker_shows_how_many_of_its_jobs_failed(local, start, kind, concurrency):
    local.pool("default", workers=1, kind=kind, concurrency=concurrency)
    once = Retry(attempts=1)

    def act(how: str) -> object:
        if how == "raise":
            raise OSError("no route")
        if how == "give up":
            raise Cancel
        return object() if how == "no result" else how

    async def aact(how: str) -> object:
        return act(how)

    task = local.task(name="act", retry=once)(aact if kind == "async" else act)
    node = start(local)
    handles = task.enqueue_many([(how,) for how in ["raise"] * 3 + ["good", "no result", "give up"]])
    all_ended(handles)
    [worker] = until(
        lambda: [row for row in node.report().pools[0].workers if row.done == 6], "all are counted"
    )
    assert worker.failed == 4
    assert node.report().pools[0].failed == 3  # those that raised


def test_a_job_can_enqueue_another(app, start):
    @app.task
    def second(number: int) -> int:
        return number + 1

    @app.task
    def first(number: int) -> str:
        return str(second.enqueue(number).id)

    start(app)
    assert app.handle(first.enqueue(1).result(timeout=30)).result(timeout=30) == 2


def test_the_end_of_a_running_job_can_be_asked_for_and_seen_by_it(app, start, tmp_path):
    @app.task
    def until_asked(begun: str) -> None:
        open(begun, "w").close()
        while not current_job().cancelled:
            time.sleep(0.01)
        raise Cancel

    start(app)
    handle = until_asked.enqueue(str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    handle.cancel()
    assert ended(handle).state == JobState.CANCELLED


def test_a_cancelled_coroutine_is_cancelled_where_it_waits(local, start, tmp_path):
    local.pool("mail", workers=1, kind="async")

    @local.task(queue="mail")
    async def wait_for_ever(begun: str) -> None:
        open(begun, "w").close()  # noqa: ASYNC230
        await asyncio.sleep(3600)

    start(local)
    handle = wait_for_ever.enqueue(str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    handle.cancel()
    assert ended(handle).state == JobState.CANCELLED


@pytest.mark.parametrize("kind", ["process", "async"])
def test_the_job_of_a_killed_worker_runs_again(local, start, tmp_path, kind):
    local.pool("default", workers=1, kind=kind)

    @local.task
    async def once(path: str) -> str:
        if not os.path.exists(path):  # noqa: ASYNC240
            with open(path + ".new", "w") as file:  # noqa: ASYNC230
                file.write(str(os.getpid()))
            os.rename(path + ".new", path)
            await asyncio.sleep(3600)
        return "again"

    start(local)
    handle = once.enqueue(str(tmp_path / "pid"))
    until((tmp_path / "pid").exists)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    job = ended(handle)
    assert (job.result, job.crashes, [attempt.ended for attempt in job.attempts]) == (
        b'"again"',
        1,
        ["crashed", "returned"],
    )
