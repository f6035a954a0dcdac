"""The engine's own limit: the very statements a store has sent, sent again in a bare loop.

A recording store writes down each statement with its parameters. The replay sends them to a fresh
database through the driver alone; what is left out is everything that is Millpond.
"""

import time
from collections.abc import Callable
from typing import Any

import apsw
import psycopg
import redis

from millpond.store.postgres.store import PostgresStore
from millpond.store.redis.connection import READS, Manner
from millpond.store.redis.scripts import script
from millpond.store.redis.store import RedisStore
from millpond.store.sql.query import Hint, LeaseClock
from millpond.store.sqlite.statements import statements
from millpond.store.sqlite.store import SQLiteStore

Step = tuple[str, Any, Any]  # what: begin, commit, one, many; then its text and parameters


class RecordingSQLite(SQLiteStore):
    """Writes down what it sends while `tape` is a list."""

    tape: list[Step] | None = None

    def write(self, make: Callable[[int], Any]) -> Any:
        if self.tape is None:
            return super().write(make)
        self.tape.append(("begin", None, None))
        value = super().write(make)
        self.tape.append(("commit", None, None))
        return value

    def _answer(self, connection: apsw.Connection, request: Any) -> list[Any]:
        if self.tape is not None and not isinstance(request, LeaseClock | Hint):
            for text, parameters, many in statements(request):
                self.tape.append(("many" if many else "one", text, parameters))
        return super()._answer(connection, request)


def replay_sqlite(store: SQLiteStore, tape: list[Step]) -> float:
    """Seconds that the statements take through apsw alone, on the store's file."""
    connection = store._open()
    execute, executemany = connection.execute, connection.executemany
    begin = time.perf_counter()
    for what, text, parameters in tape:
        if what == "one":
            list(execute(text, parameters))
        elif what == "many":
            list(executemany(text, parameters))
        elif what == "begin":
            execute("BEGIN IMMEDIATE")
        else:
            execute("COMMIT")
    return time.perf_counter() - begin


class RecordingPostgres(PostgresStore):
    """Writes down what it sends while `tape` is a list."""

    tape: list[Step] | None = None

    def write(self, make: Callable[[int], Any]) -> Any:
        if self.tape is None:
            return super().write(make)
        self.tape.append(("begin", None, None))
        value = super().write(make)
        self.tape.append(("commit", None, None))
        return value

    def _found(self, work: Any, request: Any) -> list[Any]:
        self._places.forget()  # places of rows are true in one database only
        return super()._found(work, request)

    def _said(self, request: Any) -> Any:
        text, parameters = super()._said(request)
        if self.tape is not None:
            self.tape.append(("one", text, parameters))
        return text, parameters


def replay_postgres(store: PostgresStore, tape: list[Step]) -> float:
    """Seconds that the statements take through psycopg alone."""
    with store._connection() as connection:
        cursor = psycopg.RawCursor(connection)
        begin = time.perf_counter()
        for what, text, parameters in tape:
            if what == "one":
                cursor.execute(text, parameters, prepare=True, binary=True)
                if cursor.description:
                    cursor.fetchall()
            else:
                connection.execute("BEGIN" if what == "begin" else "COMMIT")
        return time.perf_counter() - begin


class RecordingRedis(RedisStore):
    """Writes down what it sends while `tape` is a list."""

    tape: list[Step] | None = None

    def __init__(self, url: str) -> None:
        super().__init__(url)
        send = self._server.send

        def recording(*command: Any, manner: Manner = READS) -> Any:
            if self.tape is not None and command[0] in ("EVALSHA", "FCALL"):
                self.tape.append(("one", command, None))
            return send(*command, manner=manner)

        self._server.send = recording  # type: ignore[method-assign]


def replay_redis(store: RedisStore, tape: list[Step]) -> float:
    """Seconds that the same scripts take through redis-py alone."""
    store.counts()  # the namespace exists
    client = redis.Redis.from_url(store._server._address.driver_url)  # type: ignore[union-attr]
    for name in ("enqueue", "exchange", "renew"):
        client.script_load(script(name).source)
        if script(name).function:
            client.execute_command("FUNCTION", "LOAD", "REPLACE", script(name).library)
    begin = time.perf_counter()
    for _, command, _ in tape:
        client.execute_command(*command)
    return time.perf_counter() - begin
