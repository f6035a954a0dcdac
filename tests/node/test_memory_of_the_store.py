"""A node on a Redis whose memory becomes short: it is told, and what may be deleted is deleted at once."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any, cast

import pytest

from millpond import App
from millpond.node.node import Node
from millpond.node.observability.events import NodeRescued, StoreFilling
from millpond.node.observability.wording import sentence_of
from millpond.store.protocol import Filter, Retention
from tests.servers.redis import Redis, program
from tests.stores.acting import AnyStore, put_many
from tests.stores.acting import Node as Hand

LIMIT = 30


@pytest.fixture
def server():
    server = Redis(program("redis-server", "valkey-server"))
    yield server
    server.server.remove()


def limit_to(server, share):
    """Let the memory that is used be about this share of what is allowed, whatever connections take."""
    with server.client() as client:
        for number in range(256):
            client.set(f"filler {number}", bytes(256 * 1024))
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] / share))


def heard_of(app, kind, **options):
    """What a node of this app says of that kind, from its start."""
    app.pool("elsewhere")
    node = Node(app, **options)
    heard: SimpleQueue[Any] = SimpleQueue()
    node.subscribe(heard.put, [kind])
    return node, heard


@pytest.mark.parametrize(("share", "is_pruned"), [(0.6, False), (0.9, True)])
def test_a_node_warns_of_short_memory_and_prunes_before_its_time(server, share, is_pruned):
    app = App(server.url)
    hand = Hand(cast("AnyStore", app.store))
    put_many(app.store, 3)
    hand.settle(*hand.claim())
    limit_to(server, share)
    node, heard = heard_of(app, StoreFilling, retention=Retention(completed=0.0))
    with node:
        found = heard.get(timeout=LIMIT)
        assert found.share == pytest.approx(share, abs=0.1)
        assert "maxmemory" in sentence_of(found)
        while is_pruned and app.store.search(Filter()).jobs:
            pass
        assert bool(app.store.search(Filter()).jobs) is not is_pruned
    app.store.close()


def test_of_each_dead_node_its_own_number_of_jobs_is_told(app):
    hands = [Hand(app.store, name, "gone", lease=0.001) for name in ("one", "two", "three")]
    put_many(app.store, 4, queue="q")
    for hand, number in zip(hands, (1, 0, 3), strict=True):
        hand.claim(number, "q")
    node, heard = heard_of(app, NodeRescued, lease=1.0)
    with node:
        found = dict(heard.get(timeout=LIMIT) for _ in hands)
    assert found == {"one": 1, "two": 0, "three": 3}
