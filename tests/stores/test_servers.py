"""Servers that restart, are away, or are set up so that they would lose jobs."""

from __future__ import annotations

import signal

import psycopg
import pytest

from millpond.errors import OutcomeUnknown, StoreRefused, StoreUnavailable
from millpond.store.opening import open_store
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis, program
from tests.stores.acting import Node, new_job, opened, put, put_many, tally, travel


def a_postgres():
    return Postgres(), signal.SIGQUIT


def a_redis():
    return Redis(program("redis-server", "valkey-server"), fsync="always"), signal.SIGKILL


@pytest.fixture(params=[a_postgres, a_redis], ids=["postgres", "redis"])
def own(request):
    """A server of this test alone, and how to crash it."""
    server, crash = request.param()
    yield server, crash
    server.server.remove()


def test_what_was_acknowledged_survives_a_crash_of_the_server(own):
    server, crash = own
    store = opened(server.url)
    node = Node(store)
    ids = put_many(store, 20)
    jobs = node.claim(5)
    server.stop(crash)
    for call in (lambda: store.enqueue([new_job()]), node.claim, store.counts):
        with pytest.raises((StoreUnavailable, OutcomeUnknown)):
            call()
    server.start()
    assert {job.id for job in store.held("n1").jobs} == {job.id for job in jobs}
    node.sequence = store.held("n1").sequence
    node.settle(*jobs)
    assert tally(store) == {"completed": 5, "queued": 15}
    assert [job.id for job in node.claim()] == ids[5:]
    store.close()


def test_an_enqueue_repeated_with_its_id_is_one_job(own):
    server, crash = own
    store = opened(server.url)
    put(store, new_job())
    job = new_job()
    server.stop(crash)
    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        store.enqueue([job])
    server.start()
    assert store.enqueue([job])[0].id == job.id
    assert not store.enqueue([job])[0].created
    assert tally(store) == {"queued": 2}
    store.close()


def test_after_a_restart_of_the_server_nobody_is_taken_for_dead_for_a_lease(own):
    """While it was away nobody could renew; who had more luck before must not profit from it."""
    server, _ = own
    store = opened(server.url)
    Node(store, "unlucky", lease=0.001)
    lucky = Node(store, "lucky", host="there", lease=30)
    have_been_steady(server, "lucky")
    server.stop()
    server.start()
    lucky.renew()
    assert store.rescue("lucky", []).nodes == ()
    travel(store, 20)
    lucky.renew()
    travel(store, 11)
    assert store.rescue("lucky", []).nodes == ("unlucky",)
    store.close()


def have_been_steady(server, name):
    """Since long ago."""
    if isinstance(server, Postgres):
        with psycopg.connect(server.url) as connection:
            connection.execute("UPDATE millpond.nodes SET steady_since = 0 WHERE id = %s", [name])
    else:
        with server.client() as client:
            (key,) = client.keys(f"*:node:{name}")
            assert client.hset(key, "steady_since", 0) == 0


def test_a_server_that_would_throw_jobs_away_is_refused():
    server = Redis(program("redis-server", "valkey-server"))
    with server.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
    store = open_store(server.url)
    with pytest.raises(StoreRefused, match="noeviction"):
        store.enqueue([new_job()])
    with server.client() as client:
        client.config_set("maxmemory-policy", "noeviction")
    put(store, new_job())
    store.close()
    server.server.remove()


def test_a_first_look_whose_answer_is_lost_leaves_nothing_unknown():
    server = Redis(program("redis-server", "valkey-server"))
    store = open_store(server.url, patience=0.1)
    with server.client() as client:
        client.client_pause(60_000, all=False)  # scripts wait, what only asks does not
        with pytest.raises(StoreUnavailable, match="nothing happened"):
            store.enqueue([new_job()])
        client.client_unpause()
    store.close()
    put(store, new_job())
    assert tally(store) == {"queued": 1}
    store.close()
    server.server.remove()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"appendonly": "yes", "appendfsync": "always"}, "durable"),
        ({"appendonly": "yes", "appendfsync": "everysec"}, "survives a crash of the server process"),
        ({"appendonly": "no"}, "not durable"),
    ],
)
def test_the_durability_of_redis_is_told(settings, word):
    server = Redis(program("redis-server", "valkey-server"))
    with server.client() as client:
        for name, value in settings.items():
            client.config_set(name, value)
    store = opened(server.url)
    assert store.durability().startswith(word)
    store.close()
    server.server.remove()
