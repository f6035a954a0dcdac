"""PostgreSQL servers that change under a store: read-only, dark, migrated, behind a late pooler."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import psycopg
import pytest

from millpond.errors import OutcomeUnknown, StoreUnavailable
from millpond.store.postgres.store import PostgresStore
from millpond.store.sql.query import Query
from tests.proof_node.proxy import Proxy
from tests.servers import pgbouncer, postgres
from tests.servers.process import Missing
from tests.stores.acting import new_job, opened, put, put_many, tally
from tests.stores.places import address_and_name
from tests.stores.roles import a_role


@pytest.fixture
def role(postgres_url):
    opened(postgres_url).close()
    with a_role(postgres_url) as made:
        yield made


def several_idle(store, number=3):
    """Have the store keep so many connections of each kind."""
    for brisk in (False, True):
        with ExitStack() as stack:
            for _ in range(number):
                stack.enter_context(store._connection(brisk=brisk))


# --- read-only -------------------------------------------------------------------------------------------
def test_no_session_that_began_read_only_is_kept(role):
    role.set("default_transaction_read_only", "on")
    store = PostgresStore(role.url)
    several_idle(store)
    with pytest.raises(StoreUnavailable, match=r"read-only.*nothing happened"):
        store.enqueue([new_job()])
    role.reset("default_transaction_read_only")
    put_many(store, 3)
    for name in ("a", "b", "c"):
        store.renew(name, "here")
    assert tally(store) == {"queued": 3}
    store.close()


def test_a_transaction_on_a_read_only_server_is_unavailable_too(role):
    role.set("default_transaction_read_only", "on")
    store = PostgresStore(role.url)
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="nothing happened"):
            store.configure(queue="mail", paused=True)
    role.reset("default_transaction_read_only")
    store.configure(queue="mail", paused=True)
    store.close()


def test_another_store_of_the_process_leaves_the_read_only_server_too(role):
    """The node's heartbeat has a store of its own: what one has learned of the server, the other knows."""
    role.set("default_transaction_read_only", "on")
    store, other = PostgresStore(role.url), PostgresStore(role.url, patience=4.0)
    several_idle(store)
    with pytest.raises(StoreUnavailable):
        other.renew("n1", "here")
    role.reset("default_transaction_read_only")
    put_many(store, 1)
    store.renew("n1", "here")
    store.close()
    other.close()


# --- ended and dark connections --------------------------------------------------------------------------
def test_after_one_dead_connection_no_other_is_tried(postgres_url):
    opened(postgres_url).close()
    with Proxy(postgres_url) as proxy:
        store, other = PostgresStore(proxy.url, patience=1.0), PostgresStore(proxy.url, patience=1.0)
        several_idle(store)
        several_idle(other)
        proxy.lose_all()
        with pytest.raises((StoreUnavailable, OutcomeUnknown)):
            store.enqueue([new_job()])
        for each in (store, other):
            for _ in range(3):
                each.counts()
                put(each, new_job())
        store.close()
        other.close()


def test_the_kernel_gives_up_a_silent_server_within_seconds(postgres_url):
    store = PostgresStore(postgres_url)
    store.migrate()
    with store._connection() as connection:
        asked = socket.socket(fileno=connection.fileno())
        numbers = [
            asked.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        idle = asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        asked.detach()
    assert 5000 <= numbers[0] <= 8000
    assert numbers[1:] == [3, 3]
    assert idle <= 10
    store.close()


def test_the_server_gives_up_a_client_that_vanished_within_a_minute(postgres_url):
    store = PostgresStore(postgres_url)
    store.migrate()
    for brisk in (False, True):
        with store._connection(brisk=brisk) as connection:
            assert keepalives_of(connection) == ["30", "10", "3"]
    assert keepalives_of(store._listener._listening()) == ["30", "10", "3"]
    store.close()


def keepalives_of(connection):
    return [
        connection.execute(f"SHOW tcp_keepalives_{name}".encode()).fetchall()[0][0]
        for name in ("idle", "interval", "count")
    ]


def test_a_host_that_does_not_answer_is_asked_once_and_then_last(postgres_url):
    opened(postgres_url).close()
    address, schema = address_and_name(postgres_url)
    port = address.rpartition(":")[2].partition("/")[0]
    with socket.create_server(("127.0.0.1", 0), backlog=50) as dark:
        both = f"127.0.0.1:{dark.getsockname()[1]},127.0.0.1:{port}"
        store = PostgresStore(f"postgresql://postgres@{both}/postgres?schema={schema}", patience=1.0)
        several_idle(store)
        put(store, new_job())
        assert asked(dark) == 1
        store.close()


def test_the_host_of_a_connection_that_died_is_tried_last(postgres_url):
    opened(postgres_url).close()
    address, schema = address_and_name(postgres_url)
    port = address.rpartition(":")[2].partition("/")[0]
    with Proxy(postgres_url) as proxy:
        first = proxy.url.rpartition(":")[2].partition("/")[0]
        both = f"127.0.0.1:{first},127.0.0.1:{port}"
        store = PostgresStore(f"postgresql://postgres@{both}/postgres?schema={schema}", patience=1.0)
        several_idle(store)
        proxy.fall_silent()
        with pytest.raises((StoreUnavailable, OutcomeUnknown)):
            store.enqueue([new_job()])
        with store._connection() as connection:
            assert str(connection.info.port) == port
        assert [place.port for place in store._connections.hosts.ordered()] == [port, first]
        store.close()


def asked(listener):
    """How many connections wait to be accepted."""
    listener.setblocking(False)
    number = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1


def test_a_session_that_an_administrator_ended_in_a_transaction_takes_the_idle_ones_along(postgres_url):
    store = PostgresStore(postgres_url)
    store.migrate()
    several_idle(store)
    before = store._connections.hosts.generation

    def ended(now):
        yield Query("write_queue", ("mail", True, False, None, now))
        with psycopg.connect(address_and_name(postgres_url)[0], autocommit=True) as admin:
            admin.execute(f"SELECT pg_terminate_backend(pid, 5000) {IN_A_TRANSACTION}".encode())
        yield Query("write_queue", ("mail", False, False, None, now))

    with pytest.raises(StoreUnavailable, match="nothing happened"):
        store.write(ended)
    assert store._connections.hosts.generation == before + 1
    put(store, new_job())
    assert tally(store) == {"queued": 1}
    store.close()


IN_A_TRANSACTION = "FROM pg_stat_activity WHERE state = 'idle in transaction'"


def test_a_process_that_slept_in_a_transaction_repeats_it_once(postgres_url):
    """The server has ended the session: 25P03, which the driver does not count among lost connections."""
    opened(postgres_url).close()
    store = PostgresStore(postgres_url, patience=1.0)
    tries = []

    def slow(now):
        tries.append(now)
        if len(tries) == 2:
            return
        yield Query("write_queue", ("mail", True, False, None, now))
        with psycopg.connect(address_and_name(postgres_url)[0], autocommit=True) as admin:
            while admin.execute(f"SELECT count(*) {IN_A_TRANSACTION}".encode()).fetchone() != (0,):
                pass
        yield Query("write_queue", ("mail", False, False, None, now))

    store.write(slow)
    assert len(tries) == 2
    tries.clear()
    with pytest.raises(StoreUnavailable, match="nothing happened"):
        store.write(slow, patient=True)
    store.configure(queue="mail", paused=True)
    store.close()


# --- plans and prepared statements -------------------------------------------------------------------------
def test_a_plan_that_a_migration_made_stale_costs_no_call(postgres_url):
    store = PostgresStore(postgres_url)
    store.migrate()
    store.record("d", b"x", 0)
    store.log("l", [b"a"])
    several_idle(store)
    for _ in range(3):
        store.record("d")
        store.log("l")
    address, schema = address_and_name(postgres_url)
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f"ALTER TABLE {schema}.documents ALTER COLUMN version TYPE integer".encode())
        admin.execute(f"ALTER TABLE {schema}.logs ALTER COLUMN number TYPE integer".encode())
    for _ in range(3):
        assert store.record("d").value == b"x"
        assert [entry.data for entry in store.log("l")] == [b"a"]
    assert store.retries["session"] > 0
    store.close()


@pytest.fixture
def pooler():
    """A pooler of this test's own: settings of a session that is not ours stay behind in it."""
    try:
        made = pgbouncer.PgBouncer(postgres.shared())
    except Missing as error:
        pytest.skip(str(error))
    yield made.url
    made.server.remove()


def test_a_pooler_that_hides_itself_costs_no_call(postgres_url, pooler):
    """It gives out the number of the server's process as its own: only a prepared statement of another
    client, under the name of ours, shows it."""
    opened(postgres_url).close()
    url = postgres.with_schema(pooler, address_and_name(postgres_url)[1])
    stores = [PostgresStore(url) for _ in range(2)]
    for store in stores:
        store._connections.pooled, store._connections.looks = False, False
    for _ in range(3):
        for store in stores:
            put(store, new_job(fresh=True), new_job(fresh=True))
            store.configure(queue="mail", paused=True)
            store.counts()
    assert tally(stores[0])["queued"] == 12
    for store in stores:
        assert store._connections.pooled == (store.retries["session"] > 0)
        store.close()


def test_a_pooler_that_comes_later_is_noticed_with_the_next_connection(postgres_url, pooler):
    store = PostgresStore(postgres_url)
    store.migrate()
    put(store, new_job())
    assert not store._connections.pooled
    store.close()
    later = PostgresStore(postgres.with_schema(pooler, address_and_name(postgres_url)[1]))
    store._connections.hosts = later._connections.hosts  # the name leads to a pooler now
    put(store, new_job())
    assert store._connections.pooled
    store.close()
