"""app.testing(): the user's jobs on a memory store with a clock that stands still; and the pytest plugin."""

import subprocess
import sys
from datetime import timedelta

import apsw
import pytest

from millpond import (
    App,
    ArgumentsRefused,
    JobState,
    OptionError,
    Retry,
    RetryAfter,
    Snooze,
    UnknownTask,
    chain,
    current_job,
    testing,
)


@pytest.fixture
def app():
    return App("memory://")


@pytest.fixture
def jobs(app):
    with app.testing() as jobs:
        yield jobs


@pytest.fixture
def echo(app):
    @app.task(name="echo")
    def echo(text: str, times: int = 1) -> str:
        return text * times

    return echo


def test_the_store_of_the_app_is_put_back(app, echo):
    before = app.store
    with app.testing():
        assert app.store is not before
        echo.enqueue("a")
    assert app.store is before
    with pytest.raises(ValueError), app.testing():
        raise ValueError
    assert app.store is before
    assert not app.store.counts().queues


def test_what_was_enqueued_can_be_looked_at(app, jobs, echo):
    @app.task
    def other() -> None: ...

    other.enqueue()
    echo.enqueue("a", times=2)
    echo.using(queue="mail", delay=5).enqueue("b")
    assert [it.arguments for it in jobs.enqueued(echo)] == [{"text": "a", "times": 2}, {"text": "b"}]
    assert [it.job.queue for it in jobs.enqueued(echo)] == ["default", "mail"]
    assert len(jobs.enqueued()) == 3
    jobs.run_due()
    assert len(jobs.enqueued(echo)) == 2


def test_arguments_are_checked_and_travel_as_json(app, jobs):
    seen = []

    @app.task
    def take(pair):
        seen.append(pair)

    take.enqueue((1, 2))
    jobs.run_due()
    assert seen == [[1, 2]]
    with pytest.raises(ArgumentsRefused):
        take.enqueue()


def test_time_stands_still_until_it_is_moved(app, jobs, echo):
    began = jobs.now
    handle = echo.using(delay="1h").enqueue("a")
    assert jobs.run_due() == 0
    jobs.advance("59m")
    assert jobs.run_due() == 0
    jobs.advance(timedelta(minutes=1))
    assert jobs.run_due() == 1
    assert handle.result() == "a"
    assert jobs.now - began == timedelta(hours=1)
    with pytest.raises(ValueError):
        jobs.advance(-1)


def test_a_job_that_fails_is_tried_again_in_its_time(app, jobs):
    attempts = []

    @app.task(retry=Retry(attempts=3, first=10, factor=2))
    def fail() -> None:
        attempts.append(current_job().attempt)
        raise ValueError("no")

    handle = fail.enqueue()
    assert jobs.run_due() == 1
    assert handle.job().state is JobState.SCHEDULED
    assert jobs.run_due() == 0
    jobs.advance("13s")
    assert jobs.run_due() == 1
    jobs.advance("25s")
    assert jobs.run_due() == 1
    assert attempts == [1, 2, 3]
    job = handle.job()
    assert (job.state, job.reason, job.errors) == (JobState.DEAD, "failed", 3)
    assert [(it.number, it.ended, it.error) for it in job.attempts] == [
        (1, "raised", "ValueError"),
        (2, "raised", "ValueError"),
        (3, "raised", "ValueError"),
    ]


def test_snooze_and_retry_after_are_honoured(app, jobs):
    says: list[Exception] = [Snooze("2m"), RetryAfter("3m")]

    @app.task
    def work() -> str:
        if says:
            raise says.pop(0)
        return "done"

    handle = work.enqueue()
    jobs.run_due()
    assert (handle.job().attempt, handle.job().errors) == (0, 0)
    jobs.advance("2m")
    jobs.run_due()
    assert (handle.job().attempt, handle.job().errors) == (1, 1)
    jobs.advance("3m")
    assert jobs.run_due() == 1
    assert handle.result() == "done"


def test_jobs_that_jobs_enqueue_run_as_well(app, jobs):
    @app.task
    def count(number: int) -> None:
        if number:
            count.enqueue(number - 1)

    count.enqueue(4)
    assert jobs.run_due() == 5


async def test_async_tasks_run_inside_an_async_test(app, jobs):
    @app.task
    async def double(number: int) -> int:
        current_job().progress(1.0, "done")
        return 2 * number

    handle = await double.aenqueue(4)
    assert jobs.run_due() == 1
    assert handle.result() == 8
    assert handle.job().progress == b'{"share":1.0,"note":"done"}'


def test_a_job_may_ask_for_its_own_end(app, jobs):
    @app.task
    def work() -> None:
        app.handle(current_job().id).cancel()
        raise Snooze(5)

    handle = work.enqueue()
    jobs.run_due()
    assert (handle.job().state, handle.job().reason) == (JobState.CANCELLED, "cancelled")


def test_a_paused_queue_does_not_run(app, jobs, echo):
    app.store.configure(queue="default", paused=True)
    echo.enqueue("a")
    assert jobs.run_until_idle() == 0
    app.store.configure(queue="default", paused=False)
    assert jobs.run_until_idle() == 1


def test_run_until_idle_moves_the_clock_from_job_to_job(app, jobs, echo):
    began = jobs.now
    later, now = echo.using(delay="3h").enqueue("a"), echo.enqueue("b")
    child = echo.using(depends_on=[later]).enqueue("c")
    assert jobs.run_until_idle() == 3
    assert jobs.now - began == timedelta(hours=3)
    assert (now.result(), later.result(), child.result()) == ("b", "a", "c")
    assert jobs.run_until_idle() == 0


def test_run_until_idle_waits_for_the_rate_of_a_queue(app, jobs, echo):
    app.store.configure(queue="default", rate=2.0)
    echo.enqueue_many([("a",)] * 7)
    assert jobs.run_until_idle() == 7


def test_jobs_that_never_end_are_noticed(app, jobs, monkeypatch):
    monkeypatch.setattr(testing, "MOST", 20)

    @app.task
    def again() -> None:
        again.enqueue()

    @app.task
    def never() -> None:
        raise Snooze("1s")

    never.enqueue()
    with pytest.raises(RuntimeError, match="does one never end"):
        jobs.run_until_idle()
    again.enqueue()
    with pytest.raises(RuntimeError, match="enqueue itself"):
        jobs.run_due()


def test_a_job_that_snoozes_for_ever_is_noticed(app, jobs, monkeypatch):
    monkeypatch.setattr(testing, "MOST_TURNS", 5)

    @app.task
    def never() -> None:
        raise Snooze("1s")

    handle = never.enqueue()
    with pytest.raises(RuntimeError, match="snooze for ever"):
        jobs.run_until_idle()
    assert len(handle.job().attempts) == 5


def test_jobs_are_taken_queue_by_queue_in_the_order_of_names(app, jobs):
    order = []

    @app.task(queue="m")
    def first() -> None:
        order.append("m")
        if len(order) == 1:
            second.using(queue="a").enqueue("a")
            second.using(queue="z").enqueue("z")

    @app.task
    def second(name: str) -> None:
        order.append(name)

    first.enqueue_many([(), ()])
    assert jobs.run_due() == 4
    assert order == ["m", "a", "m", "z"]


def test_time_moves_a_century_at_most(jobs):
    with pytest.raises(OptionError, match="at most 100 years"):
        jobs.advance("40000d")


def test_a_job_of_an_unknown_task_fails_and_stops_nothing(app, jobs, echo):
    stranger = echo.enqueue("a")
    del app.tasks["echo"]
    assert jobs.run_due() == 1
    assert stranger.job().attempts[0].error == "millpond.errors.UnknownTask"
    with pytest.raises(UnknownTask):
        jobs.enqueued()


# --- the plugin ----------------------------------------------------------------------------------------
USER_TESTS = """
from millpond import App

app = App("memory://")

@app.task
def double(number: int) -> int:
    return 2 * number

def test_jobs(millpond_testing):
    before = app.store
    jobs = millpond_testing(app)
    handle = double.enqueue(4)
    assert app.store is not before
    assert jobs.run_due() == 1
    assert handle.result() == 8

def test_it_is_over():
    assert not app.store.counts().queues
"""


def test_the_plugin_gives_a_fixture(tmp_path):
    (tmp_path / "test_user.py").write_text(USER_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


async def test_code_that_enqueues_in_its_transaction_can_be_tested(jobs, echo, tmp_path):
    with apsw.Connection(str(tmp_path / "shop.db")) as connection:
        echo.using(transaction=connection).enqueue("a")
        await echo.using(transaction=connection).aenqueue("b")
        chain(echo.using(transaction=connection).bind("c")).enqueue()
        assert jobs.run_due() == 3


LIGHT = """
import sys
import {module}
{use}
heavy = {{"msgspec", "apsw", "click", "rich", "pytest", "millpond.store", "millpond.task"}} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    ("module", "use"),
    [
        ("millpond", ""),
        ("millpond", "millpond.Pool, millpond.PayloadRefused"),
        ("millpond.testing", ""),
        ("millpond.pool.worker.main", ""),
    ],
)
def test_importing_stays_light(module, use):
    command = [sys.executable, "-c", LIGHT.format(module=module, use=use)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
