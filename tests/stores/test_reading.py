"""Looking: jobs by id and by filter, page by page, and numbers."""

from __future__ import annotations

import pytest

from millpond.job import Failure, JobState, Raised, Released, Returned, Settlement, Slot
from millpond.rules.histogram import bucket
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Filter
from tests.stores.acting import OK, happened, new_job, put, put_many, tally, travel

FINAL = Raised(Failure("E", "no"), final=True)


def found(store, limit=100, cursor=None, **facts):
    return [job.id for job in store.search(Filter(**facts), limit, cursor).jobs]


def test_jobs_are_got_in_the_order_asked(store):
    a, b, c = put_many(store, 3)
    assert [job and job.id for job in store.get([c, "nobody", a, c, b])] == [c, None, a, c, b]


def test_newest_first(store):
    ids = put_many(store, 5)
    assert found(store) == ids[::-1]


def test_waiting_and_ended_jobs_are_found_together(store, node):
    ids = put_many(store, 6)
    node.run()
    node.run(FINAL)
    node.claim_one()
    assert found(store) == ids[::-1]


def test_everything_that_is_asked_for_must_hold(store, node):
    a, b, c, d = put(
        store,
        new_job("x", queue="q"),
        new_job("y", queue="q"),
        new_job("x", queue="r"),
        new_job("x", queue="q"),
    )
    assert node.run(queue="q").id == a
    assert found(store, queue="q") == [d, b, a]
    assert found(store, task="x") == [d, c, a]
    assert found(store, queue="q", task="x") == [d, a]
    assert found(store, states=(JobState.QUEUED,), queue="q", task="x") == [d]
    assert found(store, states=(JobState.QUEUED, JobState.COMPLETED), task="x") == [d, c, a]
    assert found(store, ids=(a, c, "nobody")) == [c, a]
    assert found(store, ids=(a, c), states=(JobState.QUEUED,)) == [c]
    assert found(store, task="nobody") == []


@pytest.mark.parametrize("size", [1, 3, 7, 10, 11])
def test_pages_cover_everything_once(store, node, size):
    ids = put_many(store, 10)
    node.settle(*node.claim(5))
    seen, cursor = [], None
    while True:
        page = store.search(Filter(), size, cursor)
        assert len(page.jobs) <= size
        seen += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break
        assert cursor == seen[-1]
    assert seen == ids[::-1]


def test_pages_go_on_within_a_filter(store, node):
    put_many(store, 4, task="x")
    wanted = put_many(store, 4, task="y")
    page = store.search(Filter(task="y"), 3)
    assert [job.id for job in page.jobs] == wanted[:0:-1]
    assert found(store, 3, page.cursor, task="y") == wanted[:1]


def test_what_comes_meanwhile_does_not_disturb_a_page(store):
    ids = put_many(store, 4)
    page = store.search(Filter(), 2)
    put_many(store, 3)
    assert found(store, 2, page.cursor) == ids[1::-1]


def test_a_found_job_is_whole(store, node):
    put(store, new_job(payload=b"[7]"))
    node.run(Returned(b"8"))
    (job,) = store.search(Filter()).jobs
    assert (job.payload, job.result, job.state) == (b"[7]", b"8", JobState.COMPLETED)


# --- counts -----------------------------------------------------------------------------------------
def test_counts_by_queue_and_state(store, node):
    put_many(store, 4, queue="b")
    (parent,) = put(store, new_job(queue="a", delay=5.0))
    put(store, new_job(queue="a", depends_on=(parent,)))
    node.run(OK, queue="b")
    node.run(FINAL, queue="b")
    node.claim_one("b")
    assert [counts.queue for counts in store.counts().queues] == ["a", "b"]
    assert tally(store, "a") == {"scheduled": 1, "blocked": 1}
    assert tally(store, "b") == {"completed": 1, "dead": 1, "running": 1, "queued": 1}


def test_nothing_is_counted_where_nothing_is(store):
    counts = store.counts()
    assert (counts.queues, counts.nodes) == ((), ())


def test_the_oldest_job_in_line(store, node):
    put(store, new_job())
    travel(store, 10)
    put(store, new_job())
    put(store, new_job(delay=100.0))
    travel(store, 5)
    assert store.counts().queues[0].oldest == pytest.approx(15.0)
    node.claim_one()
    assert store.counts().queues[0].oldest == pytest.approx(5.0)
    node.claim_one()
    assert store.counts().queues[0].oldest is None


def test_what_could_be_claimed_is_counted_without_the_rest(store, node):
    once = (Slot("s", 1),)
    put(store, new_job(slots=once))
    put(store, new_job(slots=once))
    put(store, new_job(delay=100.0))
    node.claim_one()
    assert node.claim() == []  # the second finds its slot full, and is parked
    travel(store, 3)
    put_many(store, 2)
    travel(store, 2)
    (ready,) = store.counts(ready_only=True).queues
    assert (ready.states, ready.oldest) == ({JobState.QUEUED: 2}, pytest.approx(2.0))
    assert tally(store, "default") == {"queued": 3, "scheduled": 1, "running": 1}
    assert store.counts(ready_only=True).nodes == store.counts().nodes


# --- statistics -------------------------------------------------------------------------------------
def test_what_happened_is_counted_by_queue(store, node):
    put_many(store, 5)
    put_many(store, 2, queue="other")
    node.run(OK)
    node.run(OK)
    node.run(FINAL)
    node.run(Released())
    node.run(Raised(Failure("E", "no")))
    store.cancel(Filter(queue="other"))
    assert happened(store) == {"enqueued": 5, "completed": 2, "dead": 1, "retried": 2}
    assert happened(store, "other") == {"enqueued": 2, "cancelled": 2}


def test_minutes_are_apart_and_in_order(store, node):
    first = store.clock.now() // 60_000_000
    put(store, new_job(queue="b"))
    put(store, new_job(queue="a"))
    travel(store, 120)
    put(store, new_job(queue="a"))
    minutes = store.statistics(first, first + 10)
    assert [(minute.queue, minute.minute) for minute in minutes] == [
        ("a", first),
        ("a", first + 2),
        ("b", first),
    ]
    assert [minute.minute for minute in store.statistics(first + 1, first + 2)] == []
    assert [minute.minute for minute in store.statistics(first + 2, first + 3)] == [first + 2]


def test_waits_and_runs_are_counted_in_buckets(store, node):
    put_many(store, 3)
    settlements = []
    for job, (wait, run) in zip(node.claim(), [(0.5, 2.0), (0.5, 0.0), (None, None)], strict=True):
        settlements.append(Settlement(job.id, job.token, settle(job, OK, store.clock.now()), wait, run))
    node.exchange(settlements=settlements)
    (minute,) = store.statistics(0, 10**9)
    assert minute.wait == {bucket(0.5): 2}
    assert minute.run == {bucket(2.0): 1, bucket(0.0): 1}
    assert minute.counts == {"enqueued": 3, "completed": 3}
