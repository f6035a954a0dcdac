"""Claiming: limits, queues, tasks left out, pauses, rates; and nobody gets what another has."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from millpond.errors import NodeRefused
from millpond.job import Failure, JobState, Raised, Slot
from millpond.store.protocol import Claim
from tests.stores.acting import Node, new_job, put, put_many, state, tally, the, travel


def test_a_claimed_job_is_running_and_ours(store, node):
    (job,) = put(store, new_job(payload=b"[1]"))
    claimed = node.claim_one()
    assert (claimed.id, claimed.payload, claimed.state) == (job, b"[1]", JobState.RUNNING)
    assert (claimed.node, claimed.token, claimed.started_at, claimed.attempt) == ("n1", 1, None, 0)
    assert the(store, job) == claimed


def test_every_claim_raises_the_token(store, node):
    from millpond.job import Released

    put(store, new_job())
    assert [node.run(Released()).token for _ in range(3)] == [1, 2, 3]


def test_a_limit_is_kept(store, node):
    put_many(store, 5)
    assert [len(node.claim(limit)) for limit in (2, 0, 100, 1)] == [2, 0, 3, 0]


def test_nothing_is_claimed_without_being_asked_for(store, node):
    put(store, new_job())
    assert node.exchange().claimed == ()


def test_an_empty_or_unknown_queue_gives_nothing(store, node):
    put(store, new_job(queue="a"))
    assert node.claim(queue="b") == []


def test_each_of_several_queues_gives_as_many_as_were_asked_of_it(store, node):
    first, second = put_many(store, 3, queue="a"), put_many(store, 3, queue="b")
    answer = node.exchange(claims=[Claim("b", 2), Claim("none", 4), Claim("a", 1)])
    assert [job.id for job in answer.claimed] == [*second[:2], first[0]]
    assert (tally(store, "a"), tally(store, "b")) == (
        {"queued": 2, "running": 1},
        {"queued": 1, "running": 2},
    )


@pytest.mark.parametrize("beside", [{}, {"delay": 3600.0}, {"unique": "u"}])
def test_the_only_job_in_line_is_claimed_the_same_whatever_else_is_there(store, node, beside):
    """Some stores have a short way for it, which must leave nothing behind."""
    if beside:
        put(store, new_job(queue="other", **beside))
    (job,) = put(store, new_job(queue="a"))
    answer = node.exchange(claims=[Claim("b", 5), Claim("a", 5)])
    assert [(found.id, found.token) for found in answer.claimed] == [(job, 1)]
    assert tally(store, "a") == {"running": 1}
    assert [found.id for found in store.held("n1").jobs] == [job]
    assert node.exchange(claims=[Claim("a", 5)]).claimed == ()
    node.settle(the(store, job))
    assert tally(store, "a") == {"completed": 1}
    (again,) = put(store, new_job(queue="a"))
    assert [found.id for found in node.claim(queue="a")] == [again]


def test_of_two_jobs_in_two_lines_both_are_claimed_and_of_a_paused_one_none(store, node):
    first, second = put(store, new_job(queue="a"), new_job(queue="b"))
    store.configure(queue="b", paused=True)
    both = [Claim("a", 5), Claim("b", 5)]
    assert [job.id for job in node.exchange(claims=both).claimed] == [first]
    store.configure(queue="b", paused=False)
    assert [job.id for job in node.exchange(claims=both).claimed] == [second]
    put(store, new_job(queue="a"), new_job(queue="b"), new_job(queue="b", priority=3))
    assert len(node.exchange(claims=both).claimed) == 3


def test_the_only_job_in_line_waits_for_its_rate(store, node):
    store.configure(queue="default", rate=1.0)
    put(store, new_job())
    assert len(node.claim()) == 1
    put(store, new_job())
    assert node.claim() == []


def test_the_only_job_in_line_stands_there_with_those_whose_time_has_come(store, node):
    later, now = put(store, new_job(delay=10.0), new_job())
    assert [job.id for job in node.claim()] == [now]
    travel(store, 11)
    (another,) = put(store, new_job())
    assert {job.id for job in node.claim()} == {later, another}


def test_the_only_job_in_line_is_not_claimed_after_its_time(store, node):
    (job,) = put(store, new_job(expires=5.0))
    travel(store, 6)
    assert node.claim() == []
    assert state(store, job) is JobState.CANCELLED


def test_the_only_job_in_line_has_a_higher_token_the_second_time(store, node):
    put(store, new_job())
    node.run(Raised(Failure("E", "", "")))
    travel(store, 3600)
    assert (node.claim_one().token, store.counts().queues[0].states["running"]) == (2, 1)


def test_the_only_job_in_line_is_not_for_a_node_that_may_not_speak(store, node):
    (job,) = put(store, new_job())
    with pytest.raises(NodeRefused):
        store.exchange("nobody", 1, claims=[Claim("default", 1)])
    node.exchange()
    assert store.exchange("n1", node.sequence, claims=[Claim("default", 1)]).replayed
    store.configure(queue="default", paused=True)
    assert node.claim() == []
    store.configure(queue="default", paused=False)
    assert node.claim_one().id == job


def test_what_is_special_about_one_queue_keeps_no_other_from_giving(store, node):
    paused, slotted, plain = "paused", "slotted", "plain"
    put_many(store, 2, queue=paused)
    store.configure(queue=paused, paused=True)
    held = put_many(store, 2, queue=slotted, slots=(Slot("press", 1),))
    waiting = put(store, new_job(queue=plain, unique="k", unique_for="waiting"), new_job(queue=plain))
    claims = [Claim(paused, 5), Claim(slotted, 5), Claim(plain, 5)]
    assert [job.id for job in node.exchange(claims=claims).claimed] == [held[0], *waiting]
    put(store, new_job(queue=plain, unique="k", unique_for="waiting"))  # the key was free once it ran
    assert tally(store, plain) == {"queued": 1, "running": 2}


def test_the_same_queue_twice_in_one_call(store, node):
    ids = put_many(store, 5)
    answer = node.exchange(claims=[Claim("default", 2), Claim("default", 2)])
    assert [job.id for job in answer.claimed] == ids[:4]


def test_the_same_queue_in_two_steps_the_second_without_some_tasks(store, node):
    put(store, new_job("gpu"), new_job("gpu"), new_job("cpu"), new_job("gpu"), new_job("net"))
    answer = node.exchange(claims=[Claim("default", 1), Claim("default", 5, ("gpu",))])
    assert [job.task for job in answer.claimed] == ["gpu", "cpu", "net"]
    assert [job.task for job in node.claim()] == ["gpu", "gpu"]


def test_tasks_that_cannot_start_here_are_passed_over(store, node):
    put(store, new_job("gpu"), new_job("cpu"), new_job("gpu"), new_job("net"))
    assert [job.task for job in node.claim(without=("gpu", "disk"))] == ["cpu", "net"]
    assert [job.task for job in node.claim()] == ["gpu", "gpu"]


def test_a_limit_is_filled_from_behind_those_passed_over(store, node):
    put_many(store, 300, task="gpu")
    put_many(store, 3, task="cpu")
    assert [job.task for job in node.claim(2, without=("gpu",))] == ["cpu", "cpu"]


def test_two_nodes_never_get_the_same_job(store):
    put_many(store, 10)
    one, two = Node(store, "n1"), Node(store, "n2")
    first, second = one.claim(4), two.claim(100)
    assert len(first) == 4
    assert len(second) == 6
    assert not {job.id for job in first} & {job.id for job in second}


def test_a_node_without_a_lease_is_refused(store):
    with pytest.raises(NodeRefused, match="lease"):
        store.exchange("nobody", 1, claims=[Claim("default", 1)])


def test_a_paused_queue_gives_nothing_until_it_is_resumed(store, node):
    put(store, new_job(), new_job(queue="other"))
    store.configure(queue="default", paused=True)
    assert node.claim() == []
    assert len(node.claim(queue="other")) == 1
    store.configure(queue="default", paused=False)
    assert len(node.claim()) == 1


def test_a_pause_is_seen_in_the_counts(store):
    store.configure(queue="quiet", paused=True)
    (counts,) = store.counts().queues
    assert (counts.queue, counts.paused, counts.rate, counts.oldest) == ("quiet", True, None, None)
    assert not any(counts.states.values())


def test_a_pause_keeps_what_runs(store, node):
    put(store, new_job())
    job = node.claim_one()
    store.configure(queue="default", paused=True)
    node.settle(job)
    assert state(store, job) is JobState.COMPLETED


def test_a_rate_gives_one_seconds_worth_at_once_and_then_as_time_passes(store, node):
    put_many(store, 20)
    store.configure(queue="default", rate=5)
    assert len(node.claim()) == 5
    assert len(node.claim()) == 0
    travel(store, 0.4)
    assert len(node.claim()) == 2
    travel(store, 3600)
    assert len(node.claim()) == 5


def test_a_rate_below_one_gives_one_at_a_time(store, node):
    put_many(store, 5)
    store.configure(queue="default", rate=0.5)
    assert len(node.claim()) == 1
    travel(store, 1.9)
    assert len(node.claim()) == 0
    travel(store, 0.1)
    assert len(node.claim()) == 1


def test_only_what_is_claimed_is_charged_to_the_rate(store, node):
    store.configure(queue="default", rate=4)
    assert node.claim() == []
    put_many(store, 10)
    assert len(node.claim(3)) == 3
    assert len(node.claim(3)) == 1


def test_a_rate_of_zero_is_no_limit(store, node):
    put_many(store, 10)
    store.configure(queue="default", rate=1)
    store.configure(queue="default", rate=0)
    assert len(node.claim()) == 10


def test_settings_that_are_not_named_stay(store, node):
    put_many(store, 10)
    store.configure(queue="default", rate=2)
    store.configure(queue="default", paused=True)
    store.configure(queue="default", paused=False)
    assert store.counts().queues[0].rate == 2
    assert len(node.claim()) == 2


def test_a_rate_is_shared_by_all_nodes(store):
    put_many(store, 10)
    store.configure(queue="default", rate=3)
    assert len(Node(store, "n1").claim(2)) == 2
    assert len(Node(store, "n2").claim(2)) == 1


def test_many_threads_claim_every_job_once(store):
    ids = put_many(store, 200, fresh=True) + put_many(store, 40, slots=(Slot("s", 1000),))
    together = threading.Barrier(4)

    def work(name: str) -> list[str]:
        node = Node(store, name)
        together.wait()
        found = []
        while jobs := node.claim(7):
            node.settle_among_others(*jobs)
            found += [job.id for job in jobs]
        return found

    with ThreadPoolExecutor(4) as threads:
        found = [job for part in threads.map(work, ["a", "b", "c", "d"]) for job in part]
    # One that looked while another held the last jobs may stop early; what is left is claimable.
    found += work_alone(store)
    assert sorted(found) == sorted(ids)
    assert tally(store) == {"completed": 240}


def work_alone(store):
    node = Node(store, "last")
    found = []
    while jobs := node.claim():
        node.settle(*jobs)
        found += [job.id for job in jobs]
    return found
