"""Jobs in an SQLite file, or in memory: WAL, synchronous FULL, one connection to a process.

Writers of one process share commits: the first that gets the connection runs what all the others wait
for, each behind its own savepoint, and pays for one fsync. Locks are waited for up to a bound, then
StoreBusy says so and nothing has happened. Reads see the last commit.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from millpond.errors import OutcomeUnknown, SchemaOutdated, StoreBusy, StoreRefused
from millpond.store.clock import Clock
from millpond.store.fork_hooks import watch_forks
from millpond.store.protocol import Claim, Exchanged
from millpond.store.sql import leases
from millpond.store.sql.job_counts import gathered
from millpond.store.sql.query import Hint, LeaseClock, Query, Request, Row, Steps
from millpond.store.sql.store import RelationalStore
from millpond.store.sqlite import schema
from millpond.store.sqlite.clock import agreed_time
from millpond.store.sqlite.connection import connected, refuse_old_engine
from millpond.store.sqlite.file import DatabaseFile
from millpond.store.sqlite.joined import joinable
from millpond.store.sqlite.network_file_systems import refuse_network
from millpond.store.sqlite.repair import mend
from millpond.store.sqlite.schema import (
    create_tables,
    failed_commit,
    schema_of,
    translated,
)
from millpond.store.sqlite.statements import statements
from millpond.store.sqlite.upgrade import SQLiteUpgrade
from millpond.store.sqlite.wal_watch import LONGEST_COMMIT, WalWatch
from millpond.store.versions import Versions

T = TypeVar("T")
BUSY = 5.0  # seconds a lock is waited for


class _Request:
    """One write on its way through a shared commit."""

    def __init__(self, make: Callable[[int], Steps[Any]]) -> None:
        self.make = make
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None


class SQLiteStore(RelationalStore):
    """A store in one file, for the processes of one machine."""

    def __init__(self, path: str, *, busy: float = BUSY, clock: Clock | None = None) -> None:
        refuse_old_engine()
        self.in_memory = path == ":memory:"
        self.path = path if self.in_memory else str(Path(path).absolute())  # wherever we go, the same file
        self.url = "memory://" if self.in_memory else f"sqlite:///{path}"
        self.clock = clock or Clock()
        self.versions = Versions(schema.SCHEMA, self.url)
        self._busy = busy
        self._lock = threading.Lock()
        self._pending: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._here = threading.local()
        self._changes = 0
        self._owner = 0
        self._connection: apsw.Connection | None = None
        self._watcher: apsw.Connection | None = None
        self._file = DatabaseFile(self.path, self.url, busy)
        self._openings = 0  # of `_connection`
        self._watched = 0  # the opening that `_watcher` belongs to
        watch_forks(self)

    def claim_alone(self, node: str, sequence: int, claims: Sequence[Claim]) -> Exchanged | None:
        """Where nothing can be claimed nothing is written: a commit would cost a flush to the disk, and wake
        everybody who waits for this file, us among them, to find nothing again."""
        vain = self.read(lambda now: leases.is_vain(node, sequence, claims, now))
        return Exchanged() if vain else None

    # --- driving ------------------------------------------------------------------------------------
    def write(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb in a transaction, together with whatever else waits to be written."""
        request = _Request(make)
        self._pending.append(request)
        if not self._lock.acquire(timeout=self._busy):
            self._withdraw(request)
        try:
            if not request.done:
                self._commit_all(request)
        finally:
            self._lock.release()
        if request.error is not None:
            raise request.error
        self._tell()
        return request.value  # type: ignore[no-any-return]

    def _withdraw(self, request: _Request) -> None:
        """Nobody let us in: give up, unless the one inside has taken our request along."""
        try:
            self._pending.remove(request)
        except ValueError:
            self._lock.acquire()  # it is being committed at this very moment
            return
        raise StoreBusy(f"{self.url} was in use by this process for {self._busy:g} s; nothing was written")

    def _commit_all(self, own: _Request) -> None:
        """Run every waiting request in one transaction. A failure of one is its own."""
        batch: list[_Request] = []
        while self._pending:
            batch.append(self._pending.popleft())
        try:
            connection = self._open()
            self._begin(connection)
            try:
                now = agreed_time(connection, self.clock, may_write=True)
                for request in batch:
                    self._run_one(connection, request, now, alone=len(batch) == 1)
                if any(request.error is None for request in batch):
                    self._commit(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except BaseException as error:
            said = translated(error, self.url) if isinstance(error, apsw.Error) else error
            unknown = OutcomeUnknown(f"{self.url}: the thread that wrote for this one was interrupted")
            for request in batch:
                its_own = request is own or isinstance(error, Exception)
                request.error = request.error or (said if its_own else unknown)
        for request in batch:
            request.done = True

    def _run_one(self, connection: apsw.Connection, request: _Request, now: int, *, alone: bool) -> None:
        try:
            try:
                self._run_once(connection, request, now, alone=alone)
            except UnicodeDecodeError:
                if alone:
                    connection.execute("ROLLBACK")
                    self._begin(connection)
                mend(connection)
                self._run_once(connection, request, now, alone=alone)
        except apsw.Error as error:
            request.error = self._meaning(error)
        except Exception as error:
            request.error = error

    def _run_once(self, connection: apsw.Connection, request: _Request, now: int, *, alone: bool) -> None:
        if alone:
            request.value = self.drive(connection, request.make(now))
        else:
            with connection:  # a savepoint: what fails takes nothing else back
                request.value = self.drive(connection, request.make(now))

    def _commit(self, connection: apsw.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except apsw.Error as error:
            raise failed_commit(error, self.url, rolled_back=not connection.in_transaction) from error

    def _begin(self, connection: apsw.Connection) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise StoreBusy(
                f"{self.url} was locked by another process for {self._busy:g} s; nothing was written"
            ) from error
        except apsw.Error as error:
            raise translated(error, self.url) from error

    def read(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb that changes nothing."""
        try:
            return self._read(make)
        except UnicodeDecodeError:
            return self.write(make)  # which mends what cannot be read

    def _read(self, make: Callable[[int], Steps[T]]) -> T:
        if not self._lock.acquire(timeout=self._busy):
            raise StoreBusy(f"{self.url} was in use by this process for {self._busy:g} s")
        try:
            connection = self._open()
            connection.execute("BEGIN")
            try:
                return self.drive(connection, make(agreed_time(connection, self.clock)))
            finally:
                connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise self._meaning(error) from error
        finally:
            self._lock.release()

    def drive(self, connection: apsw.Connection, steps: Steps[T]) -> T:
        """Answer each request of a verb until it returns."""
        steps = gathered(steps)
        answer: list[Row] = []
        try:
            request = next(steps)
            while True:
                answer = self._answer(connection, request)
                request = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _answer(self, connection: apsw.Connection, request: Request) -> list[Row]:
        if isinstance(request, LeaseClock):
            return [(self.clock.lease_now(), self.clock.epoch)]
        if isinstance(request, Hint):  # `wait` notices every commit by itself
            return []
        answer: list[Row] = []
        for text, parameters, many in statements(request):
            run = connection.executemany if many else connection.execute
            answer += run(text, parameters)
        return answer

    def joined(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb inside the caller's transaction, on the caller's connection."""
        try:
            connection = joinable(transaction, self.url, self._connection if self.in_memory else self.path)
            self.versions.check(schema_of(connection))
            with connection:  # a savepoint; it never swallows what is raised inside
                value = self.drive(connection, make(agreed_time(connection, self.clock)))
        except apsw.Error as error:
            raise translated(error, self.url) from error
        return value

    # --- opening --------------------------------------------------------------------------------------
    def _open(self) -> apsw.Connection:
        """The connection of this process. Not to a file that was deleted or replaced since: a node would work
        on in it, while others store jobs in the new one (test_replaced_file.py)."""
        self._leave_replaced()
        if self._connection is None:
            connection = self._connect()
            self._keep_fit(connection)
        elif self._owner != os.getpid():  # only what is in memory is still there after a fork
            raise StoreRefused("memory:// lives in the process that made it: a forked one needs its own")
        assert self._connection is not None
        return self._connection

    def _leave_replaced(self) -> None:
        if self._connection is not None and self._file.has_changed():
            connection, self._connection = self._connection, None
            self._file.leave(connection)

    def _keep_fit(self, connection: apsw.Connection) -> None:
        """Keep a new connection, unless its file is of another version."""
        try:
            create_tables(connection, self.url)
            self.versions.check(schema_of(connection))
        except BaseException:
            connection.close()
            raise
        self._keep(connection)

    def _keep(self, connection: apsw.Connection) -> None:
        if not self.in_memory:
            self._file.opened(connection)
        self._connection, self._owner = connection, os.getpid()
        self._openings += 1

    def _connect(self, *, may_create: bool = False) -> apsw.Connection:
        try:
            if self.in_memory:
                return connected(self.path, self._busy)
            refuse_network(Path(self.path))
            with self._file.opening(may_create=may_create):
                return connected(self.path, self._busy)
        except apsw.Error as error:
            raise translated(error, self.url) from error

    def close(self) -> None:
        """Close the connection; the next call opens a new one. What is in memory is gone with it."""
        with self._changed, self._lock:
            self._hang_up()
            self._file.forget()
        self._here = threading.local()

    def _hang_up(self) -> None:
        if self._owner == os.getpid():
            for connection in (self._connection, self._watcher):
                if connection is not None:
                    connection.close()
        self._connection = self._watcher = None

    def before_fork(self) -> None:
        """No connection to a file may cross a fork."""
        self._changed.acquire()
        self._lock.acquire()
        if not self.in_memory:
            self._hang_up()

    def after_fork(self, *, in_child: bool) -> None:
        """Whoever was about to write in the parent does so there, not here."""
        if in_child:
            self._pending = deque()
            self._here = threading.local()  # what the parent hears is the parent's
        self._lock.release()
        self._changed.release()

    # --- versions ---------------------------------------------------------------------------------------
    def ask_version(self) -> None:
        """See which tables are there now."""
        with self._lock:
            try:
                self._note_version(self._open())
            except apsw.Error as error:
                raise translated(error, self.url) from error

    def _note_version(self, connection: apsw.Connection) -> None:
        found = schema_of(connection)
        if found is not None:
            self.versions.note(found)

    def _meaning(self, error: apsw.Error) -> Exception:
        """What an error means: a table or a column that is missing may be a newer version's doing."""
        if isinstance(error, apsw.SQLError) and "no such" in str(error) and self._connection is not None:
            self._note_version(self._connection)
            if self.versions.trouble is not None:
                return SchemaOutdated(self.versions.trouble)
        return translated(error, self.url)

    def script(self, since: int | None) -> str:
        """For the sqlite3 shell, at a time when no process has the file open."""
        return schema.script(since)

    @contextmanager
    def upgrade(self) -> Iterator[SQLiteUpgrade]:
        """The way to the version that this code knows."""
        with self._lock:
            self._leave_replaced()
            connection = self._connection or self._connect(may_create=True)
            try:
                yield SQLiteUpgrade(self.url, connection, self.clock)
            except apsw.Error as error:
                raise translated(error, self.url) from error
            if connection is not self._connection:
                self._keep(connection)
            self.versions.forget()

    def durability(self) -> str:
        """What an acknowledged job survives."""
        if self.in_memory:
            return "not durable: gone with this process"
        return "durable: synchronous FULL, survives a crash of the machine"

    # --- waiting ---------------------------------------------------------------------------------------
    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until somebody writes and there is work: this process tells at once, others are noticed soon.

        A write alone does not end it: nodes that find nothing write, too, and would keep each other awake.
        """
        until = time.monotonic() + timeout
        seen: int | None = getattr(self._here, "seen", None)  # what came between two waits counts
        watch = None if self.in_memory else self._watch()
        heard = -LONGEST_COMMIT
        while True:
            now_seen = self._look()
            self._here.seen = now_seen
            if seen not in (None, now_seen):
                if self._has_work(queues):
                    return True
                heard = -LONGEST_COMMIT  # what was heard has shown
            seen = now_seen
            if (left := until - time.monotonic()) <= 0:
                return False
            if watch is None:
                with self._changed:
                    self._changed.wait_for(lambda seen=seen: self._changes != seen, left)  # type: ignore[misc]
            else:
                heard = watch.listen(heard, left)

    def _watch(self) -> WalWatch:
        """The watch of this thread; a new one after each opening, as the folder may be a new one."""
        if getattr(self._here, "opening", None) != self._openings:
            self._here.watch, self._here.opening = WalWatch(self.path), self._openings
        return self._here.watch  # type: ignore[no-any-return]

    def _has_work(self, queues: Sequence[str]) -> bool:
        try:
            return self.read(lambda now: _work(queues, now))
        except StoreBusy:
            return True  # perhaps: only a hint

    def _look(self) -> int:
        """A number that changes with every commit, of whatever process."""
        with self._changed:
            try:
                return self._changes if self.in_memory else self._data_version()
            except apsw.Error as error:
                raise translated(error, self.url) from error

    def _tell(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    def _data_version(self) -> int:
        """Two files may have the same version: the number of the opening makes the difference."""
        if self._watcher is not None and (self._watched != self._openings or self._file.has_changed()):
            watcher, self._watcher = self._watcher, None
            watcher.close()
        if self._watcher is None:
            with self._lock:
                self._open()
                self._watcher, self._watched = self._connect(), self._openings
        ((version,),) = self._watcher.execute("PRAGMA data_version")
        return (self._watched << 32) + int(version)


def _work(queues: Sequence[str], now: int) -> Steps[bool]:
    ((found,),) = yield Query("work", (list(queues), now))
    return bool(found)
