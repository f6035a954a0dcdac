"""Who is first: by rank, then by id, the same in every store."""

from __future__ import annotations

from uuid import uuid4

import pytest

from millpond.job import Crashed, Failure, Released, Snoozed
from millpond.store.protocol import Claim
from tests.stores.acting import DAY, id_of, new_job, put, put_many, the, travel


def claimed(node, limit=100, queue="default"):
    return [job.id for job in node.claim(limit, queue)]


@pytest.mark.parametrize("fresh", [True, False])
def test_first_come_first_served(store, node, fresh):
    ids: list[str] = []
    for _ in range(5):
        ids += put(store, new_job(id=id_of(f"{5 - len(ids)}"), fresh=fresh))
        store.clock.shift += 1
    assert claimed(node) == ids


def test_of_the_same_instant_the_smaller_id_is_first_by_its_bytes(store, node):
    ids = [str(uuid4()) for _ in range(20)]
    put(store, *(new_job(id=id_) for id_ in ids))
    assert claimed(node) == sorted(ids, key=str.encode)


def test_a_step_of_priority_is_worth_a_day(store, node):
    (early,) = put(store, new_job(priority=1))
    travel(store, DAY - 1)
    (high,) = put(store, new_job(priority=2))
    assert claimed(node) == [high, early]


def test_what_has_waited_for_more_than_a_day_overtakes_a_step(store, node):
    (early,) = put(store, new_job(priority=1))
    travel(store, DAY + 1)
    (high,) = put(store, new_job(priority=2))
    assert claimed(node) == [early, high]


def test_a_day_exactly_is_a_tie_that_the_id_breaks(store, node):
    put(store, new_job(id=id_of("b"), priority=1))
    travel(store, DAY)
    put(store, new_job(id=id_of("a"), priority=2))
    assert claimed(node) == [id_of("a"), id_of("b")]


def test_all_priorities(store, node):
    ids = [put(store, new_job(priority=priority))[0] for priority in (0, 5, 9, 1, 3)]
    assert claimed(node) == [ids[2], ids[1], ids[4], ids[3], ids[0]]


def test_a_job_due_long_ago_goes_first(store, node):
    (now,) = put(store, new_job())
    (old,) = put(store, new_job(run_at=store.clock.now() - 1))
    assert claimed(node) == [old, now]


def test_many_small_claims_keep_the_order(store, node):
    ids = put_many(store, 30)
    assert [claimed(node, 7) for _ in range(5)] == [ids[:7], ids[7:14], ids[14:21], ids[21:28], ids[28:]]


def test_jobs_of_several_queues_come_entry_by_entry(store, node):
    first, second = put_many(store, 3, queue="a"), put_many(store, 3, queue="b")
    answer = node.exchange(claims=[Claim("b", 2), Claim("a", 10)])
    assert [job.id for job in answer.claimed] == second[:2] + first


def test_a_released_job_gets_its_place_back(store, node):
    ids = put_many(store, 3)
    node.run(Released())
    assert claimed(node) == ids


def test_a_job_whose_worker_died_gets_its_place_back(store, node):
    ids = put_many(store, 3)
    node.run(Crashed(Failure("E", "dead")))
    assert claimed(node) == ids


def test_a_snoozed_job_stands_at_the_end(store, node):
    ids = put_many(store, 3)
    node.run(Snoozed(10))
    travel(store, 11)
    assert claimed(node) == [*ids[1:], ids[0]]


def test_a_rank_is_exact_to_the_microsecond(store, node):
    instant = store.clock.now() - 1
    (job,) = put(store, new_job(run_at=instant, priority=7))
    assert the(store, job).rank == instant - 7 * 86_400_000_000
    assert node.claim_one().rank == instant - 7 * 86_400_000_000
