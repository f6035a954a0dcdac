"""Servers that restart, are away, or are set up so that they would lose jobs."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import psycopg
import pytest
import redis

from millpond.errors import OutcomeUnknown, StoreRefused, StoreUnavailable
from millpond.store.open import open_store
from millpond.store.protocol import Retention
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
    for _ in range(3):
        travel(store, 10)
        lucky.renew()
    travel(store, 1)
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
        ({"appendonly": "yes", "appendfsync": "everysec"}, "usually survives a crash of the server process"),
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


@pytest.fixture
def replicated():
    """A PostgreSQL that was told of synchronous standbys only after its tables were made: there are none."""
    server = Postgres()
    opened(server.url).close()
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        admin.execute("SELECT pg_reload_conf()")
        while admin.execute("SHOW synchronous_standby_names").fetchone() == ("",):
            pass
    yield server.url
    server.server.remove()


def test_the_durability_of_postgres_counts_its_standbys(replicated):
    for commit, words in {
        "on": "durable: fsync on, synchronous_commit on; survives a fail-over to a synchronous standby",
        "remote_apply": "survives a fail-over to a synchronous standby",
        "remote_write": "unless the standby's machine crashes as well",
        "local": "durable: fsync on, synchronous_commit local; a fail-over to a standby may lose",
        "off": "survives a crash of the server process, not of its machine",
    }.items():
        store = open_store(f"{replicated}?options=-c%20synchronous_commit%3D{commit}")
        assert words in store.durability()
        store.close()


def test_a_durable_postgres_without_synchronous_standbys_tells_what_a_fail_over_may_take():
    server = Postgres()
    store = opened(server.url)
    assert store.durability().startswith("durable: fsync on, synchronous_commit on; a fail-over")
    assert "synchronous_standby_names is empty" in store.durability()
    store.close()
    server.server.remove()


def test_durable_is_not_said_of_a_redis_that_answers_before_its_replicas():
    """A fail-over may lose what was not copied, also with `appendfsync always`."""
    program_ = program("redis-server", "valkey-server")
    server = Redis(program_, fsync="always")
    replica = Redis(program_, "--replicaof", "127.0.0.1", str(server.server.port))
    with server.client() as client:
        while not client.info("replication").get("connected_slaves"):
            pass
    store = opened(server.url)
    assert "fail-over" in store.durability()
    store.close()
    for each in (server, replica):
        each.server.remove()


RIGHTS = Path(__file__).parents[2] / "docs" / "howto" / "choose-a-store.md"


def test_the_rights_of_the_docs_are_enough_and_spare_the_others():
    """The line of `docs/howto/choose-a-store.md`, word for word."""
    (line,) = re.findall(r"^ACL SETUSER .*$", RIGHTS.read_text(encoding="utf-8"), re.MULTILINE)
    server = Redis(program("redis-server", "valkey-server"))
    with server.client() as client:
        client.execute_command(*line.split())
    store = opened(server.url.replace("redis://", "redis://shop:password@") + "?namespace=shop")
    node = Node(store)
    put_many(store, 3)
    store.wait(["default"], 0.01)
    node.settle(*node.claim())
    store.prune(Retention(completed=0.0))
    assert store.durability().startswith("usually survives")
    with redis.Redis.from_url(server.url, username="shop", password="password") as user:
        for command in ("FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "KEYS *", "SHUTDOWN", "CONFIG SET maxmemory 1"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                user.execute_command(*command.split())
        with pytest.raises(redis.exceptions.NoPermissionError):
            user.set("{other}:schema", "1")
    store.close()
    server.server.remove()
