"""What keeps a PostgreSQL server from removing dead rows: seen by the store, told by nodes and the check."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import psycopg
import pytest

from millpond import App
from millpond.node.node import Node
from millpond.node.observability.events import CleanupHeldBack
from millpond.node.observability.wording import sentence_of
from millpond.rules.store import dead_rows
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Filter
from tests.servers.postgres import Postgres
from tests.stores.acting import opened, put_many
from tests.stores.places import address_and_name
from tests.stores.roles import a_role

LIMIT = 30
SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1"
NAME = "a slow report"


@pytest.fixture
def session(postgres_url):
    """A session of a user's."""
    address, _ = address_and_name(postgres_url)
    with psycopg.connect(address, application_name=NAME, autocommit=True) as connection:
        yield connection


@pytest.fixture
def shared(postgres_url):
    store: Any = opened(postgres_url)
    yield store
    store.close()


def of(store, session):
    """What this session holds back."""
    return [one for one in store.holdbacks() if f"of process {session.info.backend_pid} " in one.name]


@pytest.mark.parametrize("begin", [SNAPSHOT, b"BEGIN; CREATE TEMPORARY TABLE made (x int)"])
def test_a_transaction_with_a_snapshot_or_an_id_of_its_own_holds_back(shared, session, begin):
    assert of(shared, session) == []
    session.execute(begin)
    (found,) = of(shared, session)
    assert found.kind == "transaction"
    assert NAME in found.name
    assert found.age >= 0
    session.execute(b"ROLLBACK")
    assert of(shared, session) == []


def test_one_that_is_open_and_has_neither_holds_nothing_back(shared, session):
    session.execute(b"BEGIN; SELECT 1")
    assert of(shared, session) == []


def test_dead_rows_stay_for_as_long_as_it_is_told(shared, session):
    """What is told is what the server obeys: the rows go when it is over."""
    session.execute(SNAPSHOT)
    put_many(shared, 3)
    shared.cancel(Filter())
    with psycopg.connect(session.info.dsn, autocommit=True) as admin:
        assert size_after_vacuum(admin, shared) > 0
        assert of(shared, session)
        session.execute(b"ROLLBACK")
        assert size_after_vacuum(admin, shared) == 0
    assert of(shared, session) == []


def size_after_vacuum(admin, store):
    """Of the table of jobs, of which none is left: nothing, once the dead rows are gone."""
    admin.execute(f"VACUUM {store.schema}.jobs".encode())
    return admin.execute(f"SELECT pg_relation_size('{store.schema}.jobs')".encode()).fetchone()[0]


def test_a_role_that_sees_no_times_of_others_sees_the_transaction(postgres_url, shared, session):
    with a_role(postgres_url, may="") as role:
        role.order("GRANT USAGE ON SCHEMA {schema} TO {role}")
        role.order("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        session.execute(SNAPSHOT)
        store = PostgresStore(role.url)
        (found,) = of(store, session)
        assert (found.kind, found.age) == ("transaction", None)
        store.close()


def test_a_prepared_transaction_is_seen_until_it_is_ended():
    server = Postgres(fast=True, settings={"max_prepared_transactions": "5"})
    try:
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(b"CREATE TABLE made (x int)")
            admin.execute(b"BEGIN; INSERT INTO made VALUES (1); PREPARE TRANSACTION 'half'")
            store: Any = opened(server.url)
            (found,) = [one for one in store.holdbacks() if one.kind == "prepared transaction"]
            assert found.name == "'half'"
            assert found.age >= 0
            admin.execute(b"ROLLBACK PREPARED 'half'")
            assert [one for one in store.holdbacks() if one.kind == "prepared transaction"] == []
            store.close()
    finally:
        server.server.remove()


def test_a_node_tells_of_an_old_transaction_with_its_age_and_a_cure(
    postgres_url, shared, session, monkeypatch
):
    monkeypatch.setattr(dead_rows, "OLD", 0.0)
    session.execute(SNAPSHOT)
    app = App(postgres_url)
    app.pool("elsewhere")
    node = Node(app)
    heard: SimpleQueue[Any] = SimpleQueue()
    node.subscribe(heard.put, [CleanupHeldBack])
    with node:
        found = heard.get(timeout=LIMIT)
    assert found.kind == "transaction"
    assert "idle_in_transaction_session_timeout" in sentence_of(found)
    assert found.age >= 0
    app.store.close()
