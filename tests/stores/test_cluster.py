"""A Redis Cluster whose nodes die: any node ever learnt, or named by the URL, leads to the rest."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest
import redis
from redis.crc import key_slot

from millpond.errors import OptionError, OutcomeUnknown, StoreUnavailable
from millpond.store.open import open_store
from millpond.store.redis.store import RedisStore
from tests.servers.redis import SLOTS, Cluster, program
from tests.stores.acting import new_job, opened, put, tally

SECONDS = 30.0  # within which a cluster has elected another master


@pytest.fixture
def cluster():
    """Three masters and a replica of the first; a slot without a master stops none of the others."""
    options = ("--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1000")
    made = Cluster(program("redis-server", "valkey-server"), 3, *options)
    yield made
    made.remove()


def name_on(number: int, size: int = 3) -> str:
    """A namespace whose keys the master of this number has."""
    names = (f"n{place}" for place in range(1000))
    return next(name for name in names if key_slot(name.encode()) * size // SLOTS == number)


def url_of(cluster: Cluster, *numbers: int, namespace: str) -> str:
    hosts = ",".join(f"127.0.0.1:{cluster.nodes[number].server.port}" for number in numbers)
    return f"redis://{hosts}/0?cluster=true&namespace={namespace}"


def eventually(act: Callable[[], object]) -> None:
    """Try again while the store is away, as a program does."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            act()
        except (StoreUnavailable, OutcomeUnknown):
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.mark.parametrize("given", [False, True], ids=["by a URL", "by a client"])
def test_enqueueing_goes_on_when_the_host_of_the_url_dies_and_its_replica_takes_over(cluster, given):
    cluster.add_replica(0)
    url = url_of(cluster, 0, namespace=name_on(0))
    store = (
        RedisStore.from_client(redis.RedisCluster("127.0.0.1", cluster.nodes[0].server.port), name_on(0))
        if given
        else opened(url)
    )
    put(store, new_job())
    cluster.copied(0)
    cluster.nodes[0].stop(signal.SIGKILL)
    job = new_job()
    eventually(lambda: store.enqueue([job]))
    assert tally(store) == {"queued": 2}
    store.close()


def test_a_node_that_restarts_is_found_though_the_host_of_the_url_is_dead(cluster):
    store = opened(url_of(cluster, 0, namespace=name_on(1)))
    put(store, new_job())
    cluster.nodes[0].stop(signal.SIGKILL)
    cluster.nodes[1].stop()
    with pytest.raises(StoreUnavailable):
        store.enqueue([new_job()])
    cluster.nodes[1].start()
    eventually(lambda: store.enqueue([new_job()]))
    store.close()


def test_a_process_that_starts_while_a_host_of_its_url_is_dead_asks_the_next_one(cluster):
    cluster.nodes[0].stop(signal.SIGKILL)
    store = open_store(url_of(cluster, 0, 1, namespace=name_on(2)))
    eventually(lambda: store.enqueue([new_job()]))
    assert tally(store) == {"queued": 1}
    store.close()


def test_a_url_with_several_hosts_shows_each_and_no_password():
    store = open_store("redis://app:secret@a:7000,b,[::1]:7001/0?cluster=true")
    assert store.url == "redis://app@a:7000,b,[::1]:7001/0?cluster=true"


def test_several_hosts_are_a_cluster_or_a_mistake():
    with pytest.raises(OptionError, match="cluster"):
        open_store("redis://a:7000,b:7000/0")
    for url in ("redis://a:7000,/0?cluster=true", "redis://a:7000,b:x/0?cluster=true"):
        with pytest.raises(OptionError):
            open_store(url)
