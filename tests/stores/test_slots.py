"""Slots: a named capacity that running jobs share, kept exactly, served in the order of the line."""

from __future__ import annotations

import pytest

from millpond.job import Cancelled, Crashed, Failure, JobOptions, Raised, Released, Slot, Snoozed
from millpond.store.protocol import Claim, Filter
from tests.stores.acting import OK, Node, new_job, put, put_many, state, tally, the, travel

FAILURE = Failure("E", "no")
ONE = (Slot("s", 1),)


def ids(jobs):
    return [job.id for job in jobs]


def test_no_more_run_than_the_capacity(store, node):
    wanted = put_many(store, 5, slots=(Slot("s", 2),))
    first = node.claim()
    assert ids(first) == wanted[:2]
    assert node.claim() == []
    node.settle(first[0])
    assert ids(node.claim()) == wanted[2:3]


def test_all_nodes_share_a_slot(store):
    put_many(store, 5, slots=(Slot("s", 3),))
    assert len(Node(store, "n1").claim(2)) == 2
    assert len(Node(store, "n2").claim()) == 1


def test_all_queues_and_tasks_share_a_slot(store, node):
    put(store, new_job("a", queue="x", slots=ONE), new_job("b", queue="y", slots=ONE))
    job = node.claim_one("x")
    assert node.claim(queue="y") == []
    node.settle(job)
    assert len(node.claim(queue="y")) == 1


def test_those_that_need_no_slot_are_not_held_up(store, node):
    wanted = put(store, new_job(slots=ONE), new_job(slots=ONE), new_job(), new_job(slots=(Slot("t", 1),)))
    assert ids(node.claim()) == [wanted[0], wanted[2], wanted[3]]


def test_those_held_up_wait_behind_no_limit(store, node):
    """A claim of one looks behind however many cannot run."""
    put_many(store, 700, slots=ONE)
    (free,) = put(store, new_job())
    assert len(node.claim(1)) == 1
    assert ids(node.claim(1)) == [free]


def test_the_first_in_line_gets_the_room(store, node):
    first = put(store, new_job(slots=ONE))
    waiting = put_many(store, 3, slots=ONE)
    job = node.claim_one()
    assert node.claim() == []
    (urgent,) = put(store, new_job(slots=ONE, priority=9))
    order = []
    while True:
        node.settle(job)
        found = node.claim()
        if not found:
            break
        (job,) = found
        order.append(job.id)
    assert order == [urgent, *waiting]
    assert the(store, first[0]).state == "completed"


def test_one_that_comes_due_competes_with_those_who_wait(store, node):
    (holder,) = put(store, new_job(slots=ONE))
    job = node.claim_one()
    waiting = put_many(store, 2, slots=ONE)
    (later,) = put(store, new_job(slots=ONE, delay=5.0, priority=5))
    assert node.claim() == []
    travel(store, 5)
    node.settle(job)
    assert ids(node.claim()) == [later]
    assert job.id == holder
    assert tally(store)["queued"] == len(waiting)


def test_a_job_of_two_slots_needs_both(store, node):
    a, b = Slot("a", 1), Slot("b", 1)
    both, only_a, only_b = put(store, new_job(slots=(a, b)), new_job(slots=(a,)), new_job(slots=(b,)))
    (job,) = node.claim()
    assert job.id == both
    node.settle(job)
    assert ids(node.claim()) == [only_a, only_b]


def test_one_that_is_held_up_takes_no_part_of_what_it_needs(store, node):
    a, b = Slot("a", 1), Slot("b", 1)
    put(store, new_job(slots=(a,)))
    holder = node.claim_one()
    both, only_b = put(store, new_job(slots=(a, b)), new_job(slots=(b,)))
    second = node.claim()
    assert ids(second) == [only_b]
    node.settle(holder)
    assert node.claim() == []
    node.settle(*second)
    assert ids(node.claim()) == [both]


def test_waiting_at_one_full_slot_does_not_hide_that_another_is_full(store, node):
    a, b = Slot("a", 1), Slot("b", 1)
    put(store, new_job(slots=(a,)), new_job(slots=(b,)))
    holders = node.claim()
    both, second = put(store, new_job(slots=(a, b)), new_job(slots=(a,)))
    assert node.claim() == []
    node.settle(holders[0])
    found = node.claim()
    assert ids(found) == [second]
    node.settle(holders[1], *found)
    assert ids(node.claim()) == [both]


def test_a_slot_named_twice_is_one_unit(store, node):
    put(store, new_job(slots=(Slot("s", 1), Slot("s", 1))), new_job(slots=ONE))
    job = node.claim_one()
    node.settle(job)
    (second,) = node.claim()
    assert node.claim() == []
    node.settle(second)
    put(store, new_job(slots=ONE), new_job(slots=ONE))
    assert len(node.claim()) == 1


@pytest.mark.parametrize(
    "outcome",
    [
        OK,
        Raised(FAILURE, final=True),
        Raised(FAILURE),
        Released(),
        Snoozed(1.0),
        Cancelled(),
        Crashed(FAILURE),
        Crashed(FAILURE, suspects=2),
    ],
    ids=repr,
)
def test_every_end_of_an_attempt_frees_the_slot(store, node, outcome):
    put(store, new_job(slots=ONE))
    node.run(outcome)
    store.cancel(Filter())
    (other,) = put(store, new_job(slots=ONE))
    assert ids(node.claim()) == [other]


@pytest.mark.parametrize("started", [True, False])
def test_a_rescue_frees_the_slot(store, started):
    put(store, new_job(slots=ONE, options=JobOptions(max_lost=1)))
    gone = Node(store, "gone")
    job = gone.claim_one()
    if started:
        gone.start(job)
    node = Node(store)
    store.rescue("n1", gone=["gone"])
    store.cancel(Filter())
    (other,) = put(store, new_job(slots=ONE))
    assert ids(node.claim()) == [other]


def test_a_cancelled_running_job_keeps_its_slot_until_it_has_stopped(store, node):
    put(store, new_job(slots=ONE), new_job(slots=ONE))
    job = node.claim_one()
    store.cancel(Filter(ids=(job.id,)))
    assert node.claim() == []
    node.settle(job, outcome=Released())
    assert state(store, job) == "cancelled"
    assert len(node.claim()) == 1


def test_a_waiting_job_that_is_cancelled_takes_nothing_with_it(store, node):
    put(store, new_job(slots=ONE))
    job = node.claim_one()
    first, second = put(store, new_job(slots=ONE), new_job(slots=ONE))
    assert node.claim() == []
    store.cancel(Filter(ids=(first,)))
    assert the(store, first).parked is None
    node.settle(job)
    assert ids(node.claim()) == [second]


def test_what_a_job_waits_at_is_shown(store, node):
    put(store, new_job(slots=ONE))
    node.claim_one()
    (waiting,) = put(store, new_job(slots=ONE))
    node.claim()
    assert (state(store, waiting), the(store, waiting).parked) == ("queued", "s")


def test_a_larger_capacity_lets_more_in(store, node):
    put_many(store, 5, slots=(Slot("s", 1),))
    assert len(node.claim()) == 1
    store.configure(slot=Slot("s", 3))
    assert len(node.claim()) == 2
    assert len(node.claim()) == 0


def test_a_smaller_capacity_lets_no_more_in_until_enough_have_ended(store, node):
    put_many(store, 6, slots=(Slot("s", 3),))
    jobs = node.claim()
    assert len(jobs) == 3
    store.configure(slot=Slot("s", 1))
    for job in jobs[:2]:
        node.settle(job)
        assert node.claim() == []
    node.settle(jobs[2])
    assert len(node.claim()) == 1


def test_the_newest_job_says_how_large_a_slot_is(store, node):
    put_many(store, 3, slots=(Slot("s", 1),))
    assert len(node.claim()) == 1
    put(store, new_job(slots=(Slot("s", 2),)))
    assert len(node.claim()) == 1


def test_a_capacity_of_nothing_lets_nobody_in(store, node):
    put(store, new_job(slots=(Slot("s", 0),)))
    assert node.claim() == []
    store.configure(slot=Slot("s", 1))
    assert len(node.claim()) == 1


def test_a_slot_freed_in_a_call_is_free_for_its_claims(store, node):
    wanted = put_many(store, 2, slots=ONE)
    job = node.claim_one()
    answer = node.exchange(settlements=[node.verdict(job)], claims=[Claim("default", 5)])
    assert ids(answer.claimed) == wanted[1:]


def test_however_many_slots_have_room_the_first_in_line_are_claimed(store, node):
    """Hundreds of keys free at once: the best of all of them run, not of some."""
    slots = [(Slot(f"key-{number:03}", 1),) for number in range(300)]
    put(store, *(new_job(slots=slot) for slot in slots))
    holders = node.claim(300)
    assert len(holders) == 300
    followers = put(store, *(new_job(slots=slot) for slot in reversed(slots)))
    assert node.claim() == []
    node.settle(*holders)
    assert ids(node.claim(1)) == followers[:1]
    assert sorted(ids(node.claim(1000))) == sorted(followers[1:])


def test_a_child_with_a_slot_waits_for_both(store, node):
    (parent,) = put(store, new_job(slots=ONE))
    (child,) = put(store, new_job(slots=ONE, depends_on=(parent,)))
    job = node.claim_one()
    assert node.claim() == []
    node.settle(job)
    assert ids(node.claim()) == [child]


def test_a_replayed_job_takes_its_slot_like_any_other(store, node):
    (job,) = put(store, new_job(slots=ONE))
    node.run(Raised(FAILURE, final=True))
    put(store, new_job(slots=ONE))
    other = node.claim_one()
    store.replay(Filter(ids=(job,)))
    assert node.claim() == []
    node.settle(other)
    assert ids(node.claim()) == [job]


def test_of_two_sizes_in_one_step_the_last_counts_though_the_slot_had_it_before(store, node):
    put(store, new_job(slots=(Slot("s", 1),)))
    holder = node.claim_one()
    travel(store, 1)
    put(store, new_job(slots=(Slot("s", 2),), delay=1.0), new_job(slots=(Slot("s", 1),), delay=60.0))
    travel(store, 2)
    assert node.claim() == []
    node.settle(holder)
    assert len(node.claim()) == 1
