"""Jobs in an SQLite file, or in memory: WAL, synchronous FULL, one connection to a process.

Writers of one process share commits: the first that gets the connection runs what all the others wait
for, each behind its own savepoint, and pays for one fsync. Locks are waited for up to a bound, then
StoreBusy says so and nothing has happened. Reads see the last commit.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

from millpond.errors import OutcomeUnknown, StoreBusy, StoreRefused
from millpond.store.clock import Clock
from millpond.store.file_systems import refuse_network
from millpond.store.forks import watch_forks
from millpond.store.protocol import Claim, Exchanged
from millpond.store.relational import leases
from millpond.store.relational.query import LeaseClock, Many, Query, Row, Steps
from millpond.store.relational.tallies import gathered
from millpond.store.relational.verbs import RelationalStore
from millpond.store.sqlite_clock import agreed_time
from millpond.store.sqlite_mending import mend
from millpond.store.sqlite_schema import (
    add_functions,
    create_private,
    create_tables,
    refuse_other_versions,
    schema_of,
    switch_to_wal,
    translated,
    update_tables,
)
from millpond.store.sqlite_statements import statements
from millpond.store.wal_watch import WalWatch

T = TypeVar("T")
BUSY = 5.0  # seconds a lock is waited for
FIRST_LOOK, LAST_LOOK = 0.0001, 0.005  # naps while a write becomes a commit, first and after a while
USUAL_COMMIT = 0.003
LONGEST_COMMIT = 1.0
SHORT_NAP, LONG_NAP = 0.0005, 0.002  # of one who waits for a lock
NEEDED = 3_051_003  # older engines can lose commits in WAL mode when a checkpoint meets a writer


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
        if apsw.sqlite_lib_version() and _version() < NEEDED:
            raise StoreRefused(
                f"SQLite {apsw.sqlite_lib_version()} can lose commits: install apsw 3.51.3 or newer"
            )
        self.in_memory = path == ":memory:"
        self.path = path if self.in_memory else str(Path(path).absolute())  # wherever we go, the same file
        self.url = "memory://" if self.in_memory else f"sqlite:///{path}"
        self.clock = clock or Clock()
        self._busy = busy
        self._lock = threading.Lock()
        self._pending: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._here = threading.local()
        self._changes = 0
        self._owner = 0
        self._connection: apsw.Connection | None = None
        self._watcher: apsw.Connection | None = None
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
                    _commit(connection)
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
            request.error = translated(error, self.url)
        except Exception as error:
            request.error = error

    def _run_once(self, connection: apsw.Connection, request: _Request, now: int, *, alone: bool) -> None:
        if alone:
            request.value = self.drive(connection, request.make(now))
        else:
            with connection:  # a savepoint: what fails takes nothing else back
                request.value = self.drive(connection, request.make(now))

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
            raise translated(error, self.url) from error
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

    def _answer(self, connection: apsw.Connection, request: Query | Many | LeaseClock) -> list[Row]:
        if isinstance(request, LeaseClock):
            return [(self.clock.lease_now(), self.clock.epoch)]
        answer: list[Row] = []
        for text, parameters, many in statements(request):
            run = connection.executemany if many else connection.execute
            answer += run(text, parameters)
        return answer

    def joined(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb inside the caller's transaction, on the caller's connection."""
        if not isinstance(transaction, apsw.Connection):
            raise StoreRefused(_wrong_connection(transaction))
        try:
            if not self._is_ours(transaction):
                raise StoreRefused(f"this connection is not to {self.url}: it is to {transaction.filename!r}")
            refuse_other_versions(schema_of(transaction), self.url)
            with transaction:  # a savepoint; it never swallows what is raised inside
                value = self.drive(transaction, make(agreed_time(transaction, self.clock)))
        except apsw.Error as error:
            raise translated(error, self.url) from error
        return value

    def _is_ours(self, transaction: apsw.Connection) -> bool:
        if self.in_memory:
            return transaction is self._connection
        try:
            return Path(transaction.filename).samefile(self.path)
        except OSError:  # theirs is in memory, or one of the two is not there yet
            return False

    # --- opening --------------------------------------------------------------------------------------
    def _open(self) -> apsw.Connection:
        """The connection of this process."""
        if self._connection is None:
            connection = self._connect()
            create_tables(connection, self.url)
            self._connection = connection
        elif self._owner != os.getpid():  # only what is in memory is still there after a fork
            raise StoreRefused("memory:// lives in the process that made it: a forked one needs its own")
        self._owner = os.getpid()
        return self._connection

    def _connect(self) -> apsw.Connection:
        if not self.in_memory:
            refuse_network(Path(self.path))
            create_private(self.path)
        try:
            connection = apsw.Connection(self.path)
            connection.set_busy_handler(_Patience(self._busy).wait)
            switch_to_wal(connection, self._busy)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -65536")
            add_functions(connection)
        except apsw.Error as error:
            raise translated(error, self.url) from error
        return connection

    def close(self) -> None:
        """Close the connection; the next call opens a new one. What is in memory is gone with it."""
        with self._changed, self._lock:
            self._hang_up()
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

    def migrate(self) -> list[str]:
        """Create the tables, bring older ones up to date, or say that there is nothing to do."""
        with self._lock:
            connection = self._connection or self._connect()
            done = update_tables(connection, self.url)
            self._connection, self._owner = connection, os.getpid()
        return done

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
        watch: WalWatch | None = getattr(self._here, "watch", None)
        if watch is None and not self.in_memory:
            watch = self._here.watch = WalWatch(self.path)
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
                heard = self._listen(watch, heard, left)

    def _listen(self, watch: WalWatch, heard: float, left: float) -> float:
        """Wait until somebody writes, or until what he writes may show: that takes a moment, or long.

        `heard` is when somebody was last heard to write; returns the same.
        """
        since = time.monotonic() - heard
        if since < USUAL_COMMIT:
            time.sleep(FIRST_LOOK)
        elif watch.wait(min(left, LAST_LOOK) if since < LONGEST_COMMIT else left):
            return time.monotonic()
        return heard

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
        if self._watcher is None:
            with self._lock:
                self._open()
                self._watcher = self._connect()
        ((version,),) = self._watcher.execute("PRAGMA data_version")
        return int(version)


class _Patience:
    """Waits for a lock in short naps. SQLite's own grow to 100 ms: whoever has waited long would hardly ever
    find the lock free between two busy writers, and a heartbeat must."""

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._until = 0.0

    def wait(self, calls: int) -> bool:
        """Called again and again while a lock is held by somebody else; False gives up."""
        now = time.monotonic()
        if calls == 0:
            self._until = now + self._bound
        if now >= self._until:
            return False
        time.sleep(SHORT_NAP if calls < 20 else LONG_NAP * random.uniform(0.5, 1.5))
        return True


def _work(queues: Sequence[str], now: int) -> Steps[bool]:
    ((found,),) = yield Query("work", (list(queues), now))
    return bool(found)


def _version() -> int:
    major, minor, patch = (int(part) for part in apsw.sqlite_lib_version().split("."))
    return major * 1_000_000 + minor * 1000 + patch


def _commit(connection: apsw.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        raise OutcomeUnknown(f"SQLite failed in COMMIT: {error}; ask for the job by its id") from error


def _wrong_connection(transaction: object) -> str:
    kind = type(transaction)
    if kind.__module__ == "sqlite3":
        return (
            "transaction= takes an apsw.Connection, not a sqlite3.Connection: two SQLite libraries in one "
            "process drop each other's file locks"
        )
    return (
        f"transaction= takes an apsw.Connection to the same file, not {kind.__module__}.{kind.__qualname__}"
    )
