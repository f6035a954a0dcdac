"""Jobs for later, and jobs for no later than: schedules and `expires`."""

from __future__ import annotations

import pytest

from millpond.job import Failure, JobState, Raised, Slot
from tests.stores.acting import happened, new_job, put, put_many, state, tally, the, travel


@pytest.mark.parametrize("fresh", [True, False])
def test_a_delayed_job_waits_for_its_time(store, node, fresh):
    (job,) = put(store, new_job(delay=10.0, fresh=fresh))
    assert (state(store, job), the(store, job).run_at) == ("scheduled", store.clock.now() + 10_000_000)
    travel(store, 9.999999)
    assert node.claim() == []
    travel(store, 0.000001)
    assert node.claim_one().id == job


def test_a_job_may_name_its_instant(store, node):
    (job,) = put(store, new_job(run_at=store.clock.now() + 5))
    assert node.claim() == []
    store.clock.shift += 5
    assert node.claim_one().id == job


def test_an_instant_that_has_passed_is_now(store, node):
    (job,) = put(store, new_job(run_at=1))
    assert state(store, job) is JobState.QUEUED
    assert node.claim_one().id == job


def test_jobs_that_come_due_are_in_line_by_rank(store, node):
    late, early = put(store, new_job(delay=20.0), new_job(delay=10.0))
    (high,) = put(store, new_job(delay=30.0, priority=2))
    (now,) = put(store, new_job())
    travel(store, 60)
    assert [job.id for job in node.claim()] == [high, now, early, late]


def test_jobs_of_every_queue_come_due(store, node):
    put(store, new_job(delay=1.0, queue="a"), new_job(delay=1.0, queue="b"))
    travel(store, 1)
    assert len(node.claim(queue="b")) == 1
    assert len(node.claim(queue="a")) == 1


def test_a_scheduled_job_with_a_slot_waits_for_both(store, node):
    slots = (Slot("s", 1),)
    put(store, new_job(slots=slots), new_job(slots=slots, delay=5.0))
    first = node.claim_one()
    travel(store, 5)
    assert node.claim() == []
    node.settle(first)
    assert len(node.claim()) == 1


@pytest.mark.parametrize("fresh", [True, False])
def test_what_has_waited_too_long_is_cancelled_instead_of_run(store, node, fresh):
    (job,) = put(store, new_job(expires=10.0, fresh=fresh))
    travel(store, 10)
    assert node.claim() == []
    found = the(store, job)
    assert (found.state, found.reason, found.finished_at) == ("cancelled", "expired", store.clock.now())
    assert happened(store) == {"enqueued": 1, "cancelled": 1}


def test_a_moment_before_it_is_not_too_late(store, node):
    (job,) = put(store, new_job(expires=10.0))
    travel(store, 9.999999)
    assert node.claim_one().id == job


def test_what_has_begun_does_not_expire(store, node):
    put(store, new_job(expires=10.0))
    job = node.claim_one()
    travel(store, 100)
    assert node.claim() == []
    assert state(store, job) is JobState.RUNNING
    node.settle(job)


def test_a_retry_that_comes_too_late_expires(store, node):
    (job,) = put(store, new_job(expires=10.0))
    node.run(Raised(Failure("E", "no"), retry_in=5.0))
    travel(store, 11)
    assert node.claim() == []
    assert (state(store, job), the(store, job).reason) == ("cancelled", "expired")


def test_scheduled_blocked_and_parked_jobs_expire_too(store, node):
    slots = (Slot("s", 1),)
    (holder,) = put(store, new_job(slots=slots))
    node.claim_one()
    (parked,) = put(store, new_job(slots=slots, expires=5.0))
    (later,) = put(store, new_job(delay=100.0, expires=5.0))
    (child,) = put(store, new_job(depends_on=(holder,), expires=5.0))
    assert node.claim() == []
    travel(store, 5)
    assert node.claim() == []
    assert [the(store, job).reason for job in (parked, later, child)] == ["expired"] * 3


def test_an_expired_parent_takes_its_children_along(store, node):
    (parent,) = put(store, new_job(expires=5.0))
    (child,) = put(store, new_job(depends_on=(parent,)))
    travel(store, 5)
    node.claim()
    assert (state(store, child), the(store, child).reason) == ("cancelled", "dependency")


def test_an_expired_job_lets_go_of_its_unique_key(store, node):
    put(store, new_job(expires=5.0, unique="k"))
    travel(store, 5)
    node.claim()
    put(store, new_job(unique="k"))


def test_however_many_have_expired_none_is_run(store, node):
    put_many(store, 2500, expires=1.0, fresh=True)
    (alive,) = put(store, new_job())
    travel(store, 1)
    assert [job.id for job in node.claim(3000)] == [alive]
    assert tally(store) == {"cancelled": 2500, "running": 1}
