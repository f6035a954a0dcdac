"""A job may have a million dependents: no step on Redis reaches more than a page of them, claims do the rest.

While one process looped until all were reached, its node neither settled nor began anything else.
"""

from __future__ import annotations

import pytest

from millpond.job import Failure, JobOptions, Raised
from millpond.store.protocol import Claim, Filter, Tick
from tests.servers.redis import client_for
from tests.stores.acting import OK, Node, dead_job, new_job, opened, put, put_many, tally
from tests.stores.places import address_and_name

FAILED = Raised(Failure("E", "no"), final=True)
CHILDREN = 5000
MOST = 1500  # dependents that one step may reach


@pytest.fixture
def store(redis_url):
    store = opened(redis_url)
    yield store
    store.close()


@pytest.fixture
def calls(store, monkeypatch):
    """The names of the scripts that the store runs from now on."""
    names: list[str] = []
    run = store._server.run

    def noted(name, arguments, **manner):
        names.append(name)
        return run(name, arguments, **manner)

    monkeypatch.setattr(store._server, "run", noted)
    return names


def family(store, number=CHILDREN):
    """A parent and so many children in another queue."""
    (parent,) = put(store, new_job())
    put_many(store, number, queue="behind", depends_on=(parent,))
    return parent


def blocked(store):
    return tally(store, "behind").get("blocked", 0)


@pytest.mark.parametrize(("outcome", "after"), [(OK, "queued"), (FAILED, "cancelled")])
def test_each_exchange_reaches_a_page_of_the_dependents_and_asks_for_the_next(
    store, node, calls, outcome, after
):
    family(store)
    job = node.claim_one()
    left, settlements = CHILDREN, [node.verdict(job, outcome)]
    while left:
        calls.clear()
        answer = node.exchange(settlements=settlements, claims=[Claim("empty", 1)])
        assert len(calls) <= 2
        before, left, settlements = left, blocked(store), []
        assert before - MOST <= left < before
        assert answer.more or not left
    node.reach_all()
    assert tally(store, "behind") == {after: CHILDREN}


def test_an_exchange_for_many_queues_reaches_no_more_than_one_for_a_single_queue(store, node):
    family(store, 2 * CHILDREN)
    node.run(FAILED)
    before = blocked(store)
    assert node.exchange(claims=[Claim(f"queue-{number}", 1) for number in range(20)]).more
    assert before - MOST <= blocked(store) < before


def test_claims_from_a_queue_that_is_paused_go_on_with_dependents_of_others(store, node):
    family(store)
    node.run(FAILED)
    assert blocked(store)
    store.configure(queue="empty", paused=True)
    node.reach_all()
    assert tally(store, "behind") == {"cancelled": CHILDREN}


def cancel(store):
    store.cancel(Filter(ids=(family(store),)))


def settle_and_rescue(store):
    """The last chance of a job was lost with its node."""
    (parent,) = put(store, new_job(options=JobOptions(max_lost=1)))
    put_many(store, CHILDREN, queue="behind", depends_on=(parent,))
    gone = Node(store, "gone")
    gone.start(gone.claim_one())
    store.rescue("n1", gone=["gone"])


def doomed(store):
    """A family that is to stand behind a dead job, in one step: children come before their parent."""
    dead = dead_job(store, Node(store, "other"))
    parent = new_job(queue="behind", depends_on=(dead,))
    return [*(new_job(queue="behind", depends_on=(parent.id,)) for _ in range(CHILDREN - 1)), parent]


def enqueue_behind_a_dead_job(store):
    put(store, *doomed(store))


def plan_behind_a_dead_job(store):
    assert all(store.plan([Tick("every", at, job) for at, job in enumerate(doomed(store))]))


@pytest.mark.parametrize(
    "act", [cancel, settle_and_rescue, enqueue_behind_a_dead_job, plan_behind_a_dead_job]
)
def test_what_a_verb_does_not_reach_is_left_to_the_claims_that_follow(store, node, calls, act):
    act(store)
    assert len(calls) <= 20  # some are pages of what was enqueued
    assert blocked(store) > CHILDREN // 2  # a rescue takes two steps
    node.reach_all()
    assert tally(store, "behind") == {"cancelled": CHILDREN}


def test_a_page_that_ends_with_the_last_dependent_leaves_nothing_behind(store, node, redis_url):
    """A parent that stayed noted would take along the children of its next life."""
    family(store, 1000)
    node.run(FAILED)
    assert tally(store, "behind") == {"cancelled": 1000}
    address, name = address_and_name(redis_url)
    with client_for(address) as client:
        assert client.exists(f"{{{name}}}:falls") == 0
