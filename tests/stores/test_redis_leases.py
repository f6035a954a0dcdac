"""Leases on Redis when the server was away: a living node is never taken for dead because of it."""

from __future__ import annotations

import pytest

from millpond.store.protocol import LEASE
from tests.stores.acting import Node, opened, put_many, travel


@pytest.fixture
def redis_store(redis_url):
    store = opened(redis_url)
    store.clock.freeze()
    yield store
    store.close()


def two_nodes_before_an_outage(store):
    """Both renewed for longer than a lease; one did so a second before the other."""
    first, last = Node(store, "first", "here"), Node(store, "last", "there")
    put_many(store, 2)
    first.claim(2)
    for _ in range(5):
        travel(store, LEASE / 3 - 1)
        first.renew()
        travel(store, 1)
        last.renew()
    return first, last


def test_who_renewed_last_before_an_outage_rescues_nobody_after_it(redis_store):
    first, last = two_nodes_before_an_outage(redis_store)
    travel(redis_store, LEASE - 0.5)  # away: the first has lapsed by half a second, the last has not
    last.renew()
    assert redis_store.rescue("last").nodes == ()
    first.renew()
    assert len(redis_store.held("first").jobs) == 2


def test_who_asks_before_renewing_after_an_outage_rescues_nobody(redis_store):
    two_nodes_before_an_outage(redis_store)
    travel(redis_store, LEASE - 0.5)
    assert redis_store.rescue("last").nodes == ()


def test_after_an_outage_whoever_is_dead_is_rescued_a_lease_later(redis_store):
    _, last = two_nodes_before_an_outage(redis_store)
    travel(redis_store, LEASE - 0.5)
    last.renew()
    for _ in range(3):
        travel(redis_store, LEASE / 3)
        last.renew()
    assert redis_store.rescue("last").nodes == ("first",)
