"""Enqueueing: what goes in comes out, all or none, and no id twice."""

from __future__ import annotations

import threading

import pytest

from millpond.errors import OutcomeUnknown, StoreUnavailable, UnknownJob
from millpond.job import Enqueued, JobOptions, JobState, Slot
from millpond.rules.jobs.lifecycle import rank
from millpond.store.redis import enqueue_batches
from tests.proof_stores.tripwire import Wire
from tests.stores.acting import OK, happened, new_job, put, put_many, tally, the


def test_a_job_comes_out_as_it_went_in(store):
    job = new_job(
        "mail.send",
        payload=b'{"to": "\xc3\xa9"}\x00\xff',
        queue="mail.out-1",
        priority=3,
        run_at=5_000_000,
        expires=30.0,
        unique="k",
        slots=(Slot("a", 2), Slot("b", 1)),
        options=JobOptions(timeout=None, max_attempts=2, resources={"gpu": 0.5}),
    )
    put(store, job)
    found = the(store, job.id)
    assert (found.task, found.queue, found.payload) == (job.task, job.queue, job.payload)
    assert (found.priority, found.run_at, found.rank) == (3, 5_000_000, rank(5_000_000, 3))
    assert (found.unique, found.slots, found.options) == ("k", job.slots, job.options)
    assert found.expires_at == store.clock.now() + 30_000_000
    assert found.state is JobState.QUEUED


def test_a_new_job_has_nothing_behind_it(store):
    (job,) = put(store, new_job(fresh=True))
    found = the(store, job)
    assert found.created_at == found.run_at == store.clock.now()
    assert (found.started_at, found.finished_at, found.expires_at, found.node) == (None, None, None, None)
    assert (found.attempt, found.errors, found.crashes, found.lost, found.token) == (0, 0, 0, 0, 0)
    assert (found.alone, found.cancelling, found.reason, found.unique) == (False, False, None, None)
    assert (found.result, found.progress, found.attempts, found.depends_on) == (None, None, (), ())


@pytest.mark.parametrize("fresh", [True, False])
def test_answers_come_in_the_order_of_the_jobs(store, fresh):
    jobs = [new_job(fresh=fresh) for _ in range(50)]
    jobs.reverse()
    assert store.enqueue(jobs) == [Enqueued(job.id, True) for job in jobs]
    assert [job.id for job in store.get([job.id for job in jobs])] == [job.id for job in jobs]


def test_no_jobs_are_no_trouble(store):
    assert store.enqueue([]) == []
    assert store.get([]) == []


@pytest.mark.parametrize("fresh", [True, False])
def test_a_thousand_jobs_in_one_call(store, fresh):
    jobs = put_many(store, 1000, fresh=fresh)
    assert tally(store) == {"queued": 1000}
    assert happened(store) == {"enqueued": 1000}
    assert the(store, jobs[-1]).state is JobState.QUEUED


def test_a_payload_of_a_mebibyte(store, node):
    payload = b'"' + b"x" * (1024 * 1024 - 2) + b'"'
    put(store, new_job(payload=payload))
    assert node.claim_one().payload == payload


def test_a_known_id_makes_no_second_job(store, node):
    job = new_job()
    put(store, job)
    assert store.enqueue([job]) == [Enqueued(job.id, False)]
    assert tally(store) == {"queued": 1}
    assert happened(store) == {"enqueued": 1}


def test_a_known_id_changes_nothing_of_the_job_that_has_it(store):
    job = new_job()
    put(store, job)
    before = the(store, job.id)
    store.enqueue([new_job("other", id=job.id, payload=b"[]", queue="elsewhere", priority=9)])
    assert the(store, job.id) == before


def test_an_id_stays_known_after_its_job_has_ended(store, node):
    job = new_job()
    put(store, job)
    node.run()
    assert store.enqueue([job]) == [Enqueued(job.id, False)]
    assert node.claim() == []


def test_an_id_twice_in_one_call_is_one_job(store):
    job = new_job()
    assert store.enqueue([job, job]) == [Enqueued(job.id, True), Enqueued(job.id, False)]
    assert tally(store) == {"queued": 1}


def test_a_call_may_mix_known_and_new(store):
    old, new = new_job(), new_job()
    put(store, old)
    assert store.enqueue([new, old]) == [Enqueued(new.id, True), Enqueued(old.id, False)]


def test_a_refused_job_takes_the_whole_call_with_it(store):
    good, bad = new_job(unique="k", slots=(Slot("s", 1),)), new_job(depends_on=("nobody",))
    with pytest.raises(UnknownJob, match="nobody"):
        store.enqueue([good, bad])
    assert store.get([good.id, bad.id]) == [None, None]
    assert tally(store) == {}
    assert happened(store) == {}
    put(store, new_job(unique="k"))


def test_times_are_the_stores_own(store):
    store.clock.shift += 86_400_000_000
    (job,) = put(store, new_job())
    assert the(store, job).created_at == store.clock.now()


def test_an_id_sent_by_many_threads_at_once_is_one_job(store, node):
    job = new_job()
    together = threading.Barrier(4)
    answers: list[Enqueued] = []

    def send() -> None:
        together.wait()
        answers.extend(store.enqueue([job]))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.created for answer in answers) == [False, False, False, True]
    assert {answer.id for answer in answers} == {job.id}
    assert [claimed.id for claimed in node.claim()] == [job.id]
    assert happened(store) == {"enqueued": 1}


def test_any_text_may_stand_in_names_and_keys(store, node):
    text = "päth/{x}:*?'\"\\ %s $1 \N{SNOWMAN}"
    (job,) = put(store, new_job(text, unique=text, slots=(Slot(text, 1),)))
    claimed = node.claim_one()
    assert (claimed.id, claimed.task, claimed.unique, claimed.slots) == (job, text, text, (Slot(text, 1),))
    node.settle(claimed, outcome=OK)
    put(store, new_job(text, unique=text, slots=(Slot(text, 1),)))
    assert len(node.claim()) == 1


def test_an_id_that_has_ended_makes_no_second_job(store, node):
    job = new_job()
    put(store, job)
    node.run()
    other = new_job()
    assert store.enqueue([job, other]) == [Enqueued(job.id, False), Enqueued(other.id, True)]
    assert tally(store) == {"completed": 1, "queued": 1}
    assert happened(store)["enqueued"] == 2


# --- very many ----------------------------------------------------------------------------------------
@pytest.fixture
def small_steps(monkeypatch):
    """As if a step of Redis could take three jobs."""
    monkeypatch.setattr(enqueue_batches, "JOBS", 3)


def test_a_very_large_batch_is_stored(store):
    put_many(store, 2 * enqueue_batches.JOBS + 1, fresh=True)
    assert tally(store) == {"queued": 2 * enqueue_batches.JOBS + 1}


def test_many_large_jobs_are_stored(store):
    put_many(store, 40, payload=b"1" * 1024 * 1024)
    assert tally(store) == {"queued": 40}


def test_steps_answer_as_one_does(store, small_steps):
    jobs = [new_job(unique=f"k{number % 5}") for number in range(10)]
    jobs.append(jobs[0])
    first = [job.id for job in jobs[:5]]
    answers = store.enqueue(jobs)
    assert [answer.id for answer in answers] == [*first, *first, first[0]]
    assert [answer.created for answer in answers] == [True] * 5 + [False] * 6


def test_families_are_stored_in_steps_whichever_comes_first(store, small_steps):
    for order in (1, -1):
        chain = [new_job()]
        for _ in range(9):
            chain.append(new_job(depends_on=(chain[-1].id,)))
        put(store, *chain[::order])
    assert tally(store) == {"queued": 2, "blocked": 18}


def test_an_unknown_parent_is_refused_before_the_first_step(store, small_steps):
    jobs = [*(new_job() for _ in range(8)), new_job(depends_on=("nobody",))]
    with pytest.raises(UnknownJob, match="nobody"):
        store.enqueue(jobs)
    assert tally(store) == {}


def test_a_later_step_that_fails_says_how_many_are_stored(redis_url, open_at, small_steps):
    def away():
        raise StoreUnavailable("gone")

    store = open_at(redis_url)
    jobs = [new_job() for _ in range(10)]
    wire = Wire(store, 3, away, late=False)
    with pytest.raises(OutcomeUnknown, match="of 10 jobs, the first 6 are stored"):
        store.enqueue(jobs)
    wire.remove()
    assert tally(store) == {"queued": 6}
    assert [answer.created for answer in store.enqueue(jobs)] == [False] * 6 + [True] * 4
