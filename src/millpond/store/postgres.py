"""Jobs in PostgreSQL: short transactions, SKIP LOCKED, one round trip for a plain enqueue.

Times come from the server. Notifications are hints and can be off; a pooler between us and the server is
noticed, and then nothing relies on the session. A connection that breaks before COMMIT was sent means
that nothing happened; after it, OutcomeUnknown.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.rows import tuple_row

from millpond.errors import (
    OutcomeUnknown,
    SchemaOutdated,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from millpond.job import Enqueued, Job, NewJob
from millpond.store.clock import ServerClock
from millpond.store.forks import watch_forks
from millpond.store.postgres_address import PostgresAddress
from millpond.store.postgres_arrays import array
from millpond.store.postgres_bounds import bounds
from millpond.store.postgres_connection import PatientConnection
from millpond.store.postgres_statements import THE_CALLERS, Names, text_of
from millpond.store.protocol import Claim, Document, Exchanged, Tick
from millpond.store.relational import claim, enqueue, leases, reading, records
from millpond.store.relational.query import LeaseClock, Many, Query, Row, Steps
from millpond.store.relational.tallies import gathered
from millpond.store.relational.verbs import RelationalStore

T = TypeVar("T")
SCHEMA = 2
STEPS = {1: "from_1_to_2"}  # the statements that lead from a version to the next
UNHURRIED = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0"  # who makes tables
RETRIES = 5  # of a transaction that the server ended to break a deadlock: nothing has happened
ISOLATION, FRESH = "SHOW transaction_isolation", [("read committed",)]  # each statement sees the latest
KEPT = 8  # connections kept for the next call
POLL = 0.25  # how long a wait sleeps where no notification can arrive


class PostgresStore(RelationalStore):
    """A store in a PostgreSQL database, for many machines."""

    works_elsewhere = True  # an exchange is the server's work, and the driver's, without the interpreter

    def __init__(self, url: str, *, patience: float | None = None) -> None:
        self._options = PostgresAddress(url)
        self._bounds = bounds(patience)
        self.url = self._options.shown
        self.schema = self._options.schema
        self.clock = ServerClock()
        self._guard = threading.Lock()
        self._idle: dict[bool, deque[Connection[Row]]] = {
            False: deque(),
            True: deque(),
        }  # True: the brisk ones
        self._checked = False
        self._pooled: bool | None = None  # a pooler stands between us and the server
        self._listener: Connection[Row] | None = None
        self._ear = threading.Lock()  # held by the one thread that listens
        self._channel = f"millpond_{self.schema}"
        self._names = Names(self.schema, self._channel if self._options.notify else "")
        watch_forks(self)

    # --- verbs that differ ----------------------------------------------------------------------------
    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none; plain ones in one round trip."""
        if jobs and transaction is None and enqueue.is_plain(jobs) and self._is_direct():
            return self._retried(lambda: self._at_once(lambda now: enqueue.enqueue_at_once(jobs, now)))
        return super().enqueue(jobs, transaction)

    def claim_alone(self, node: str, sequence: int, claims: Sequence[Claim]) -> Exchanged | None:
        """Claim and say nothing else, in one round trip where that can be."""
        if not (claim.is_usual(claims) and self._is_direct()):
            return None
        make = partial(claim.claim_at_once, node, sequence, claims)
        found = self._retried(lambda: self._at_once(make))
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
        if ticks and records.is_plain(ticks) and self._is_direct():
            return self._retried(lambda: self._at_once(lambda now: records.plan_at_once(ticks, now)))
        return super().plan(ticks)

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document: one statement, one round trip."""
        if self._is_direct():
            make = partial(records.record, name, value, version)
            return self._retried(lambda: self._at_once(lambda _: make(), changes=value is not None))
        return super().record(name, value, version)

    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked: one statement, one round trip."""
        if self._is_direct():
            return self._at_once(lambda _: reading.get(ids), changes=False)
        return super().get(ids)

    async def aenqueue(self, jobs: Sequence[NewJob], transaction: AsyncConnection[Any]) -> list[Enqueued]:
        """Store jobs in the transaction of an async connection."""
        if not isinstance(transaction, AsyncConnection):
            raise StoreRefused(_wrong_connection("AsyncConnection", transaction))
        await self._to_thread_if_needed()
        steps = gathered(enqueue.enqueue(jobs, self.clock.now(), parks=False))
        cursor = psycopg.AsyncRawCursor(transaction, row_factory=tuple_row)
        try:
            if _begins_by_itself(transaction):
                await cursor.execute("SELECT")
            async with transaction.transaction():  # a savepoint: all or none, whatever the caller does
                request = next(steps)
                while True:
                    try:
                        request = steps.send(await self._aanswer(cursor, request))
                    except StopIteration as end:
                        return end.value  # type: ignore[no-any-return]
        except psycopg.errors.UndefinedTable as error:
            raise StoreRefused(f"this connection is not to {self.url}: {error}") from error

    # --- driving ----------------------------------------------------------------------------------------
    def write(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb in a transaction of its own."""
        return self._retried(lambda: self._transaction(make, "COMMIT"))

    def _retried(self, call: Callable[[], T]) -> T:
        for attempt in range(RETRIES + 1):
            try:
                return call()
            except psycopg.errors.DeadlockDetected as error:
                if attempt == RETRIES:
                    raise StoreBusy(f"{self.url}: {RETRIES} deadlocks in a row; nothing happened") from error
        raise AssertionError

    def read(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb that changes nothing, on one snapshot."""
        return self._transaction(make, "ROLLBACK")

    def _transaction(self, make: Callable[[int], Steps[T]], ending: str) -> T:
        with self._connection() as connection:
            cursor = psycopg.RawCursor(connection)
            committing = False
            try:
                # A session of our own has its bounds
                connection.execute(self._bounds.begin.encode() if self._pooled else "BEGIN")
                value = self._drive(cursor, make(self.clock.now()))
                committing = ending == "COMMIT"
                connection.execute(ending)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
                raise StoreBusy(f"{self.url} was locked for too long; nothing happened") from error
            except psycopg.errors.DeadlockDetected:
                raise
            except psycopg.OperationalError as error:
                raise self._broken(error, maybe=committing) from error
            except psycopg.Error as error:
                raise StoreError(f"{self.url}: {type(error).__name__}: {error}") from error
            return value

    def _at_once(self, make: Callable[[int], Steps[T]], *, changes: bool = True) -> T:
        """Run a verb of a single statement, which is its own transaction, within the session's bounds."""
        with self._connection(brisk=True) as connection:
            try:
                return self._drive(psycopg.RawCursor(connection), make(self.clock.now()))
            except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
                raise StoreBusy(f"{self.url} was locked for too long; nothing happened") from error
            except psycopg.errors.DeadlockDetected:
                raise
            except psycopg.OperationalError as error:
                raise self._broken(error, maybe=changes) from error
            except psycopg.Error as error:
                raise StoreError(f"{self.url}: {type(error).__name__}: {error}") from error

    def _broken(self, error: psycopg.Error, *, maybe: bool) -> Exception:
        if maybe:
            return OutcomeUnknown(
                f"the connection to {self.url} broke while it was being told to commit: "
                f"ask for the job by its id, or repeat with the same id ({error})"
            )
        return StoreUnavailable(f"{self.url}: {error}; nothing happened")

    def _drive(self, cursor: psycopg.RawCursor[Row], steps: Steps[T], *, joined: bool = False) -> T:
        """Answer each request of a verb until it returns."""
        prepare = None if joined else self._prepares()
        steps = gathered(steps)
        try:
            request = next(steps)
            while True:
                request = steps.send(self._answer(cursor, request, prepare))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _answer(
        self, cursor: psycopg.RawCursor[Row], request: Query | Many | LeaseClock, prepare: bool | None
    ) -> list[Row]:
        """What a joined one says is prepared as the caller's settings want it: then `prepare` is None."""
        text, parameters = self._said(request, joined=prepare is None)
        cursor.execute(text, parameters, prepare=prepare, binary=True)
        rows = cursor.fetchall() if cursor.description else []
        if isinstance(request, LeaseClock):
            return [(self.clock.lease_now(rows[0][0]), "")]
        if prepare is None and request.name == "known" and cursor.execute(ISOLATION).fetchall() != FRESH:
            rows += self._known_now(request)
        return rows

    async def _aanswer(
        self, cursor: psycopg.AsyncRawCursor[Any], request: Query | Many | LeaseClock
    ) -> list[Row]:
        text, parameters = self._said(request, joined=True)
        await cursor.execute(text, parameters)
        rows = await cursor.fetchall() if cursor.description else []
        if isinstance(request, Query) and request.name == "known":
            await cursor.execute(ISOLATION)
            if await cursor.fetchall() != FRESH:
                rows += await asyncio.to_thread(self._known_now, request)
        return rows

    def _known_now(self, request: Query | Many) -> list[Row]:
        """The caller's snapshot may be older than a job that has come and ended: we look ourselves."""
        text, parameters = self._said(request)
        with self._connection() as connection:
            return psycopg.RawCursor(connection).execute(text, parameters).fetchall()

    def _said(
        self, request: Query | Many | LeaseClock, *, joined: bool = False
    ) -> tuple[bytes, Sequence[Any]]:
        names = self._names._replace(shard=THE_CALLERS) if joined else self._names
        if isinstance(request, LeaseClock):
            return text_of("lease_clock", names), ()
        text = text_of(request.name, names)
        if isinstance(request, Many):
            return text, [*request.shared, *(array(column) for column in zip(*request.rows, strict=True))]
        return text, [array(value) if isinstance(value, list) else value for value in request.parameters]

    def _prepares(self) -> bool | None:
        """Prepared statements live in a session: not through a pooler."""
        return self._options.prepare == "on" or (self._options.prepare == "auto" and not self._pooled)

    def joined(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb inside the caller's transaction, on the caller's connection."""
        if isinstance(transaction, AsyncConnection):
            raise StoreRefused("an async connection can only be joined by `await task.aenqueue(...)`")
        if not isinstance(transaction, Connection):
            raise StoreRefused(_wrong_connection("Connection", transaction))
        self._touch()
        cursor = psycopg.RawCursor(transaction, row_factory=tuple_row)
        try:
            if _begins_by_itself(transaction):
                cursor.execute("SELECT")
            with transaction.transaction():  # a savepoint: all or none, whatever the caller does
                return self._drive(cursor, make(self.clock.now()), joined=True)
        except psycopg.errors.UndefinedTable as error:
            raise StoreRefused(f"this connection is not to {self.url}: {error}") from error

    # --- connections ------------------------------------------------------------------------------------
    def _is_direct(self) -> bool:
        """Is there no pooler between us and the server? Found out by the first connection."""
        if self._pooled is None:
            with self._connection(brisk=True):
                pass
        return not self._pooled

    @contextmanager
    def _connection(self, *, brisk: bool = False) -> Iterator[Connection[Row]]:
        connection = self._take(brisk=brisk)
        try:
            if self.clock.is_old():
                ((server,),) = connection.execute(text_of("lease_clock", self._names)).fetchall()
                self.clock.set(server)
            if not self._checked:
                self._check(connection)
            yield connection
        except psycopg.errors.DeadlockDetected:
            raise
        except psycopg.OperationalError as error:
            raise self._broken(error, maybe=False) from error
        finally:
            self._give_back(connection, brisk=brisk)

    def _take(self, *, brisk: bool = False) -> Connection[Row]:
        idle = self._idle[brisk]
        with self._guard:
            while idle:
                connection = idle.pop()
                if not connection.closed and not _has_hung_up(connection):
                    return connection
                connection.close()
        return self._connect(self._options.dsn, brisk=brisk)

    def before_fork(self) -> None:
        """The child must not find the guard held by a thread it does not have."""
        self._guard.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """The connections are the parent's: the driver closes none that its process did not open."""
        if in_child:
            self._idle = {False: deque(), True: deque()}
            self._listener, self._ear = None, threading.Lock()
        self._guard.release()

    def _connect(self, dsn: str, *, brisk: bool = False) -> Connection[Row]:
        limits = self._bounds
        try:
            connection = PatientConnection.connect(
                dsn,
                autocommit=True,
                connect_timeout=limits.connect,
                keepalives_idle=10,
                tcp_user_timeout=limits.unacknowledged,
            )
            connection.patience = limits.answer
            if self._pooled is None and dsn == self._options.dsn:
                ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
                self._pooled = pid != connection.info.backend_pid
            if self._pooled is False:
                connection.execute((limits.brisk if brisk else limits.session).encode())
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"cannot reach {self.url}: {error}") from error
        if not self._prepares():
            connection.prepare_threshold = None  # not even COMMIT, which the driver would do by itself
        return connection

    def _give_back(self, connection: Connection[Row], *, brisk: bool = False) -> None:
        idle = self._idle[brisk]
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()
        with self._guard:
            if connection.closed or len(idle) >= KEPT:
                connection.close()
            else:
                idle.append(connection)

    def _check(self, connection: Connection[Row]) -> None:
        version = self._version(connection)
        if version != SCHEMA:
            found = "no tables" if version is None else f"schema version {version}"
            newer = version is not None and version > SCHEMA
            cure = "use the newer Millpond that made it" if newer else "run `millpond migrate`"
            raise SchemaOutdated(
                f"{self.url} has {found} in schema {self.schema!r}, version {SCHEMA} is needed: {cure}"
            )
        self._checked = True

    def _version(self, connection: Connection[Row]) -> int | None:
        ((found,),) = connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL", (f"{self.schema}.meta",)
        ).fetchall()
        if not found:
            return None
        ((version,),) = connection.execute(text_of("version", self._names)).fetchall()
        return int(version)

    def migrate(self) -> list[str]:
        """Create the tables, or bring older ones up to date. One at a time, by the server's lock."""
        done: list[str] = []
        connection = self._take()
        try:
            with connection.transaction():
                connection.execute(UNHURRIED)
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x6D696C6C,))
                while (version := self._version(connection)) in STEPS:
                    connection.execute(text_of(STEPS[version], self._names))
                    done.append(f"brought {self.url} from version {version} to {version + 1}")
                if version is not None:
                    self._check(connection)
                    return done
                connection.execute(text_of("schema", self._names))
        except psycopg.Error as error:
            raise StoreError(f"cannot migrate {self.url}: {error}") from error
        finally:
            self._give_back(connection)
        return [f"created the tables of version {SCHEMA} in schema {self.schema!r} of {self.url}"]

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._guard:
            connections = [*self._idle[False], *self._idle[True]]
            self._idle = {False: deque(), True: deque()}
            listener, self._listener = self._listener, None
        for connection in (*connections, listener):
            if connection is not None:
                connection.close()

    def durability(self) -> str:
        """What an acknowledged job survives."""
        with self._connection() as connection:
            ((commit,),) = connection.execute("SHOW synchronous_commit").fetchall()
            ((fsync,),) = connection.execute("SHOW fsync").fetchall()
        if fsync == "off":
            return "not durable: fsync is off"
        if commit == "off":
            return "survives a crash of the server process, not of its machine: synchronous_commit is off"
        return "durable: fsync on, synchronous_commit on"

    # --- waiting ----------------------------------------------------------------------------------------
    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a notification names one of the queues. Through a pooler none can come: a nap."""
        deaf = not self._options.notify or (self._pooled and self._options.listen == self._options.dsn)
        ear = self._ear
        if deaf or not ear.acquire(blocking=False):  # a second thread naps, too
            time.sleep(min(timeout, POLL))
            return False
        try:
            for notice in self._listening().notifies(timeout=timeout):
                if notice.payload in queues:
                    return True
        except psycopg.OperationalError:
            self._listener = None
            time.sleep(min(timeout, POLL))
        finally:
            ear.release()
        return False

    def _listening(self) -> Connection[Row]:
        if self._listener is None or self._listener.closed:
            self._listener = self._connect(self._options.listen)
            self._listener.execute(f'LISTEN "{self._channel}"'.encode())
        return self._listener

    async def _to_thread_if_needed(self) -> None:
        if self.clock.is_old() or not self._checked:
            await asyncio.to_thread(self._touch)

    def _touch(self) -> None:
        with self._connection():
            pass


def _begins_by_itself(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Would its next statement begin the caller's transaction? Then it must, before we set a savepoint."""
    idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    return idle and not connection.autocommit


def _wrong_connection(wanted: str, given: object) -> str:
    return (
        f"transaction= takes a psycopg {wanted} here, not {type(given).__module__}.{type(given).__qualname__}"
    )


def _has_hung_up(connection: Connection[Row]) -> bool:
    """Has the server closed this connection while it lay idle? Then nothing was sent and nothing lost."""
    import select

    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
