"""What stays behind in Redis: nothing that grows with the number of slots, and nothing of an earlier life."""

from __future__ import annotations

import pytest

from millpond.job import Failure, JobState, Raised, Slot
from millpond.store.protocol import Filter, Retention
from tests.servers.redis import client_for
from tests.stores.acting import Node, dead_job, new_job, opened, put, put_many, state, states, tally, travel
from tests.stores.places import address_and_name
from tests.stores.schemas import before, set_version

FAILED = Raised(Failure("E", "no"), final=True)
RETRIED = Raised(Failure("E", "no"), retry_in=1.0)


@pytest.fixture
def store(redis_url):
    store = opened(redis_url)
    store.clock.freeze()
    yield store
    store.close()


@pytest.fixture
def node(store):
    return Node(store)


@pytest.fixture
def keys(redis_url):
    """The keys of the store's namespace: `keys("slots:used")` is what that one has."""
    address, name = address_and_name(redis_url)
    with client_for(address) as client:
        prefix = "{" + name + "}:"
        yield lambda key: {field.decode(): value for field, value in client.hgetall(prefix + key).items()}


def slots_known(keys):
    return {name for key in ("capacity", "used", "parked", "named") for name in keys(f"slots:{key}")}


# --- slots that no job names ------------------------------------------------------------------------------
def test_slots_are_forgotten_with_the_last_job_that_names_them(store, node, keys):
    put_many(store, 3, slots=(Slot("twice", 2), Slot("free", 9)))
    put(store, new_job(delay=5.0, slots=(Slot("later", 1),)), new_job(queue="q", slots=(Slot("gone", 1),)))
    assert store.cancel(Filter(queue="q")) == 1
    first = node.claim()
    assert slots_known(keys) == {"twice", "free", "later"}
    node.settle(*first, outcome=RETRIED)
    travel(store, 5)
    while jobs := node.claim():
        node.settle(*jobs)
    assert tally(store) == {"completed": 4}
    assert slots_known(keys) == set()


def test_a_slot_that_expired_or_fallen_jobs_named_is_forgotten(store, node, keys):
    put(store, new_job(expires=1.0, slots=(Slot("a", 1),)))
    parent = new_job(queue="q")
    put(store, parent, new_job(queue="q", depends_on=(parent.id,), slots=(Slot("b", 1),)))
    travel(store, 2)
    node.run(FAILED, queue="q")
    node.claim()
    assert tally(store) == {"cancelled": 1}
    assert slots_known(keys) == set()


def test_a_dead_job_keeps_its_slots_until_it_is_deleted(store, node, keys):
    job = dead_job(store, node, slots=(Slot("s", 1),))
    store.configure(slot=Slot("s", 2))
    put(store, new_job("other", slots=(Slot("s", 1),)))
    other = node.claim_one()
    store.replay(Filter(ids=(job,)))
    assert node.claim() == []
    node.settle(other)
    node.run(FAILED)
    assert slots_known(keys) == {"s"}
    store.prune(Retention(), Filter(states=(JobState.DEAD,)))
    assert slots_known(keys) == set()


def test_a_capacity_that_was_configured_stays_until_a_job_names_another(store, node, keys):
    store.configure(slot=Slot("s", 3))
    put_many(store, 1, slots=(Slot("s", 3),))
    node.run()
    store.prune(Retention())
    assert keys("slots:capacity") == {"s": b"3"}
    put_many(store, 1, slots=(Slot("s", 1),))
    node.run()
    assert slots_known(keys) == set()


def test_slots_that_an_older_version_left_are_forgotten_by_the_upgrade_and_come_back(
    store, node, keys, redis_url
):
    """As an older version left them: no counts, and a field for ever for each name."""
    waiting = put_many(store, 3, slots=(Slot("parked at", 2),))
    waiting += put_many(store, 2, slots=(Slot("named", 5),))
    address, name = address_and_name(redis_url)
    with client_for(address) as client:
        prefix = "{" + name + "}:slots:"
        client.delete(prefix + "named")
        for number in range(700):
            client.hset(prefix + "capacity", f"key-{number}", 1)
            client.hset(prefix + "used", f"key-{number}", 0)
    set_version(redis_url, before(redis_url))
    assert len(store.migrate()) == 1
    assert slots_known(keys) == {"parked at"}
    jobs = node.claim()
    assert {job.id for job in jobs} == {*waiting[:2], *waiting[3:]}
    assert keys("slots:capacity")["named"] == b"5"
    node.settle(*jobs)
    node.settle(*node.claim())
    assert states(store, waiting) == ["completed"] * 5
    assert slots_known(keys) == set()


# --- an earlier life --------------------------------------------------------------------------------------
def test_the_unfinished_fall_of_a_parent_spares_the_children_of_its_next_life(store, node):
    """One step cancels a page of the children; the parent is replayed before the next."""
    (parent,) = put(store, new_job(queue="p"))
    put_many(store, 2500, depends_on=(parent,))
    node.run(FAILED, queue="p")
    assert tally(store) == {"blocked": 1500, "cancelled": 1000}
    assert store.replay(Filter(ids=(parent,))) == 1
    (child,) = put(store, new_job(depends_on=(parent,)))
    while tally(store).get("blocked", 0) > 1:
        node.claim()
    assert tally(store) == {"blocked": 1, "cancelled": 2500}
    assert state(store, child) == "blocked"
    node.run(queue="p")
    assert state(store, child) == "queued"


# --- pruning ----------------------------------------------------------------------------------------------
def test_no_script_deletes_many_jobs(store, node, monkeypatch):
    """While one runs, all others wait for the server."""
    put_many(store, 1000)
    node.settle(*node.claim(500))
    node.settle(*node.claim(500), outcome=FAILED)
    travel(store, 1)
    run, deleted = store._server.run, []

    def watched(name, arguments, **manner):
        answer = run(name, arguments, **manner)
        if name in ("prune", "discard"):
            deleted.append(answer if isinstance(answer, int) else answer[0])
        return answer

    monkeypatch.setattr(store._server, "run", watched)
    assert store.prune(Retention(completed=0.0)) == 500
    assert store.prune(Retention(), Filter(states=(JobState.DEAD,))) == 500
    assert sum(deleted) == 1000
    assert max(deleted) <= 200
