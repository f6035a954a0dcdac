"""Upgrades a PostgreSQL schema while everything runs: each lock is short, or none that anything waits for.

A change that needs a strong lock waits a fraction of a second for it and steps back, again and again, until
it comes: whatever queues behind it goes on meanwhile. What takes long (an index, the check of stored rows)
runs outside of a transaction, under a lock that neither reads nor writes wait for.
"""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg

from millpond.errors import StoreBusy, StoreError
from millpond.rules.store.schema import Change, Schema, Step
from millpond.store.clock import ServerClock
from millpond.store.postgres import schema as tables
from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.errors import CROSSED, TOO_LONG, code
from millpond.store.postgres.pool import ConnectionPool
from millpond.store.postgres.statements import Names, text_of
from millpond.store.postgres.timeouts import BEGIN
from millpond.store.upgrade import Upgrade

logger = logging.getLogger("millpond")
PATIENCE = 3600.0  # seconds for which the lock of one change is tried
OTHERS = 60.0  # seconds for which another migration is waited for
PAUSE = 0.5  # seconds between two tries, on average
QUIET = 10.0  # seconds between two lines about a lock that does not come
KEY = 0x6D696C6C
# A transaction that makes tables from nothing, or needs a stop: it may take its time.
UNHURRIED = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0"
SHORT = f"SET LOCAL lock_timeout = '{tables.LOCK:g}s'; SET LOCAL statement_timeout = '5s'"
OLDEST = """
SELECT activity.pid, extract(EPOCH FROM clock_timestamp() - activity.xact_start)::integer
FROM pg_locks AS held
JOIN pg_class AS locked ON locked.oid = held.relation
JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE locked.relnamespace = to_regnamespace(%s) AND held.granted AND held.pid <> pg_backend_pid()
ORDER BY activity.xact_start
LIMIT 1
"""


class PostgresUpgrade(Upgrade):
    """The way of one PostgreSQL schema to the version that this code knows."""

    def __init__(
        self,
        url: str,
        connection: PatientConnection,
        connections: ConnectionPool,
        names: Names,
        clock: ServerClock,
    ) -> None:
        super().__init__(url, tables.SCHEMA)
        self._connection, self._connections = connection, connections
        self._names, self._clock = names, clock

    def found(self) -> Schema | None:
        """What the tables say."""
        return tables.schema_of(self._connection, self._names)

    def steps(self) -> Mapping[int, Step]:
        """Every step, with the name of the schema in it."""
        return tables.steps(self._names)

    def contractions(self) -> Mapping[int, Step]:
        """What may be taken away."""
        return tables.contractions(self._names)

    def live(self) -> list[tuple[str, bytes]]:
        """The nodes that have a lease, on the tables of any version."""
        ((server,),) = self._connection.execute(text_of("lease_clock", self._names)).fetchall()
        rows = psycopg.RawCursor(self._connection).execute(
            text_of("live_nodes", self._names), (self._clock.lease_now(server),)
        )
        return [(node, bytes(info)) for node, info in rows.fetchall()]

    # Two migrations at once would build the same index twice and drop each other's. The lock is held by a
    # transaction that stays open on a connection of its own: also through a pooler, where a lock of the
    # session would stay behind, and not longer than the process lives. It has no snapshot, so nothing waits
    # for it (test_many_may_migrate_at_once, test_a_migration_that_was_killed_anywhere_is_repeated).
    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other migrations of this schema out."""
        holder = self._connections.take()
        try:
            until = time.monotonic() + OTHERS
            while not self._is_first(holder):
                if time.monotonic() > until:
                    raise StoreBusy(f"{self.url} has been migrated by another process for {OTHERS:g} s")
                time.sleep(PAUSE * random.random())
            yield
        finally:
            holder.close()

    def _is_first(self, holder: PatientConnection) -> bool:
        """Begin the transaction that has the lock. One that does not get it ends at once: a pooler gives a
        connection of the server to each that is open, and the migration needs one, too
        (test_many_may_upgrade_at_once)."""
        begin = f"{BEGIN}; SET LOCAL idle_in_transaction_session_timeout = 0"
        holder.execute(begin.encode(), prepare=False)
        # Without parameters and not prepared: such a statement leaves no snapshot open when it has ended, and
        # an index that is built concurrently waits for all older snapshots, this one too.
        text = f"SELECT pg_try_advisory_xact_lock({KEY}, hashtext('{self._names.schema}'))"
        ((got,),) = holder.execute(text.encode(), prepare=False).fetchall()
        if not got:
            holder.execute("ROLLBACK")
        return bool(got)

    def create(self) -> bool:
        """Make the schema, if there is none, and the tables."""
        # Asked first: IF NOT EXISTS wants the right to create a schema even where it exists, and a role that
        # was given its schema lacks that (test_a_role_makes_the_tables_in_a_schema_it_was_given).
        ((missing,),) = self._connection.execute(
            "SELECT to_regnamespace(%s) IS NULL", (self._names.schema,)
        ).fetchall()
        said = f"CREATE SCHEMA {self._names.schema};\n" if missing else ""
        self._transaction(UNHURRIED, said + tables.creation(self._names))
        return True

    def apply(self, step: Step) -> bool:
        """One change after the other; what an earlier run has done is done again, or found done."""
        if not self._connections.pooled:
            self._connection.execute("SET lock_timeout = 0; SET statement_timeout = 0")
        self._connection.patience = math.inf  # an index may take hours, in which the server says nothing
        for change in step.changes:
            if step.stops:
                self._transaction(UNHURRIED, change.text)
            elif index := tables.INDEX.match(change.text):
                self._build(change, index)
            elif change.is_alone:
                self._connection.execute(change.text.encode())
            else:
                self._in_short(change)
        return True

    def _build(self, change: Change, index: re.Match[str]) -> None:
        """An index that was broken off while it was built is there and not valid: it goes, and comes anew."""
        name = tables.place_of(index)
        rows = self._connection.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (name,)
        ).fetchall()
        if rows == [(True,)]:
            return
        if rows:
            self._connection.execute(f"DROP INDEX CONCURRENTLY {name}".encode())
        self._connection.execute(change.text.encode())

    # ACCESS EXCLUSIVE waits for every transaction that has the table, and everything that comes later waits
    # for it in turn: one open transaction of a user would stop all nodes and producers until it ends. So the
    # wait is short, and repeated (test_an_open_transaction_delays_the_migration_and_nothing_else).
    def _in_short(self, change: Change) -> None:
        began = said_at = time.monotonic()
        while True:
            try:
                return self._transaction(SHORT, change.text)
            except psycopg.Error as error:
                if code(error) not in TOO_LONG | CROSSED.keys():
                    raise
                now = time.monotonic()
                if now - began > PATIENCE:
                    raise StoreBusy(
                        f"{self.url}: {self._in_the_way()} for over {PATIENCE:g} s; end it and migrate again"
                    ) from error
            if now - said_at > QUIET:
                said_at = now
                logger.warning("%s: the migration waits, %s; it goes on trying", self.url, self._in_the_way())
            time.sleep(PAUSE * random.uniform(0.5, 1.5))

    def _transaction(self, bounds: str, text: str) -> None:
        connection = self._connection
        try:
            # Not prepared, however often it is said: several statements in one cannot be
            connection.execute(f"{BEGIN}; {bounds}".encode(), prepare=False)
            connection.execute(text.encode(), prepare=False)
            connection.execute("COMMIT")
        finally:
            if not connection.closed and connection.info.transaction_status:
                connection.execute("ROLLBACK")

    def _in_the_way(self) -> str:
        rows = self._connection.execute(OLDEST, (self._names.schema,)).fetchall()
        if not rows:
            return "other transactions hold its tables"
        return f"the transaction of process {rows[0][0]}, open for {rows[0][1]} s, holds its tables"


def violated(url: str, error: psycopg.errors.CheckViolation) -> StoreError:
    """Stored rows do not fit a constraint that is being added: no code of ours has written them."""
    return StoreError(
        f"cannot migrate {url}: {error.diag.message_primary}. Rows were changed by another hand: put them "
        "right, then migrate again; until then the older schema stays in use"
    )
