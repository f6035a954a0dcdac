"""Roles with few rights in PostgreSQL: what is enough, and what an error tells to grant."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from millpond.errors import StoreRefused
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Retention
from tests.stores.acting import Node, new_job, opened, put, tally
from tests.stores.roles import a_role
from tests.stores.schemas import make_older

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "choose-a-store.md"


@pytest.fixture
def role(postgres_url):
    with a_role(postgres_url, may="") as made:
        yield made


def test_a_role_makes_the_tables_in_a_schema_it_was_given(role):
    """As a database administrator hands it out: the role may create nothing in the database itself."""
    role.order("CREATE SCHEMA {schema} AUTHORIZATION {role}")
    store = PostgresStore(role.url)
    assert len(store.migrate()) == 1
    assert store.migrate() == []
    put(store, new_job())
    store.close()


def test_who_may_not_make_the_schema_reads_what_to_grant(role):
    store = PostgresStore(role.url)
    with pytest.raises(StoreRefused, match=rf"CREATE SCHEMA {role.schema} AUTHORIZATION {role.name}"):
        store.migrate()
    store.close()


def test_who_does_not_own_the_tables_reads_that_the_owner_migrates(postgres_url, role):
    make_older(postgres_url)
    role.order("GRANT USAGE ON SCHEMA {schema} TO {role}")
    role.order("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
    store = PostgresStore(role.url)
    with pytest.raises(StoreRefused, match="Run `millpond migrate` as the owner"):
        store.migrate()
    store.close()


def test_who_may_not_use_the_tables_reads_what_to_grant(postgres_url, role):
    opened(postgres_url).close()
    store = PostgresStore(role.url)
    for grant in ("", "GRANT USAGE ON SCHEMA {schema} TO {role}"):
        if grant:
            role.order(grant)
        for call in (lambda: store.enqueue([new_job()]), store.counts, lambda: store.renew("n1", "here")):
            with pytest.raises(StoreRefused, match=rf"GRANT .* TO {role.name}"):
                call()
    role.order("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    assert tally(store) == {}
    with pytest.raises(StoreRefused, match=rf"GRANT SELECT, INSERT.* TO {role.name}"):
        store.enqueue([new_job()])
    store.close()


def test_a_role_that_may_only_read_drops_no_day(postgres_url, role):
    """The functions for days work with the rights of their owner."""
    opened(postgres_url).close()
    role.order("GRANT USAGE ON SCHEMA {schema} TO {role}")
    role.order("GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    with psycopg.connect(role.url.partition("?")[0], autocommit=True) as reader:
        for call in ("drop_day(9000000000000000000)", "make_days(0, 400)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(f"SELECT {role.schema}.{call}".encode())
    store = PostgresStore(role.url)
    with pytest.raises(StoreRefused, match=rf"GRANT EXECUTE .* TO {role.name}"):
        store.prune(Retention())
    store.close()


def test_a_joined_transaction_without_rights_reads_what_to_grant(postgres_url, role):
    store = opened(postgres_url)
    with psycopg.connect(role.url.partition("?")[0]) as connection:
        with pytest.raises(StoreRefused, match=rf"GRANT .* TO {role.name}"):
            store.enqueue([new_job()], transaction=connection)
        connection.rollback()
    store.close()


def test_the_documented_grants_are_enough_also_for_tables_of_later_versions(postgres_url, role):
    store = opened(postgres_url)
    grants = re.search(r"```\n(GRANT USAGE.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert grants is not None
    text = grants.group(1)
    for line in text.replace("SCHEMA millpond", "SCHEMA {schema}").replace(" shop", " {role}").splitlines():
        role.order(line)
    role.order("CREATE TABLE {schema}.later (x int)")
    small: Any = PostgresStore(role.url)
    put(small, new_job())
    Node(small).run()
    assert tally(store) == {"completed": 1}
    small.prune(Retention())
    with psycopg.connect(role.url.partition("?")[0]) as connection:
        connection.execute(f"INSERT INTO {role.schema}.later VALUES (1)".encode())
        connection.rollback()
    for handle in (store, small):
        handle.close()
