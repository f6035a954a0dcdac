"""Jobs stored in the caller's own transaction, on the caller's connection: sync or async.

The caller's connection has the caller's settings: how rows are made, which statements are prepared, which
snapshot is seen. So every cursor here makes its own rows, and prepares as the caller wants it. Only an
enqueue can join: it looks at no head of an index and asks for no lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import tuple_row

from millpond.errors import StoreRefused
from millpond.job import Enqueued, NewJob
from millpond.store.clock import ServerClock
from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.errors import forbidden
from millpond.store.postgres.ids import read_ids_as_text
from millpond.store.postgres.notify import Notifier
from millpond.store.postgres.statements import LEFT_OUT, THE_CALLERS, Names, said
from millpond.store.postgres.url import PostgresAddress
from millpond.store.sql import enqueue
from millpond.store.sql.job_counts import gathered
from millpond.store.sql.query import Hint, LeaseClock, Many, Query, Row, Steps
from millpond.store.versions import Versions

T = TypeVar("T")
LEVEL, FRESH = "SHOW transaction_isolation", [("read committed",)]  # each statement sees the latest
UNDEFINED = (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)


class JoinedCalls:
    """The calls of one store that join a transaction. `connection` lends one of the store's own, for what the
    caller's cannot show: the time, the version of the schema, a job that came after its snapshot."""

    def __init__(
        self,
        address: PostgresAddress,
        clock: ServerClock,
        versions: Versions,
        notifier: Notifier,
        *,
        connection: Callable[[], AbstractContextManager[PatientConnection]],
        ask_version: Callable[[], None],
    ) -> None:
        self._url, self._schema = address.shown, address.schema
        self._clock, self._versions, self._notifier = clock, versions, notifier
        self._connection, self._ask_version = connection, ask_version
        self._ours = Names(self._schema)
        self._callers = Names(self._schema, THE_CALLERS)

    # --- sync -------------------------------------------------------------------------------------------
    def run(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb in the transaction of a connection."""
        if isinstance(transaction, AsyncConnection):
            raise StoreRefused("an async connection can only be joined by `await task.aenqueue(...)`")
        if not isinstance(transaction, Connection):
            raise StoreRefused(_wrong_connection("Connection", transaction))
        self._touch()
        hints: set[str] = set()
        cursor = psycopg.RawCursor(transaction, row_factory=tuple_row)
        read_ids_as_text(cursor)
        try:
            if _begins_by_itself(transaction):
                cursor.execute("SELECT")
            with transaction.transaction():  # a savepoint: all or none, whatever the caller does
                value = self._drive(cursor, make(self._clock.now()), hints)
        except UNDEFINED as error:
            self._refuse_changed()
            raise StoreRefused(f"this connection is not to {self._url}: {error}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise forbidden(self._url, self._schema, transaction.info.user, error) from error
        self._notifier.announce_later(hints)
        return value

    def _drive(self, cursor: psycopg.RawCursor[Row], steps: Steps[T], hints: set[str]) -> T:
        """Answer each request of a verb until it returns; the queues it names go to `hints`."""
        steps = gathered(steps)
        try:
            request = next(steps)
            while True:
                if isinstance(request, Hint):
                    hints |= request.queues
                    request = steps.send([])
                else:
                    request = steps.send(self._answer(cursor, request))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _answer(self, cursor: psycopg.RawCursor[Row], request: Query | Many | LeaseClock) -> list[Row]:
        if not isinstance(request, LeaseClock) and request.name in LEFT_OUT:
            return []
        text, parameters = said(request, self._callers)
        cursor.execute(text, parameters, binary=True)
        rows = cursor.fetchall() if cursor.description else []
        if _is_known(request) and cursor.execute(LEVEL).fetchall() != FRESH:
            rows += self._known_now(request)
        return rows

    # --- async ------------------------------------------------------------------------------------------
    async def aenqueue(self, jobs: Sequence[NewJob], transaction: AsyncConnection[Any]) -> list[Enqueued]:
        """Store jobs in the transaction of an async connection."""
        if not isinstance(transaction, AsyncConnection):
            raise StoreRefused(_wrong_connection("AsyncConnection", transaction))
        if self._clock.is_old() or self._versions.seen is None or self._versions.is_due():
            await asyncio.to_thread(self._touch)
        now = self._clock.now()
        is_plain = enqueue.is_plain(jobs)
        made = enqueue.enqueue_at_once(jobs, now) if is_plain else enqueue.enqueue(jobs, now, parks=False)
        cursor = psycopg.AsyncRawCursor(transaction, row_factory=tuple_row)
        read_ids_as_text(cursor)
        try:
            if _begins_by_itself(transaction):
                await cursor.execute("SELECT")
            async with transaction.transaction():  # a savepoint: all or none, whatever the caller does
                return await self._adrive(cursor, gathered(made))
        except UNDEFINED as error:
            await asyncio.to_thread(self._refuse_changed)
            raise StoreRefused(f"this connection is not to {self._url}: {error}") from error
        except psycopg.errors.InsufficientPrivilege as error:
            raise forbidden(self._url, self._schema, transaction.info.user, error) from error

    async def _adrive(self, cursor: psycopg.AsyncRawCursor[Any], steps: Steps[T]) -> T:
        hints: set[str] = set()
        try:
            request = next(steps)
            while True:
                if isinstance(request, Hint):
                    hints |= request.queues
                    request = steps.send([])
                else:
                    request = steps.send(await self._aanswer(cursor, request))
        except StopIteration as end:
            self._notifier.announce_later(hints)
            return end.value  # type: ignore[no-any-return]

    async def _aanswer(
        self, cursor: psycopg.AsyncRawCursor[Any], request: Query | Many | LeaseClock
    ) -> list[Row]:
        if not isinstance(request, LeaseClock) and request.name in LEFT_OUT:
            return []
        text, parameters = said(request, self._callers)
        await cursor.execute(text, parameters)
        rows = await cursor.fetchall() if cursor.description else []
        if _is_known(request):
            await cursor.execute(LEVEL)
            if await cursor.fetchall() != FRESH:
                rows += await asyncio.to_thread(self._known_now, request)
        return rows

    # --- on a connection of the store ---------------------------------------------------------------------
    def _touch(self) -> None:
        """Before something new is stored: the time, and whether this code may still work on the schema."""
        with self._connection():
            pass
        if self._versions.is_due():
            self._ask_version()
        self._versions.refuse()

    def _refuse_changed(self) -> None:
        """A table or a column is missing: is it because the schema is another version's by now?"""
        self._ask_version()
        self._versions.refuse()

    def _known_now(self, request: Query | Many | LeaseClock) -> list[Row]:
        """The caller's snapshot may be older than a job that has come and ended: we look ourselves."""
        text, parameters = said(request, self._ours)
        with self._connection() as connection:
            return psycopg.RawCursor(connection).execute(text, parameters).fetchall()


def _is_known(request: Query | Many | LeaseClock) -> bool:
    """Does it ask which ids there are already?"""
    return isinstance(request, Query) and request.name == "known"


def _begins_by_itself(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Would its next statement begin the caller's transaction? Then it must, before we set a savepoint."""
    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    return idle and not connection.autocommit


def _wrong_connection(wanted: str, given: object) -> str:
    return (
        f"transaction= takes a psycopg {wanted} here, not {type(given).__module__}.{type(given).__qualname__}"
    )
