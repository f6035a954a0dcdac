"""Fixtures of the store tests: a new store of each sort, its clock stopped, and URLs to open twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from millpond.store.postgres.store import PostgresStore
from tests.stores.acting import AnyStore, Node, opened
from tests.stores.places import SHARED, STORES, VARIANTS, address_and_name, place


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyStore]:
    """A store with nothing in it, at a time that stands still."""
    with place(request.param, tmp_path) as url:
        yield from _in(url)


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AnyStore]:
    """The same on a server that differs from the four."""
    with place(request.param, tmp_path) as url:
        yield from _in(url)


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store with nothing in it, which several handles and processes may open."""
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def postgres_url(tmp_path: Path) -> Iterator[str]:
    with place("postgres", tmp_path) as found:
        yield found


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    with place("redis", tmp_path) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def sql_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A store of SQL, of either sort, whose time goes on."""
    with place(request.param, tmp_path) as url:
        store = opened(url)
        yield store
        store.close()


@pytest.fixture
def shared(postgres_url: str) -> Iterator[Any]:
    """A store on PostgreSQL whose every wait would soon fail the test."""
    store = PostgresStore(postgres_url, patience=3.0)
    store.migrate()
    yield store
    store.close()


@pytest.fixture
def other(postgres_url: str) -> Iterator[Any]:
    """A connection of a user's, in a transaction that stays open until the test ends it."""
    address, _ = address_and_name(postgres_url)
    with psycopg.connect(address) as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def open_at() -> Iterator[Callable[[str], AnyStore]]:
    """Open stores that are closed when the test ends."""
    made: list[AnyStore] = []

    def open_one(url: str) -> AnyStore:
        made.append(opened(url))
        return made[-1]

    yield open_one
    for store in made:
        store.close()


@pytest.fixture
def node(store: AnyStore) -> Node:
    """A node with a lease on the store."""
    return Node(store)


def _in(url: str) -> Iterator[AnyStore]:
    store = opened(url)
    store.clock.freeze()
    yield store
    store.close()
