"""Redis functions: loaded when they are missing, done without where they are not to be had."""

from __future__ import annotations

import pytest
import redis

from tests.servers.redis import Redis, program
from tests.stores.acting import Node, opened, put_many, tally


@pytest.fixture
def server():
    """A server of this test alone."""
    server = Redis(program("redis-server", "valkey-server"))
    yield server
    server.server.remove()


def runs_jobs(store):
    put_many(store, 3)
    node = Node(store)
    node.settle(*node.claim())
    assert tally(store) == {"completed": 3}


def test_functions_that_somebody_has_flushed_are_loaded_again(server):
    store = opened(server.url)
    put_many(store, 3)
    with redis.Redis.from_url(server.url) as client:
        before = len(client.function_list())
        client.function_flush()
        node = Node(store)
        node.settle(*node.claim())
        put_many(store, 1)
        assert len(client.function_list()) == 2 > before == 1
    assert tally(store) == {"completed": 3, "queued": 1}
    store.close()


@pytest.mark.parametrize("forbidden", ["fcall", "function"])
def test_without_the_right_to_functions_plain_scripts_do(server, forbidden):
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", f"-{forbidden}")
        store = opened(server.url.replace("redis://", "redis://app:secret@"))
        runs_jobs(store)
        assert client.function_list() == []
    store.close()


def test_a_server_that_knows_no_functions_gets_plain_scripts():
    server = Redis(
        program("redis-server", "valkey-server"),
        "--rename-command",
        "FCALL",
        "",
        "--rename-command",
        "FUNCTION",
        "",
    )
    store = opened(server.url)
    runs_jobs(store)
    store.close()
    server.server.remove()
