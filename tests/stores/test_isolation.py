"""What settings of PostgreSQL must not change: isolation, JIT; and transactions that have to be repeated."""

from __future__ import annotations

import logging
import threading

import psycopg
import pytest

from millpond.errors import StoreBusy, StoreUnavailable
from millpond.store.postgres.store import PostgresStore
from millpond.store.postgres.timeouts import bounds
from tests.stores.acting import opened
from tests.stores.places import address_and_name
from tests.stores.roles import a_role

WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = '{role}'"


@pytest.fixture
def role(postgres_url):
    store = opened(postgres_url)
    store.record("d", b"x", 0)
    store.configure(queue="mail", paused=True)
    store.close()
    with a_role(postgres_url) as made:
        yield made


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("table", ["documents", "queues"])
def test_a_change_that_was_waited_for_is_no_failure_whatever_the_roles_isolation(role, level, table):
    role.set("default_transaction_isolation", f"'{level}'")
    store = PostgresStore(role.url)
    calls = {
        "documents": lambda: store.record("d", b"y", 1),
        "queues": lambda: store.configure(queue="mail", paused=False),
    }
    failures: list[Exception] = []

    def change() -> None:
        try:
            calls[table]()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=change)
    with role.admin.transaction():
        role.order(f"UPDATE {{schema}}.{table} SET name = name")
        thread.start()
        while role.order(WAITS) != [(1,)]:
            role.order("SELECT pg_stat_clear_snapshot()")
    thread.join()
    assert failures == []
    assert store.retries.total() == 0
    store.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_transaction_through_a_pooler_has_its_own_isolation(role, level):
    """There no session is ours, and none keeps our settings."""
    role.set("default_transaction_isolation", f"'{level}'")
    with psycopg.connect(address_and_name(role.url)[0], autocommit=True) as connection:
        connection.execute(bounds().begin.encode())
        assert connection.execute("SHOW transaction_isolation").fetchall() == [("read committed",)]


def test_no_session_compiles_its_statements(role):
    """A forced generic plan is costed by the backlog: beyond 500,000 jobs each claim would be compiled."""
    store = PostgresStore(role.url)
    for brisk in (False, True):
        with store._connection(brisk=brisk) as connection:
            assert connection.execute("SHOW jit").fetchall() == [("off",)]
    store.close()
    with psycopg.connect(address_and_name(role.url)[0], autocommit=True) as pooled:
        pooled.execute(bounds().begin.encode())
        assert pooled.execute("SHOW jit").fetchall() == [("off",)]
        assert pooled.execute("SHOW transaction_isolation").fetchall() == [("read committed",)]


REFUSES = """
CREATE SEQUENCE {schema}.tries;
CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('{schema}.tries') <= TIMES THEN
        RAISE EXCEPTION 'crossed' USING ERRCODE = 'CODE';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON {schema}.documents FOR EACH ROW EXECUTE FUNCTION {schema}.refuse();
CREATE TRIGGER refuse BEFORE INSERT ON {schema}.logs FOR EACH ROW EXECUTE FUNCTION {schema}.refuse();
"""


@pytest.mark.parametrize(("code", "kind"), [("40001", "serialization"), ("40P01", "deadlock")])
@pytest.mark.parametrize("verb", ["record", "log"])
def test_what_the_server_ended_to_keep_order_is_repeated_counted_and_logged_once(
    role, caplog, code, kind, verb
):
    role.order(REFUSES.replace("TIMES", "2").replace("'CODE'", f"'{code}'"))
    store = PostgresStore(role.url)
    with caplog.at_level(logging.WARNING, "millpond"):
        store.record("e", b"x", 0) if verb == "record" else store.log("l", [b"a"])
    assert store.retries == {kind: 2}
    assert [record.levelname for record in caplog.records if kind in record.message] == ["WARNING"]
    store.close()


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_what_is_refused_again_and_again_is_busy_and_nothing_happened(role, code):
    role.order(REFUSES.replace("TIMES", "1000").replace("'CODE'", f"'{code}'"))
    store = PostgresStore(role.url)
    with pytest.raises(StoreBusy, match="nothing happened"):
        store.log("l", [b"a"])
    assert store.log("l") == []
    store.close()


@pytest.mark.parametrize("verb", ["record", "log"])
def test_an_error_that_leaves_the_session_open_means_that_nothing_happened(role, verb):
    """A full disk: the server refuses and goes on, so it cannot have committed."""
    role.order(REFUSES.replace("TIMES", "1").replace("'CODE'", "'53100'"))
    store = PostgresStore(role.url)
    calls = {"record": lambda: store.record("e", b"x", 0), "log": lambda: store.log("l", [b"a"])}
    with pytest.raises(StoreUnavailable, match="nothing happened"):
        calls[verb]()
    calls[verb]()
    store.close()


def test_a_real_deadlock_with_a_foreign_transaction_ends_by_itself(role):
    store = PostgresStore(role.url)
    thread = threading.Thread(target=store.log, args=("l", [b"ours"]))
    with role.admin.transaction(force_rollback=True):
        role.order("INSERT INTO {schema}.logs VALUES ('l', 1, 0, 'foreign')")
        thread.start()
        while role.order(WAITS) != [(1,)]:
            role.order("SELECT pg_stat_clear_snapshot()")
        role.order("SET LOCAL deadlock_timeout = '1h'")  # so that the server ends our step, not this one
        role.order("SELECT pg_advisory_xact_lock(hashtextextended('{schema}.' || 'l', 0))")
    thread.join()
    assert [entry.data for entry in store.log("l")] == [b"ours"]
    assert store.retries == {"deadlock": 1}
    store.close()


def test_two_handles_one_without_notifications_append_to_one_log(postgres_url):
    stores = [opened(postgres_url), opened(f"{postgres_url}&notify=off")]
    failures: list[Exception] = []

    def append(store) -> None:
        try:
            for _ in range(100):
                store.log("l", [b"x"])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=append, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert max(entry.number for entry in stores[0].log("l", limit=1000)) == 200
    for store in stores:
        store.close()
