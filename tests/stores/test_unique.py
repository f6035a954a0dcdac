"""Unique jobs: a key that is held makes no second job, for as long as it was asked for."""

from __future__ import annotations

import threading

import pytest

from millpond.job import Cancelled, Enqueued, Failure, JobState, Raised, Released, Snoozed
from millpond.store.protocol import Filter
from tests.stores.acting import OK, Node, happened, new_job, put, tally, travel

FAILURE = Failure("E", "no")


def is_free(store, key="k", **facts):
    """Is the key free? Takes it, if it is."""
    return store.enqueue([new_job(unique=key, **facts)])[0].created


@pytest.mark.parametrize("unique_for", ["waiting", "done", 60.0])
def test_a_held_key_answers_with_its_holder(store, unique_for):
    (holder,) = put(store, new_job(unique="k", unique_for=unique_for))
    again = new_job(unique="k", unique_for=unique_for)
    assert store.enqueue([again]) == [Enqueued(holder, False)]
    assert store.get([again.id]) == [None]
    assert tally(store) == {"queued": 1}
    assert happened(store) == {"enqueued": 1}


def test_a_key_belongs_to_its_task(store):
    put(store, new_job("a", unique="k"), new_job("b", unique="k"), new_job("a", unique="other"))


def test_the_same_key_twice_in_one_call_is_one_job(store):
    first, second = new_job(unique="k"), new_job(unique="k")
    assert store.enqueue([first, second]) == [Enqueued(first.id, True), Enqueued(first.id, False)]
    assert tally(store) == {"queued": 1}


def test_a_known_id_with_its_own_key_is_itself(store):
    job = new_job(unique="k")
    put(store, job)
    assert store.enqueue([job]) == [Enqueued(job.id, False)]


def test_until_claimed(store, node):
    put(store, new_job(unique="k", unique_for="waiting"))
    assert not is_free(store)
    job = node.claim_one()
    assert is_free(store, unique_for="waiting")
    node.settle(job, outcome=Released())
    assert not is_free(store)


def test_until_claimed_is_never_taken_back(store, node):
    put(store, new_job(unique="k", unique_for="waiting"))
    node.run(Released())
    assert is_free(store)


def test_the_end_of_a_former_holder_frees_nothing(store, node):
    put(store, new_job(unique="k", unique_for="waiting"))
    job = node.claim_one()
    assert is_free(store, unique_for="done")
    node.settle(job)
    assert not is_free(store)


@pytest.mark.parametrize("outcome", [OK, Raised(FAILURE, final=True), Cancelled()])
def test_until_done(store, node, outcome):
    put(store, new_job(unique="k"))
    job = node.claim_one()
    assert not is_free(store)
    node.settle(job, outcome=outcome)
    assert is_free(store)


@pytest.mark.parametrize("outcome", [Released(), Snoozed(5.0), Raised(FAILURE)])
def test_a_retry_keeps_the_key(store, node, outcome):
    put(store, new_job(unique="k"))
    node.run(outcome)
    assert not is_free(store)


def test_a_waiting_job_that_is_cancelled_lets_go(store):
    for unique_for in ("waiting", "done"):
        put(store, new_job(unique="k", unique_for=unique_for))
        assert store.cancel(Filter(states=(JobState.QUEUED,))) == 1


def test_for_a_time_whatever_becomes_of_the_job(store, node):
    put(store, new_job(unique="k", unique_for=60.0))
    node.run()
    travel(store, 59.999999)
    assert not is_free(store)
    travel(store, 0.000001)
    assert is_free(store)


def test_a_time_runs_out_even_if_the_job_still_runs(store, node):
    put(store, new_job(unique="k", unique_for=60.0))
    node.claim_one()
    travel(store, 60)
    assert is_free(store)


def test_a_cancelled_job_keeps_a_key_for_its_time(store):
    (job,) = put(store, new_job(unique="k", unique_for=60.0))
    store.cancel(Filter(ids=(job,)))
    assert not is_free(store)


def test_a_replayed_job_does_not_take_its_key_back(store, node):
    (job,) = put(store, new_job(unique="k"))
    node.run(Raised(FAILURE, final=True))
    store.replay(Filter(ids=(job,)))
    assert is_free(store)
    node.run()  # the replayed one ends, and the key stays with the other
    assert not is_free(store)


def test_a_rescued_job_that_dies_lets_go(store):
    from millpond.job import JobOptions

    put(store, new_job(unique="k", options=JobOptions(max_lost=1)))
    gone = Node(store, "gone")
    gone.start(gone.claim_one())
    Node(store, "n2")
    assert store.rescue("n2", gone=["gone"]).jobs == 1
    assert tally(store) == {"dead": 1}
    assert is_free(store)


def test_many_threads_with_one_key_make_one_job(store):
    together = threading.Barrier(4)
    answers: list[Enqueued] = []

    def send() -> None:
        job = new_job(unique="k")
        together.wait()
        answers.extend(store.enqueue([job]))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.created for answer in answers].count(True) == 1
    assert len({answer.id for answer in answers}) == 1
    assert tally(store) == {"queued": 1}
