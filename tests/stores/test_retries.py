"""Retries and budgets: the rules decide, the store carries out, from the first attempt to the last."""

from __future__ import annotations

import msgspec
import pytest

from millpond.job import (
    Attempt,
    Crashed,
    Failure,
    JobOptions,
    JobState,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
    TimedOut,
)
from millpond.rules.jobs.retry import delay_after
from millpond.store.protocol import Filter
from tests.stores.acting import OK, changed, new_job, put, state, the, travel

FAILURE = Failure("E", "no")


def test_a_failed_job_comes_back_after_its_delay_and_not_before(store, node):
    (job,) = put(store, new_job())
    node.run(Raised(FAILURE))
    delay = delay_after(JobOptions(), job, 1)
    travel(store, delay - 0.001)
    assert node.claim() == []
    travel(store, 0.002)
    again = node.claim_one()
    assert (again.id, again.attempt, again.errors, again.token) == (job, 1, 1, 2)


def test_a_delay_may_be_given_with_the_failure(store, node):
    (job,) = put(store, new_job())
    node.run(Raised(FAILURE, retry_in=100.0))
    assert the(store, job).run_at == store.clock.now() + 100_000_000
    travel(store, 100)
    assert node.claim_one().id == job


@pytest.mark.parametrize(
    ("outcome", "options", "reason"),
    [
        (Raised(FAILURE, retry_in=0.0), JobOptions(max_attempts=3), "failed"),
        (TimedOut(FAILURE), JobOptions(max_attempts=3, retry_first=0.0), "timeout"),
        (Crashed(FAILURE), JobOptions(max_crashes=3), "crashed"),
    ],
)
def test_a_budget_that_is_used_up_ends_the_job(store, node, outcome, options, reason):
    (job,) = put(store, new_job(options=options))
    for _ in range(2):
        node.run(outcome)
        assert state(store, job) is JobState.QUEUED
    node.run(outcome)
    found = the(store, job)
    assert (found.state, found.reason, found.attempt) == (JobState.DEAD, reason, 3)


def test_budgets_do_not_share(store, node):
    (job,) = put(store, new_job(options=JobOptions(max_attempts=2, max_crashes=2)))
    node.run(Raised(FAILURE, retry_in=0.0))
    node.run(Crashed(FAILURE))
    found = the(store, job)
    assert (found.state, found.errors, found.crashes, found.attempt) == (JobState.QUEUED, 1, 1, 2)
    node.run(Returned(b"1"))
    assert state(store, job) is JobState.COMPLETED


def test_what_never_began_costs_nothing(store, node):
    (job,) = put(store, new_job(options=JobOptions(max_attempts=1)))
    for _ in range(5):
        node.run(Released())
    found = the(store, job)
    assert (found.state, found.attempt, found.errors, found.token) == (JobState.QUEUED, 0, 0, 5)


def test_a_snooze_costs_nothing(store, node):
    (job,) = put(store, new_job(options=JobOptions(max_attempts=1)))
    for _ in range(3):
        node.run(Snoozed(1.0))
        travel(store, 1)
    assert (the(store, job).errors, the(store, job).attempt) == (0, 0)
    assert node.claim_one().id == job


def test_suspects_are_marked_to_run_alone(store, node):
    put(store, new_job())
    node.run(Crashed(FAILURE, suspects=3))
    job = node.claim_one()
    assert (job.alone, job.crashes, job.attempt) == (True, 0, 1)
    node.settle(job, outcome=Raised(FAILURE, retry_in=0.0))
    assert not node.claim_one().alone


def test_a_replayed_job_has_fresh_budgets(store, node):
    (job,) = put(store, new_job(options=JobOptions(max_attempts=2)))
    for _ in range(2):
        node.run(Raised(FAILURE, retry_in=0.0))
    assert store.replay(Filter(ids=(job,))) == 1
    node.run(Raised(FAILURE, retry_in=0.0))
    assert (the(store, job).errors, the(store, job).attempt, state(store, job)) == (1, 3, "queued")
    node.run(Raised(FAILURE, retry_in=0.0))
    assert state(store, job) is JobState.DEAD


@pytest.mark.parametrize("end", [True, False], ids=["ended", "snoozing"])
def test_of_very_many_attempts_the_first_and_the_last_are_kept(store, node, end):
    (job,) = put(store, new_job())
    for number in range(1, 131):
        claimed = node.claim_one()
        line = msgspec.json.encode(Attempt(number=number, node="n1", ended="snoozed", ended_at=number))
        outcome = OK if end and number == 130 else Released()
        verdict = node.verdict(claimed, outcome)
        told = changed(verdict.transition, line=line)
        answer = node.exchange(settlements=[Settlement(claimed.id, claimed.token, told)])
        assert answer.stale == ()
    kept = [attempt.number for attempt in the(store, job).attempts]
    assert kept == [*range(1, 11), *range(41, 131)]


def test_a_line_may_have_any_separators_in_it(store, node):
    (job,) = put(store, new_job())
    message = "a\u2028b\x0bc\x85d\r" * 20
    for number in range(1, 103):
        claimed = node.claim_one()
        attempt = Attempt(number=number, node="n1", ended="snoozed", ended_at=number, message=message)
        told = changed(node.verdict(claimed, Released()).transition, line=msgspec.json.encode(attempt))
        node.exchange(settlements=[Settlement(claimed.id, claimed.token, told)])
    attempts = the(store, job).attempts
    assert [attempt.number for attempt in attempts] == [*range(1, 11), *range(13, 103)]
    assert {attempt.message for attempt in attempts} == {message}
