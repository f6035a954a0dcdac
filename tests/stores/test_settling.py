"""Settling: verdicts are carried out once, and whoever does not hold a job can change nothing of it."""

from __future__ import annotations

import msgspec
import pytest

from millpond.ids import new_id
from millpond.job import (
    Attempt,
    Cancelled,
    Failure,
    JobState,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
)
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim, Filter, Progress, Started
from tests.stores.acting import OK, Node, changed, happened, new_job, put, put_many, state, tally, the, travel

FAILURE = Failure("ValueError", "no", "line 1")
ALL = Filter()


def test_a_result_is_kept(store, node):
    put(store, new_job())
    travel(store, 1)
    job = node.run(Returned(b'{"a": [1, 2]}\x00'))
    found = the(store, job)
    assert (found.state, found.result, found.reason) == (JobState.COMPLETED, b'{"a": [1, 2]}\x00', None)
    assert (found.finished_at, found.node, found.attempt) == (store.clock.now(), None, 1)


def test_no_result_is_no_result(store, node):
    put(store, new_job())
    assert the(store, node.run(Returned(None))).result is None


@pytest.mark.parametrize(
    ("outcome", "ending", "reason"),
    [
        (Returned(refused="a set"), JobState.DEAD, "result"),
        (Raised(FAILURE, final=True), JobState.DEAD, "failed"),
        (Cancelled("enough"), JobState.CANCELLED, "enough"),
        (Raised(FAILURE), JobState.SCHEDULED, None),
        (Snoozed(5), JobState.SCHEDULED, None),
        (Released(), JobState.QUEUED, None),
    ],
)
def test_each_outcome_leads_where_the_rules_say(store, node, outcome, ending, reason):
    put(store, new_job())
    job = node.run(outcome)
    found = the(store, job)
    assert (found.state, found.reason, found.node) == (ending, reason, None)
    assert (found.finished_at is None) == (ending in (JobState.SCHEDULED, JobState.QUEUED))


def test_the_history_of_attempts_grows_line_by_line(store, node):
    put(store, new_job())
    lines = []
    for number in (1, 2, 3):
        job = node.claim_one()
        lines.append(Attempt(number, "n1", "raised", store.clock.now(), error="E", message="ä\nb"))
        verdict = settle(job, Raised(FAILURE, retry_in=0.0), store.clock.now())
        verdict = changed(verdict, line=msgspec.json.encode(lines[-1]))
        node.exchange(settlements=[Settlement(job.id, job.token, verdict)])
    assert the(store, job).attempts == tuple(lines)


def test_many_verdicts_in_one_call(store, node):
    ids = put_many(store, 6)
    jobs = node.claim()
    outcomes = [OK, Raised(FAILURE), Raised(FAILURE, final=True), Released(), Cancelled(), OK]
    node.exchange(settlements=[node.verdict(*pair) for pair in zip(jobs, outcomes, strict=True)])
    wanted = ["completed", "scheduled", "dead", "queued", "cancelled", "completed"]
    assert [state(store, job) for job in ids] == wanted
    assert tally(store) == {"completed": 2, "scheduled": 1, "dead": 1, "queued": 1, "cancelled": 1}


def test_what_was_settled_can_be_claimed_in_the_same_call(store, node):
    put(store, new_job())
    job = node.claim_one()
    answer = node.exchange(settlements=[node.verdict(job, Released())], claims=[Claim("default", 5)])
    assert [(again.id, again.token) for again in answer.claimed] == [(job.id, 2)]


def test_a_second_verdict_in_one_call_is_stale(store, node):
    put(store, new_job())
    job = node.claim_one()
    answer = node.exchange(settlements=[node.verdict(job, OK), node.verdict(job, Raised(FAILURE))])
    assert answer.stale == (job.id,)
    assert state(store, job) is JobState.COMPLETED
    assert happened(store) == {"enqueued": 1, "completed": 1}


def test_a_result_that_comes_behind_a_release_in_one_call_is_stale(store, node):
    put(store, new_job())
    job = node.claim_one()
    answer = node.exchange(settlements=[node.verdict(job, Released()), node.verdict(job, OK)])
    assert answer.stale == (job.id,)
    assert state(store, job) is JobState.QUEUED
    assert happened(store) == {"enqueued": 1, "retried": 1}


def test_a_start_is_noted_with_its_time_and_forgotten_with_the_attempt(store, node):
    put(store, new_job())
    job = node.claim_one()
    travel(store, 2)
    assert node.start(job).stale == ()
    assert the(store, job).started_at == store.clock.now()
    node.settle(job, outcome=Released())
    assert the(store, job).started_at is None
    assert node.claim_one().started_at is None


def test_the_start_of_a_finished_job_is_remembered(store, node):
    put(store, new_job())
    job = node.claim_one()
    node.start(job)
    began = store.clock.now()
    travel(store, 2)
    node.settle(job)
    assert the(store, job).started_at == began


def test_progress_is_kept(store, node):
    put(store, new_job())
    job = node.claim_one()
    node.exchange(progress=[Progress(job.id, job.token, b"0.5")])
    assert the(store, job).progress == b"0.5"
    node.exchange(progress=[Progress(job.id, job.token, b"0.7\x00")])
    assert the(store, job).progress == b"0.7\x00"
    node.settle(job)
    assert the(store, job).progress == b"0.7\x00"


def test_settlements_come_before_starts_and_progress(store, node):
    put(store, new_job())
    job = node.claim_one()
    answer = node.exchange(
        settlements=[node.verdict(job)],
        started=[Started(job.id, job.token)],
        progress=[Progress(job.id, job.token, b"1")],
    )
    assert answer.stale == (job.id, job.id)
    assert (the(store, job).started_at, the(store, job).progress) == (None, None)


# --- fencing ----------------------------------------------------------------------------------------
def say(job, outcome, now):
    return {"settlements": [Settlement(job.id, job.token, settle(job, outcome, now), 0.1, 0.1)]}


WRITES = {
    "a result": lambda job, now: say(job, Returned(b"stolen"), now),
    "an error": lambda job, now: say(job, Raised(FAILURE), now),
    "a death": lambda job, now: say(job, Raised(FAILURE, final=True), now),
    "a snooze": lambda job, now: say(job, Snoozed(1.0), now),
    "a release": lambda job, now: say(job, Released(), now),
    "a cancellation": lambda job, now: say(job, Cancelled(), now),
    "a start": lambda job, now: {"started": [Started(job.id, job.token)]},
    "progress": lambda job, now: {"progress": [Progress(job.id, job.token, b"0.1")]},
}


def another_node(store, node, job):
    return Node(store, "thief"), job


def an_older_token(store, node, job):
    node.settle(job, outcome=Released())
    node.claim_one()
    return node, job


def a_token_to_come(store, node, job):
    return node, msgspec.structs.replace(job, token=job.token + 1)


def a_job_given_back(store, node, job):
    node.settle(job, outcome=Released())
    return node, job


def a_job_that_has_ended(store, node, job):
    node.settle(job, outcome=OK)
    return node, job


def a_job_of_another_node_now(store, node, job):
    node.settle(job, outcome=Released())
    Node(store, "n2").claim_one()
    return node, job


def a_job_that_never_was(store, node, job):
    return node, msgspec.structs.replace(job, id=new_id())


def a_job_that_was_rescued(store, node, job):
    travel(store, 16)
    other = Node(store, "n2")
    for _ in range(4):
        travel(store, 5)
        other.renew()
    assert store.rescue("n2").jobs == 1
    return Node(store, "n3"), job


SITUATIONS = [
    another_node,
    an_older_token,
    a_token_to_come,
    a_job_given_back,
    a_job_that_has_ended,
    a_job_of_another_node_now,
    a_job_that_never_was,
    a_job_that_was_rescued,
]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda found: found.__name__)
def test_whoever_does_not_hold_a_job_changes_nothing(store, node, situation, write):
    put(store, new_job())
    speaker, stale = situation(store, node, node.claim_one())
    real = store.search(ALL).jobs
    counted, numbers = happened(store), tally(store)
    answer = speaker.exchange(**WRITES[write](stale, store.clock.now()))
    assert answer.stale == (stale.id,)
    assert not answer.replayed
    assert store.search(ALL).jobs == real
    assert (happened(store), tally(store)) == (counted, numbers)
    assert all(not minute.run and not minute.wait for minute in store.statistics(0, 10**9))


@pytest.mark.parametrize("write", WRITES)
def test_a_sequence_that_was_used_does_nothing_again(store, node, write):
    put(store, new_job(), new_job())
    job = node.claim_one()
    before = the(store, job)
    for sequence in (node.sequence, node.sequence - 1, 0):
        answer = store.exchange(
            "n1", sequence, claims=[Claim("default", 1)], **WRITES[write](job, store.clock.now())
        )
        assert answer.replayed
        assert (answer.claimed, answer.stale) == ((), ())
    assert the(store, job) == before
    assert tally(store) == {"queued": 1, "running": 1}


def test_sequences_may_jump(store, node):
    put(store, new_job())
    assert len(store.exchange("n1", 1000, claims=[Claim("default", 1)]).claimed) == 1
    assert store.exchange("n1", 999).replayed
    assert not store.exchange("n1", 1001).replayed


def test_a_stale_verdict_does_not_spoil_the_others(store, node):
    ids = put_many(store, 3)
    jobs = node.claim()
    old = msgspec.structs.replace(jobs[1], token=99)
    answer = node.exchange(settlements=[node.verdict(job) for job in (jobs[0], old, jobs[2])])
    assert answer.stale == (ids[1],)
    assert [state(store, job) for job in ids] == ["completed", "running", "completed"]
