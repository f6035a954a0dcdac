"""A store that goes back to an earlier moment, as after a power cut or a fail-over to a late replica."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import apsw
import psycopg

from tests.servers import postgres
from tests.servers import redis as redis_servers
from tests.stores.places import address_and_name, place


class Past(Protocol):
    """A store with a moment that it can go back to."""

    url: str

    def remember(self) -> None: ...
    def go_back(self) -> None: ...


class SQLitePast:
    """A file and a copy of it."""

    def __init__(self, folder: Path) -> None:
        self._file, self._copy = folder / "jobs.db", folder / "copy.db"
        self.url = f"sqlite:///{self._file}"

    def remember(self) -> None:
        _copy(self._file, self._copy)

    def go_back(self) -> None:
        _copy(self._copy, self._file)


def _copy(source: Path, target: Path) -> None:
    """By the library that the store uses: two in one process drop each other's locks."""
    with closing(apsw.Connection(str(source))) as here, closing(apsw.Connection(str(target))) as there:
        there.set_busy_timeout(30_000)
        with there.backup("main", here, "main") as backup:
            while not backup.done:
                with suppress(apsw.BusyError, apsw.LockedError):  # a node writes just now
                    backup.step(-1)


class PostgresPast:
    """Every table of a schema, and a copy of each in another schema."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address, self._schema = address_and_name(url)

    def remember(self) -> None:
        self._run(f"CREATE SCHEMA {self._schema}_past", "CREATE TABLE {1}.{2} AS TABLE {0}.{2}")

    def go_back(self) -> None:
        all_of_them = ", ".join(f"{self._schema}.{name}" for name in self._tables())
        self._run(
            f"TRUNCATE {all_of_them}",
            "INSERT INTO {0}.{2} OVERRIDING SYSTEM VALUE SELECT * FROM {1}.{2}",
        )
        postgres.drop(self._address, f"{self._schema}_past")

    def _tables(self) -> list[str]:
        with psycopg.connect(self._address) as connection:
            rows = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace "
                "AND relkind IN ('r', 'p') AND NOT relispartition",
                (self._schema,),
            ).fetchall()
        return [name for (name,) in rows]

    def _run(self, first: str, each: str) -> None:
        tables = self._tables()
        with psycopg.connect(self._address) as connection:
            connection.execute("SET LOCAL session_replication_role = replica")  # no trigger counts anything
            connection.execute(first.encode())
            for name in tables:
                connection.execute(each.format(self._schema, f"{self._schema}_past", name).encode())


class RedisPast:
    """A server of its own that is killed, and starts again from an older copy of its append-only file."""

    def __init__(self, folder: Path) -> None:
        self._server = redis_servers.Redis(redis_servers.program("redis-server", "valkey-server"))
        self._data = Path(self._server.server.folder) / "appendonlydir"
        self._copy = folder / "copy"
        self.url = self._server.url

    def remember(self) -> None:
        shutil.copytree(self._data, self._copy)

    def go_back(self, meanwhile: Callable[[], object] = list) -> None:
        self._server.stop(signal.SIGKILL)
        meanwhile()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)
        self._server.start()

    def close(self) -> None:
        self._server.stop(signal.SIGKILL)


@contextmanager
def store_with_a_past(name: str, folder: Path) -> Iterator[Past]:
    """An empty store of that sort."""
    if name == "sqlite":
        yield SQLitePast(folder)
    elif name == "postgres":
        with place(name, folder) as url:
            yield PostgresPast(url)
    else:
        past = RedisPast(folder)
        try:
            yield past
        finally:
            past.close()
