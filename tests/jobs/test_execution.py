"""Running a claimed job: whatever the function does is an outcome, in text that every store can keep."""

import asyncio
import contextlib
from typing import Any

import pytest

from millpond import App, Cancel, Retry, RetryAfter, Snooze, current_job
from millpond.job import (
    Cancelled,
    Crashed,
    Failure,
    JobState,
    Lost,
    Raised,
    Released,
    Returned,
    Snoozed,
    TimedOut,
    Unread,
)
from millpond.job_runner import MOST_TEXT, MOST_TRACEBACK, arun, failure_of, outcome_of, run
from millpond.payload.codec import decode
from millpond.settlement import attempt, settlement
from tests.jobs.jobs import NOW, job

app = App("memory://")


@app.task(name="add")
def add(a: int, b: int = 1) -> int:
    return a + b


@app.task(name="aadd")
async def aadd(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


@app.task(name="wrapped")
def wrapped() -> Any:
    return aadd(1)


@app.task(name="set")
def a_set() -> Any:
    return {1, 2}


@app.task(name="look")
def look() -> Any:
    here = current_job()
    here.progress(0.5, "half \ud800")
    with pytest.raises(ValueError, match="share from 0 to 1"):
        here.progress(float("nan"))
    return [here.id, here.task, here.queue, here.attempt, here.token, repr(here)]


ERRORS: dict[str, BaseException] = {}


@app.task(name="fail", retry=Retry(never=(KeyError,), after={OSError: "1m", TimeoutError: 5}))
def fail(kind: str) -> None:
    raise ERRORS[kind]


@app.task(name="afail")
async def afail(kind: str) -> None:
    raise ERRORS[kind]


def claimed(task, payload=b"{}"):
    return job(task=task, payload=payload)


def raising(error, task="fail"):
    ERRORS["it"] = error
    return run(app, claimed(task, b'{"kind": "it"}'))


@pytest.mark.parametrize(
    ("task", "payload", "result"),
    [
        ("add", b'{"a": 2}', b"3"),
        ("add", b'{"a": 2, "b": 3}', b"5"),
        ("aadd", b'{"a": 2}', b"3"),
        ("wrapped", b"{}", b"2"),
    ],
)
async def test_what_returns_has_a_result(task, payload, result):
    assert run(app, claimed(task, payload)) == Returned(result)  # inside a running loop, too
    assert await asyncio.to_thread(run, app, claimed(task, payload)) == Returned(result)
    assert await arun(app, claimed(task, payload)) == Returned(result)


def test_an_awaitable_is_finished_by_whom_the_caller_says():
    with asyncio.Runner() as runner:
        outcome = run(app, claimed("aadd", b'{"a": 2}'), finish=runner.run)  # type: ignore[arg-type]
    assert outcome == Returned(b"3")


async def test_a_result_that_cannot_be_stored_is_refused():
    refused = "the result is of kind set, which cannot be stored as JSON: pass sorted(...) of it, a list"
    assert run(app, claimed("set")) == Returned(refused=refused)
    assert await arun(app, claimed("set")) == Returned(refused=refused)


def test_the_current_job_is_known_while_it_runs_and_reports_progress():
    reports: list[bytes] = []
    it = claimed("look")
    outcome = run(app, it, lambda _: reports.append)
    assert isinstance(outcome, Returned)
    assert decode(outcome.result or b"") == [
        it.id,
        "look",
        "images",
        3,
        3,
        f"<CurrentJob {it.id}, attempt 3>",
    ]
    assert [decode(report) for report in reports] == [{"share": 0.5, "note": "half ?"}]
    with pytest.raises(LookupError):
        current_job()
    assert isinstance(run(app, it), Returned)  # without anybody to report to


@pytest.mark.parametrize(
    ("error", "final", "retry_in"),
    [
        (ValueError("a"), False, None),
        (KeyError("a"), True, None),
        (OSError("a"), False, 60.0),
        (TimeoutError("a"), False, 5.0),  # the nearest class counts
        (ConnectionResetError("a"), False, 60.0),
        (RetryAfter("2m"), False, 120.0),
        (SystemExit(3), False, None),
        (asyncio.CancelledError(), False, None),
        (ExceptionGroup("g", [ValueError("a")]), False, None),
    ],
)
def test_what_raises_is_judged_by_the_rules_of_its_task(error, final, retry_in):
    outcome = raising(error)
    assert isinstance(outcome, Raised)
    assert (outcome.final, outcome.retry_in) == (final, retry_in)
    assert outcome.failure.type.split(".")[-1] == type(error).__name__


@pytest.mark.parametrize(
    ("error", "outcome"), [(Snooze("2m"), Snoozed(120.0)), (Cancel("enough"), Cancelled())]
)
async def test_a_task_may_say_not_now_or_never(error, outcome):
    assert raising(error) == outcome
    assert raising(error, "afail") == outcome
    assert await arun(app, claimed("afail", b'{"kind": "it"}')) == outcome


async def test_an_async_task_that_raises_is_an_outcome():
    for error in (ValueError("no"), SystemExit(1), asyncio.CancelledError("mine")):
        ERRORS["it"] = error
        outcome = await arun(app, claimed("afail", b'{"kind": "it"}'))
        assert isinstance(outcome, Raised)
        assert outcome.failure.message == str(error)
        assert raising(error, "afail").failure.type == outcome.failure.type


async def test_a_loop_task_that_is_cancelled_from_outside_stays_cancelled():
    began = asyncio.Event()

    @app.task(name="wait")
    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(arun(app, claimed("wait")))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_an_interrupt_gets_out():
    with pytest.raises(KeyboardInterrupt):
        raising(KeyboardInterrupt())


@pytest.mark.parametrize(
    ("it", "final", "said"),
    [
        (claimed("gone"), False, "no task is called 'gone'"),
        (claimed("add", b'{"a": "x"}'), False, "a: expected `int`, got `str`"),
        (claimed("add", b'{"c": 1}'), False, "have ['c']"),
        (claimed("add", b"\xff"), True, "cannot be read"),
        (claimed("add", b"[1]"), True, "no JSON object"),
    ],
)
async def test_what_cannot_be_called_is_an_error_final_only_if_no_version_could_read_it(it, final, said):
    for outcome in (run(app, it), await arun(app, it)):
        assert isinstance(outcome, Raised if final else Unread)
        assert said in outcome.failure.message
        assert not isinstance(outcome, Raised) or outcome.final


# --- failures as text ----------------------------------------------------------------------------------
def test_a_traceback_begins_in_the_function():
    for task in ("fail", "afail"):
        text = raising(ValueError("no"), task).failure.traceback.splitlines()
        assert text[0] == "Traceback (most recent call last):"
        assert text[1].endswith(f"in {task}")
        assert text[-1] == "ValueError: no"


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("even this")


@pytest.mark.parametrize(
    "message", ["a\0b", "a\ud800b", "a\u2028b", "a\x85b", "x" * 10**6, "é" * 10**6, "\n" * 10**5, ""]
)
def test_the_text_of_an_error_can_be_kept_by_every_store(message):
    failure = failure_of(ValueError(message))
    for text, most in ((failure.message, MOST_TEXT), (failure.traceback, MOST_TRACEBACK)):
        assert len(text) <= most
        assert "\0" not in text
        assert text.encode().decode() == text
    line = settlement(job(), Raised(failure), "n", now=NOW).transition.line
    assert len(line.decode().splitlines()) == 1


def test_an_error_that_cannot_be_read_is_still_named():
    failure = failure_of(Mute())
    assert failure.type.endswith("Mute")
    assert "cannot be read" in failure.message


# --- what the store is told ----------------------------------------------------------------------------
ERROR = Failure("ValueError", "no", "Traceback")


@pytest.mark.parametrize(
    ("outcome", "ended", "error"),
    [
        (Returned(b"1"), "returned", None),
        (Returned(refused="too large"), "returned", "PayloadRefused"),
        (Raised(ERROR), "raised", "ValueError"),
        (TimedOut(ERROR), "timed out", "ValueError"),
        (Crashed(ERROR), "crashed", "ValueError"),
        (Lost(started=True), "lost", None),
        (Snoozed(1.0), "snoozed", None),
        (Cancelled(), "cancelled", None),
    ],
)
def test_every_attempt_leaves_a_line(outcome, ended, error):
    it = job()
    told = settlement(it, outcome, "node-1", now=NOW, started_at=NOW - 2_000_000, worker=7)
    line = decode(told.transition.line)
    assert (told.id, told.token) == (it.id, it.token)
    assert (line["number"], line["node"], line["worker"], line["ended"]) == (3, "node-1", 7, ended)
    assert (line["started_at"], line["ended_at"], line.get("error")) == (NOW - 2_000_000, NOW, error)
    assert (told.wait, told.run) == (3600 - 2, 2.0)


def test_a_job_that_never_began_leaves_no_line():
    told = settlement(job(), Released(), "node-1", now=NOW)
    assert told.transition.line == b""
    assert told.transition.state is JobState.QUEUED
    assert (told.wait, told.run) == (None, None)


def test_a_clock_that_went_back_gives_no_negative_times():
    told = settlement(job(), Returned(), "n", now=NOW - 10, started_at=NOW - 10**13)
    assert told.wait == 0
    assert settlement(job(), Returned(), "n", now=0, started_at=NOW).run == 0
    assert attempt(job(), Returned(), "n", now=NOW).started_at is None


def test_the_answers_of_a_task_can_be_pickled():
    import pickle

    for error in (Snooze("2m"), RetryAfter("1m", "busy"), RetryAfter(5), Cancel("enough")):
        back = pickle.loads(pickle.dumps(error))
        assert (str(back), getattr(back, "delay", 0)) == (str(error), getattr(error, "delay", 0))
    assert str(RetryAfter(5, "busy")) == "busy"
    assert str(Snooze(5)) == "snoozed for 5 s"


def test_an_impossible_delay_is_an_error_of_the_task():
    for answer in (Snooze, RetryAfter):
        with contextlib.suppress(ValueError):
            answer(-1)
            pytest.fail("took it")
    assert outcome_of(RetryAfter(1), Retry(never=(RetryAfter,))).retry_in == 1.0  # type: ignore[union-attr]
