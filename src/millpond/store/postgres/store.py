"""Jobs in PostgreSQL: short transactions, SKIP LOCKED, one round trip for a plain enqueue.

Times come from the server. Notifications are hints and can be off; a pooler between us and the server is
noticed, and then nothing relies on the session. A connection that breaks before COMMIT was sent means
that nothing happened; after it, OutcomeUnknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from millpond.errors import (
    OutcomeUnknown,
    SchemaOutdated,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from millpond.job import Enqueued, Job, NewJob
from millpond.rules.store.dead_rows import Holdback
from millpond.store.clock import ServerClock
from millpond.store.fork_hooks import watch_forks
from millpond.store.pages import total
from millpond.store.postgres import days, schema
from millpond.store.postgres.cleanup import holdbacks
from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.durability import SETTINGS, durability
from millpond.store.postgres.errors import (
    FORBIDDEN,
    MISSING,
    Slept,
    code,
    forbidden,
    may_not_migrate,
    meaning,
)
from millpond.store.postgres.floors import FLOORED, Floors
from millpond.store.postgres.joined import JoinedCalls
from millpond.store.postgres.listener import Listener
from millpond.store.postgres.notify import Notifier
from millpond.store.postgres.places import PLACED, Places
from millpond.store.postgres.pool import ConnectionPool
from millpond.store.postgres.retries import Retries
from millpond.store.postgres.schema import schema_of
from millpond.store.postgres.statements import LEFT_OUT, Names, said, text_of
from millpond.store.postgres.timeouts import bounds
from millpond.store.postgres.transaction import Statement, Statements, Transaction
from millpond.store.postgres.upgrade import PostgresUpgrade, violated
from millpond.store.postgres.url import PostgresAddress
from millpond.store.protocol import Claim, Document, Exchanged, Filter, Retention, Tick
from millpond.store.sql import admin, claim, documents, enqueue, leases, search
from millpond.store.sql.job_counts import counted, gathered
from millpond.store.sql.query import Hint, LeaseClock, Many, Query, Row, Steps
from millpond.store.sql.store import RelationalStore
from millpond.store.versions import Versions

T = TypeVar("T")


class PostgresStore(RelationalStore):
    """A store in a PostgreSQL database, for many machines."""

    enqueue_plain = staticmethod(enqueue.enqueue_at_once)
    shares_rows = True
    works_elsewhere = True  # an exchange is the server's work, and the driver's, without the interpreter

    def __init__(self, url: str, *, patience: float | None = None) -> None:
        self._options = PostgresAddress(url)
        self._bounds = bounds(patience)
        self.url = self._options.shown
        self.schema = self._options.schema
        self.clock = ServerClock()
        self._connections = ConnectionPool(self._options, self._bounds)
        self._retries = Retries(self.url)
        self.retries = self._retries.counts  # by kind: deadlock, serialization, session
        self.versions = Versions(schema.SCHEMA, f"schema {self.schema!r} of {self.url}")
        self._channel = f"millpond_{self.schema}"
        self._listener = Listener(self._connections, self._options, self._channel)
        self._names = Names(self.schema)
        self._floors = Floors()
        self._places = Places()
        self._notifier = Notifier(self._notify if self._options.notify else None)
        self._joined = JoinedCalls(
            self._options,
            self.clock,
            self.versions,
            self._notifier,
            connection=self._connection,
            ask_version=self.ask_version,
        )
        watch_forks(self)

    @property
    def hang_ups(self) -> int:
        """How often connections that lay idle, or those of another store here, proved to be closed."""
        return self._connections.hang_ups + self._connections.hosts.generation

    # --- verbs that differ ----------------------------------------------------------------------------
    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none; plain ones in one round trip."""
        if jobs and transaction is None and enqueue.is_plain(jobs) and self._is_direct():
            self.ask_now_and_then()
            return self._retries.run(lambda: self._at_once(lambda now: enqueue.enqueue_at_once(jobs, now)))
        return super().enqueue(jobs, transaction)

    def write_jobs(self, make: Callable[[int], Steps[T]]) -> T:
        """The same for jobs that are stored: they may be large, and long on their way."""
        return self.write(make, patient=True)

    def claim_alone(self, node: str, sequence: int, claims: Sequence[Claim]) -> Exchanged | None:
        """Claim and say nothing else, in one round trip where that can be."""
        if not (claim.is_usual(claims) and self._is_direct()):
            return None
        make = partial(claim.claim_at_once, node, sequence, claims)
        found = self._retries.run(lambda: self._at_once(make))
        if found is None:
            return None
        jobs, damaged = found
        return Exchanged((*jobs, *(self._claim_on(node, claims, jobs, damaged) if damaged else ())))

    def _claim_on(
        self, node: str, claims: Sequence[Claim], got: Sequence[Job], damaged: Sequence[str]
    ) -> list[Job]:
        """Bury those that cannot be read, and claim others in their place."""
        try:
            return self.write(lambda now: leases.claim_on(node, claim.rest(claims, got), damaged, now))
        except StoreError as error:  # but some are claimed already
            raise OutcomeUnknown(f"{self.url}: jobs were claimed, then: {error}") from error

    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        """Record ticks and enqueue their jobs, in one round trip where that can be."""
        if ticks and documents.is_plain(ticks) and self._is_direct():
            self.ask_now_and_then()
            return self._retries.run(lambda: self._at_once(lambda now: documents.plan_at_once(ticks, now)))
        return super().plan(ticks)

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document: one statement, one round trip."""
        if self._is_direct():
            make = partial(documents.record, name, value, version)
            return self._retries.run(lambda: self._at_once(lambda _: make(), changes=value is not None))
        return super().record(name, value, version)

    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked: one statement, one round trip."""
        if self._is_direct():
            return self._retries.run(lambda: self._at_once(lambda _: search.get(ids), changes=False))
        return super().get(ids)

    def prune(self, retention: Retention, chosen: Filter | None = None) -> int:
        """Delete what ended long ago, whole days at once, or ended jobs by choice."""
        return super().prune(retention, chosen) if chosen is not None else total(self._pruned(retention))

    def _pruned(self, retention: Retention) -> Iterator[int]:
        failed: StoreError | None = None
        try:
            yield from self._drop_days(retention)
        except (StoreBusy, StoreRefused) as error:  # this must not keep all else from being pruned
            failed = error
        # What is left: dead jobs, and those that have no table of their day
        yield from self._repeat(lambda now: admin.prune(days.whole_days(retention, now), now))
        if failed:
            raise failed

    def _drop_days(self, retention: Retention) -> Iterator[int]:
        self._make_days()
        behind = 0
        while found := self.write(partial(days.drop, retention, behind)):
            behind = found.first
            yield found.jobs

    def _make_days(self) -> None:
        """See to the tables of the next days. Where a transaction of a user that has looked at the history
        keeps them out, a later prune makes them: there is a week's time, and until then one table for all."""
        with suppress(StoreBusy):
            self.write(days.make)

    async def aenqueue(self, jobs: Sequence[NewJob], transaction: AsyncConnection[Any]) -> list[Enqueued]:
        """Store jobs in the transaction of an async connection."""
        return await self._joined.aenqueue(jobs, transaction)

    # --- driving ----------------------------------------------------------------------------------------
    def write(self, make: Callable[[int], Steps[T]], *, patient: bool = False) -> T:
        """Run a verb in a transaction of its own."""
        if not patient:
            with suppress(Slept):
                return self._retries.run(lambda: self._transaction(make))
        return self._retries.run(lambda: self._transaction(make, begin=self._bounds.patient))

    def read(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb that changes nothing, on one snapshot."""
        return self._retries.run(lambda: self._transaction(make, changes=False))

    def _transaction(
        self, make: Callable[[int], Steps[T]], *, changes: bool = True, begin: str | None = None
    ) -> T:
        hints: set[str] = set()
        with self._connection() as connection:
            if begin is None and self._connections.pooled:
                begin = self._bounds.begin  # a session of our own has its bounds
            work = Transaction(connection, prepare=self._connections.prepares(), begin=begin)
            try:
                value, count = self._drive(work, counted(make(self.clock.now())), hints)
                if changes:
                    work.commit(self._said(count) if count else None)
                else:
                    work.roll_back()
            except psycopg.Error as error:
                raise self._meaning(error, connection, maybe=work.may_have_happened) from error
        self._notifier.announce(hints)
        return value

    def _at_once(self, make: Callable[[int], Steps[T]], *, changes: bool = True) -> T:
        """Run a verb of a single statement, which is its own transaction, within the session's bounds."""
        hints: set[str] = set()
        with self._connection(brisk=True) as connection:
            work = Statements(connection, prepare=self._connections.prepares())
            try:
                value = self._drive(work, gathered(make(self.clock.now())), hints)
            except psycopg.Error as error:
                raise self._meaning(error, connection, maybe=changes) from error
        self._notifier.announce(hints)
        return value

    def _notify(self, queues: frozenset[str]) -> None:
        """One statement, its own transaction; its commit need not reach the disk."""
        with self._connection(brisk=True) as connection:
            connection.execute(
                "SELECT set_config('synchronous_commit', 'off', true), "
                "count(pg_notify(%s, queue)) FROM unnest(%s::text[]) AS hint (queue)",
                (self._channel, list(queues)),
                prepare=self._connections.prepares(),
            )

    def _meaning(self, error: psycopg.Error, connection: PatientConnection, *, maybe: bool) -> StoreError:
        """What an error of the server is to the caller. `maybe`: it had been told to commit."""
        self._connections.learn(connection, error)
        found = code(error)
        if found in MISSING and isinstance(outdated := self._changed(), SchemaOutdated):
            return outdated
        if found == FORBIDDEN:
            return forbidden(self.url, self.schema, connection.info.user, error)
        prepares_always = self._options.prepare == "on"
        return meaning(
            self.url, error, closed=connection.closed, maybe=maybe, prepares_always=prepares_always
        )

    def _drive(self, work: Statements, steps: Steps[T], hints: set[str]) -> T:
        """Answer each request of a verb until it returns; the queues it names go to `hints`."""
        try:
            request = next(steps)
            while True:
                if isinstance(request, Hint):
                    hints |= request.queues
                    request = steps.send([])
                else:
                    request = steps.send(self._answer(work, request))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _answer(self, work: Statements, request: Query | Many | LeaseClock) -> list[Row]:
        if isinstance(request, LeaseClock):
            rows = self._send(work, request)
            return [(self.clock.lease_now(rows[0][0]), "")]
        if request.name in LEFT_OUT:
            return []
        if isinstance(request, Query) and request.name in FLOORED:
            return self._looked(work, request)
        return self._found(work, request)

    def _looked(self, work: Statements, request: Query) -> list[Row]:
        """A look at the head of an index, from the floor of its queue where dead entries make it slow."""
        at_floor = self._floors.begins_at_floor(request.name)
        floored = Query(request.name, tuple(self._floors.parameters(request, at_floor=at_floor)))
        began_at = time.monotonic()
        rows = self._found(work, floored)
        took = time.monotonic() - began_at
        self._floors.learn(request, rows, self.clock.now(), took, at_floor=at_floor)
        return rows

    def _found(self, work: Statements, request: Query | Many) -> list[Row]:
        """What is asked of a node's own row, at the place where the last exchange has put it."""
        if isinstance(request, Query) and request.name in PLACED:
            return self._places.answer(request, lambda query: self._send(work, query))
        return self._send(work, request)

    def _send(self, work: Statements, request: Query | Many | LeaseClock) -> list[Row]:
        return work.answer(self._said(request))

    def _said(self, request: Query | Many | LeaseClock) -> Statement:
        return said(request, self._names)

    def joined(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb inside the caller's transaction, on the caller's connection."""
        return self._joined.run(transaction, make)

    # --- connections ------------------------------------------------------------------------------------
    def _is_direct(self) -> bool:
        """Is there no pooler between us and the server? Found out by the first connection."""
        if self._connections.pooled is None:
            with self._connection(brisk=True):
                pass
        return not self._connections.pooled

    @contextmanager
    def _connection(self, *, brisk: bool = False) -> Iterator[PatientConnection]:
        connection = self._connections.take(brisk=brisk)
        try:
            if self.clock.is_old():
                ((server,),) = connection.execute(text_of("lease_clock", self._names)).fetchall()
                self.clock.set(server)
            if self.versions.seen is None:
                self.versions.check(schema_of(connection, self._names))
            yield connection
        except psycopg.Error as error:
            raise self._meaning(error, connection, maybe=False) from error
        finally:
            self._connections.give_back(connection, brisk=brisk)

    def before_fork(self) -> None:
        """The child must not find the guard held by a thread it does not have."""
        self._connections.before_fork()

    def after_fork(self, *, in_child: bool) -> None:
        """The connections are the parent's."""
        if in_child:
            self._listener.forget()
            self._notifier.forget()
        self._connections.after_fork(in_child=in_child)

    # --- versions ---------------------------------------------------------------------------------------
    def ask_version(self) -> None:
        """See which schema is there now."""
        with self._connection() as connection:
            found = schema_of(connection, self._names)
            if found is None:  # somebody has dropped the tables
                self.versions.check(None)
            else:
                self.versions.note(found)

    def _changed(self) -> StoreError | None:
        """A table or a column is missing: is it because the schema is another version's by now?"""
        try:
            self._refuse_changed()
        except StoreError as error:
            return error
        return None

    def _refuse_changed(self) -> None:
        self.ask_version()
        self.versions.refuse()

    def script(self, since: int | None) -> str:
        """For psql; every statement may be repeated."""
        return schema.script(self._names, since)

    @contextmanager
    def upgrade(self) -> Iterator[PostgresUpgrade]:
        """The way to the version that this code knows, on a connection of its own."""
        connection = self._connections.take()
        try:
            yield PostgresUpgrade(self.url, connection, self._connections, self._names, self.clock)
        except psycopg.errors.InsufficientPrivilege as error:
            raise may_not_migrate(self.url, self.schema, connection.info.user, error) from error
        except psycopg.errors.CheckViolation as error:
            raise violated(self.url, error) from error
        except psycopg.Error as error:
            if isinstance(found := self._meaning(error, connection, maybe=False), StoreUnavailable):
                raise found from error
            raise StoreError(f"cannot migrate {self.url}: {error}") from error
        finally:
            connection.close()  # its bounds are those of a migration
            self.versions.forget()

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        self._notifier.close()
        self._connections.close()
        self._listener.close()

    def durability(self) -> str:
        """What an acknowledged job survives."""
        with self._connection() as connection:
            (row,) = connection.execute(SETTINGS).fetchall()
        return durability(*row)

    def holdbacks(self) -> list[Holdback]:
        """What keeps the server from removing dead rows."""
        with self._connection() as connection:
            return holdbacks(connection)

    # --- waiting ----------------------------------------------------------------------------------------
    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a notification names one of the queues. Through a pooler none can come: a nap."""
        return self._listener.wait(queues, timeout)
