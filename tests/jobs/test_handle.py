"""Handles: an id and a store; results in the task's own types, errors that say how the job ended."""

import uuid
from datetime import UTC, datetime

import pytest

from millpond import (
    App,
    Cancel,
    JobCancelled,
    JobFailed,
    JobHandle,
    JobState,
    ResultTimeout,
    Retry,
    UnknownJob,
    handle,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def app():
    return App("memory://")


@pytest.fixture
def jobs(app):
    with app.testing() as jobs:
        yield jobs


def test_a_result_has_the_type_the_task_says(app, jobs):
    @app.task
    def when(days: int) -> datetime | None:
        return NOW if days else None

    known, nothing = when.enqueue_many([(1,), (0,)])
    assert jobs.run_due() == 2
    assert known.result() == NOW
    assert nothing.result(timeout=5) is None
    assert app.handle(known.id).result() == "2026-01-02T00:00:00+00:00"


def test_a_result_of_another_type_than_the_task_says_is_given_as_it_is(app, jobs):
    @app.task
    def lie() -> int:
        return "text"  # type: ignore[return-value]

    it = lie.enqueue()
    jobs.run_due()
    assert it.result() == "text"


async def test_async_code_gets_results_too(app, jobs):
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    it = await double.aenqueue(2)
    with pytest.raises(ResultTimeout, match=r"still queued after 0\.01 s"):
        await it.aresult(timeout=0.01)
    jobs.run_due()
    assert await it.aresult(timeout="1s") == 4


def test_a_dead_job_raises_what_killed_it(app, jobs):
    @app.task(retry=Retry(attempts=1))
    def fail() -> None:
        raise ValueError("no luck")

    it = fail.enqueue()
    jobs.run_due()
    with pytest.raises(
        JobFailed, match=r"is dead \(failed\) after 1 attempt: ValueError: no luck"
    ) as failure:
        it.result()
    error = failure.value
    assert (error.reason, error.error, error.job_message) == ("failed", "ValueError", "no luck")
    assert "in fail" in error.traceback
    assert "dead (failed)" in it.why()


def test_a_dead_job_without_history_still_says_so(app):
    from tests.jobs.jobs import job

    failure = handle._failed(job(state=JobState.DEAD, reason="damaged"))
    assert str(failure).endswith("is dead (damaged) after 2 attempts")


def test_a_cancelled_job_has_no_result(app, jobs):
    @app.task
    def work() -> None: ...

    it = work.enqueue()
    assert it.cancel()
    assert not it.cancel()
    assert jobs.run_due() == 0
    with pytest.raises(JobCancelled, match="cancelled") as failure:
        it.result()
    assert failure.value.reason == "cancelled"


def test_a_job_that_gives_up_is_cancelled(app, jobs):
    @app.task
    def work() -> None:
        raise Cancel

    it = work.enqueue()
    jobs.run_due()
    assert it.job().state is JobState.CANCELLED


def test_a_wait_has_its_bound(app, jobs):
    @app.task
    def work() -> None: ...

    it = work.enqueue()
    for timeout in (0, 0.02, "20ms"):
        with pytest.raises(ResultTimeout, match=r"still queued .* it goes on"):
            it.result(timeout=timeout)
    with pytest.raises(TimeoutError):
        it.result(0)


def test_naps_grow_up_to_a_bound():
    patience = handle._Patience(None)
    from tests.jobs.jobs import RUNNING

    naps = [patience.nap(RUNNING) for _ in range(30)]
    assert naps == sorted(naps)
    assert naps[-1] == handle.LONGEST_NAP


def test_an_unknown_job_is_named(app):
    with pytest.raises(UnknownJob, match="it never was, or it has been pruned"):
        app.handle(str(uuid.uuid4())).job()


def test_why_knows_the_clock_of_the_store(app, jobs):
    @app.task
    def work() -> None: ...

    later = work.using(delay="1h").enqueue()
    child = work.using(depends_on=[later]).enqueue()
    jobs.advance("20m")
    assert later.why() == "It is due in 40 min."
    assert child.why() == f"It waits for 1 of 1 jobs it depends on: {later.id}."
    assert "No node is running" in work.enqueue().why()


def test_why_asks_the_wall_clock_where_the_store_has_none(app):
    @app.task
    def work() -> None: ...

    class Bare:
        def __init__(self, store):
            self.get, self.counts, self.url = store.get, store.counts, store.url

    it = work.using(delay="2h").enqueue()
    bare: JobHandle[None] = JobHandle(Bare(app.store), it.id)  # type: ignore[arg-type]
    assert bare.why().startswith("It is due in 1 h 59 min")
    assert repr(bare) == f"<JobHandle {it.id}>"
