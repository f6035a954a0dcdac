"""Stores with nothing in them, one after another and cheaply: a new one for every example."""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from millpond.store.open import open_store
from millpond.store.sqlite.store import SQLiteStore
from tests.servers import postgres, redis
from tests.stores.places import place

Make = Callable[[], Any]
STORES = ("memory", "sqlite", "postgres", "redis")
# DELETE, not TRUNCATE: that makes new files, and takes longer than all the steps of an example.
EMPTY = """
SELECT string_agg(format('DELETE FROM %%I.%%I', schemaname, tablename), '; ')
FROM pg_tables WHERE schemaname = %s AND tablename <> 'meta'
"""


@contextmanager
def worlds(name: str, folder: Path) -> Iterator[Make]:
    """How to get the next empty store of this kind."""
    if name == "postgres":
        yield from _emptied_schema(postgres.with_schema(_fast_postgres(), f"m{uuid.uuid4().hex[:16]}"))
    elif name == "redis":
        with place("redis", folder) as url:
            numbers = itertools.count()
            yield from _one_by_one(lambda: _migrated(f"{url}x{next(numbers)}"))
    elif name == "sqlite":
        with _quick(folder) as quick:
            yield from _one_by_one(lambda: _new_file(quick / "jobs.db"))
    else:
        yield from _one_by_one(lambda: SQLiteStore(":memory:"))


def _one_by_one(make: Make) -> Iterator[Make]:
    """Close each store before the next one is made."""
    made: list[Any] = []

    def next_one() -> Any:
        if made:
            made.pop().close()
        made.append(make())
        return made[-1]

    yield next_one
    if made:
        made.pop().close()


@cache
def _fast_postgres() -> str:
    """A server that need not survive its machine: what is proved with it is what it answers."""
    return os.environ.get(postgres.GIVEN) or postgres.Postgres(fast=True).url


def _migrated(url: str) -> Any:
    store: Any = open_store(url)
    store.migrate()
    return store


@contextmanager
def _quick(folder: Path) -> Iterator[Path]:
    """A folder in memory if there is one, for the same reason."""
    if not os.access("/dev/shm", os.W_OK):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="millpond-proof-", dir="/dev/shm") as quick:
        yield Path(quick)


def _new_file(path: Path) -> SQLiteStore:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    return SQLiteStore(str(path))


def _emptied_schema(url: str) -> Iterator[Make]:
    store = _migrated(url)
    with psycopg.connect(url.split("?", maxsplit=1)[0], autocommit=True) as connection:
        ((delete_all,),) = connection.execute(EMPTY, (store.schema,)).fetchall()

        def empty() -> Any:
            connection.execute(delete_all)
            return store

        yield empty
        store.close()
        postgres.drop(url.split("?", maxsplit=1)[0], store.schema)


class Server:
    """A server of a test's own, to be stopped and started; orderly or as a crash would."""

    def __init__(self, name: str) -> None:
        if name == "postgres":
            self.process: Any = postgres.Postgres()
            self.url = postgres.with_schema(self.process.url, "crowd")
        else:
            self.process = redis.Redis(redis.program("redis-server", "valkey-server"), fsync="always")
            self.url = f"{self.process.url}?namespace=crowd"

    def stop(self, how: str) -> None:
        if how == "orderly":
            self.process.stop()
        else:
            self.process.stop(signal.SIGQUIT if "postgres" in self.url else signal.SIGKILL)
