"""A Redis whose memory is full: enqueueing is refused, and everything that makes room again goes on."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from millpond.errors import StoreUnavailable
from millpond.job import Failure, JobState, Raised, Slot
from millpond.store.protocol import Filter, Retention
from millpond.store.redis.errors import NoFlags, translated
from tests.servers.redis import Redis, program
from tests.stores.acting import Node, new_job, opened, put, put_many, tally


@pytest.fixture
def server():
    """A server of this test alone."""
    server = Redis(program("redis-server", "valkey-server"))
    yield server
    server.server.remove()


def fill(server, store):
    """Leave no memory for anything new."""
    with server.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
    with pytest.raises(StoreUnavailable, match="nothing happened"):
        store.enqueue([new_job()])


def test_what_is_claimed_and_settled_on_a_full_server_drains_it(server):
    store = opened(server.url)
    put_many(store, 30, slots=(Slot("s", 10),))
    fill(server, store)
    node = Node(store)
    failed = node.claim(10)
    node.start(*failed)
    node.settle(*failed, outcome=Raised(Failure("E", "no"), final=True))
    while jobs := node.claim(10):
        node.settle(*jobs)
    assert tally(store) == {"completed": 20, "dead": 10}
    assert store.prune(Retention(), Filter(states=(JobState.DEAD,))) == 10
    assert store.prune(Retention(completed=0.0)) == 20
    store.close()


def test_people_and_rescuers_are_served_by_a_full_server(server):
    store = opened(server.url)
    put_many(store, 30)
    dead = Node(store, "dead")
    dead.claim(10)
    (parent, _) = put(store, first := new_job(queue="q"), new_job(queue="q", depends_on=(first.id,)))
    fill(server, store)
    node = Node(store)
    assert store.rescue("n1", gone=["dead"]).jobs == 10
    assert store.cancel(Filter(ids=(parent,))) == 1
    assert store.cancel(Filter(queue="default")) == 30
    assert tally(store, "q") == {"cancelled": 2}
    store.configure(queue="default", paused=True)
    store.renew("n1", "here", lease=0)
    assert node.name not in {found.id for found in store.counts().nodes}
    store.close()


@pytest.mark.parametrize("has_functions", [True, False])
def test_a_node_that_starts_while_the_server_is_full_works(server, has_functions):
    store = opened(server.url)
    put_many(store, 5)
    fill(server, store)
    with server.client() as client:
        client.execute_command("FUNCTION", "FLUSH")
        client.execute_command("SCRIPT", "FLUSH")
        rights = "+@all" if has_functions else "-function"
        client.execute_command("ACL", "SETUSER", "app", "on", ">pw", "~*", "&*", "+@all", rights)
    later = opened(server.url.replace("redis://", "redis://app:pw@"))
    node = Node(later)
    node.settle(*node.claim(2))
    node.settle(*node.claim(3))
    assert tally(later) == {"completed": 5}
    with pytest.raises(StoreUnavailable):
        later.enqueue([new_job()])
    for each in (store, later):
        each.close()


def test_a_server_before_7_that_knows_no_flags_of_scripts_gets_plain_ones():
    said = "Error compiling script (new function): user_script:1: unexpected symbol near '#'"
    assert isinstance(translated("redis://host", ResponseError(said)), NoFlags)
