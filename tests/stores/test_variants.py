"""Servers that differ from the four: Valkey, a Redis Cluster, PostgreSQL behind PgBouncer.

The whole suite runs over one of them by MILLPOND_STORES=valkey (or redis-cluster, pgbouncer).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from millpond.errors import NodeRefused
from millpond.job import Failure, Raised, Slot
from millpond.store.protocol import Filter, Retention, Tick
from tests.stores.acting import Node, happened, new_job, put, put_many, state, states, tally, travel


def test_jobs_run_to_their_ends(variant):
    node = Node(variant)
    put_many(variant, 30, fresh=True)
    put_many(variant, 30)
    while jobs := node.claim(7):
        node.start(*jobs)
        node.settle(*jobs)
    assert tally(variant) == {"completed": 60}
    assert happened(variant) == {"enqueued": 60, "completed": 60}


def test_everything_that_touches_several_records(variant):
    node = Node(variant)
    slots = (Slot("a", 1), Slot("b", 2))
    (parent,) = put(variant, new_job(unique="k", slots=slots))
    children = put(variant, *(new_job(depends_on=(parent,), slots=slots) for _ in range(3)))
    assert not variant.enqueue([new_job(unique="k")])[0].created
    node.run()
    assert states(variant, children) == ["queued"] * 3
    assert len(node.claim()) == 1
    put(variant, new_job(unique="k"))
    assert variant.cancel(Filter()) == 4


def test_retries_schedules_and_replays(variant):
    node = Node(variant)
    (job,) = put(variant, new_job(delay=5.0))
    assert node.claim() == []
    travel(variant, 5)
    node.run(Raised(Failure("E", "no"), retry_in=1.0))
    travel(variant, 1)
    node.run(Raised(Failure("E", "no"), final=True))
    assert state(variant, job) == "dead"
    assert variant.replay(Filter()) == 1
    node.run()
    assert [found.id for found in variant.search(Filter()).jobs] == [job]
    assert variant.prune(Retention(completed=0.0)) == 1


def test_a_rescue(variant):
    gone = Node(variant, "gone")
    put_many(variant, 600, fresh=True)
    gone.claim(600)
    Node(variant)
    assert variant.rescue("n1", gone=["gone"]).jobs == 600
    assert tally(variant) == {"queued": 600}
    try:
        gone.renew()
    except NodeRefused:
        pass
    else:
        raise AssertionError


def test_records(variant):
    assert variant.plan([Tick("a", 1, new_job()), Tick("a", 1, new_job())]) == [True, False]
    assert variant.record("d", b"x", 0).version == 1
    assert [entry.number for entry in variant.log("l", [b"a", b"b"])] == [1, 2]
    variant.configure(queue="default", rate=2, paused=True)
    assert variant.counts().queues[0].paused


def test_many_threads(variant):
    ids = put_many(variant, 100)

    def work(name):
        node = Node(variant, name)
        done = []
        while jobs := node.claim(5):
            node.settle_among_others(*jobs)
            done += [job.id for job in jobs]
        return done

    with ThreadPoolExecutor(4) as threads:
        done = [job for part in threads.map(work, "abcd") for job in part]
    done += work("last")
    assert sorted(done) == sorted(ids)


def test_waiting_does_no_harm(variant):
    put(variant, new_job())
    variant.wait(["default"], 0.01)
    assert tally(variant) == {"queued": 1}
