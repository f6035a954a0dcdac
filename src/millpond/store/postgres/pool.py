"""The connections of a PostgreSQL store: made, kept for the next call, and never kept once they are doubtful.

Two sorts are kept apart: those for transactions, and brisk ones for single statements. Whether a pooler
stands before the server is found out here, for every connection anew: a name may lead to one at any time.
"""

from __future__ import annotations

import select
import threading
from collections import deque

import psycopg
from psycopg import Connection

from millpond.errors import StoreUnavailable
from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.errors import NOT_OUR_SESSION, code, ends_session, is_lost
from millpond.store.postgres.hosts import hosts_of
from millpond.store.postgres.ids import read_ids_as_text
from millpond.store.postgres.timeouts import KEEPALIVES, Bounds
from millpond.store.postgres.url import PostgresAddress
from millpond.store.sql.query import Row

KEPT = 8  # connections of a sort kept for the next call


class ConnectionPool:
    """The connections of one store."""

    looks = True  # for a pooler, with each new connection

    def __init__(self, address: PostgresAddress, limits: Bounds) -> None:
        self.hosts = hosts_of(address)
        self.pooled: bool | None = None  # a pooler stands between us and the server; None: not known yet
        self.hang_ups = 0  # idle connections that the server was found to have closed
        self._address, self._limits = address, limits
        self._guard = threading.Lock()
        self._idle: dict[bool, deque[PatientConnection]] = {False: deque(), True: deque()}  # True: brisk

    def take(self, *, brisk: bool = False) -> PatientConnection:
        """A connection for one call: an idle one, or a new one."""
        idle = self._idle[brisk]
        with self._guard:
            while idle:
                connection = idle.pop()
                is_cut = not connection.closed and _has_hung_up(connection)
                if self.is_good(connection) and not is_cut:
                    return connection
                self.hang_ups += is_cut
                connection.close()
        return self._connect(brisk=brisk)

    def is_good(self, connection: PatientConnection) -> bool:
        """Has nothing been learned, since it was made, that speaks against it?"""
        return not connection.closed and connection.generation == self.hosts.generation

    def give_back(self, connection: PatientConnection, *, brisk: bool = False) -> None:
        """Keep it for the next call, if it is good and there is room."""
        if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()
        idle = self._idle[brisk]
        with self._guard:
            if self.is_good(connection) and len(idle) < KEPT:
                idle.append(connection)
                return
        connection.close()

    def learn(self, connection: PatientConnection, error: psycopg.Error) -> None:
        """A call on this connection ended with an error: close what must not be used again.

        A session that began while its server was read-only stays so when the server is not, or when its name
        leads elsewhere, and a dead server costs each connection to it a timeout. Kept, either fails call
        after call for as long as the process lives; so all of them go at the first sign, also those of other
        stores of this process, by the generation (test_no_session_that_began_read_only_is_kept,
        test_after_one_dead_connection_no_other_is_tried).
        """
        if code(error) in NOT_OUR_SESSION and self._address.prepare == "auto":
            self.pooled = True  # from now on nothing relies on the session
        if ends_session(error):
            connection.close()
            if is_lost(error):
                self.hosts.failed(*connection.place, connection.generation)
                self.close()

    def prepares(self) -> bool:
        """Prepared statements live in a session: not through a pooler."""
        return self._address.prepare == "on" or (self._address.prepare == "auto" and not self.pooled)

    def listener(self) -> PatientConnection:
        """A connection of its own, for notifications."""
        return self._open(listens=True)

    def _connect(self, *, brisk: bool) -> PatientConnection:
        connection = self._open()
        try:
            if self.looks:
                ((pid,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
                self.pooled = bool(self.pooled) or pid != connection.info.backend_pid
            if not self.pooled:
                connection.execute((self._limits.brisk if brisk else self._limits.session).encode())
        except psycopg.Error as error:
            connection.close()
            raise StoreUnavailable(f"cannot reach {self._address.shown}: {error}") from error
        if not self.prepares():
            connection.prepare_threshold = None  # not even COMMIT, which the driver would do by itself
        return connection

    def _open(self, *, listens: bool = False) -> PatientConnection:
        elsewhere = listens and self._address.listens_elsewhere
        limits, generation = self._limits, self.hosts.generation
        parameters = self._address.listen_parameters if elsewhere else self.hosts.parameters()
        bounds = {"connect_timeout": limits.connect, "tcp_user_timeout": limits.unacknowledged} | KEEPALIVES
        try:
            connection = PatientConnection.connect(autocommit=True, **(parameters | bounds))
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"cannot reach {self._address.shown}: {error}") from error
        read_ids_as_text(connection)
        connection.patience, connection.generation = limits.answer, generation
        connection.place = (connection.info.host, connection.info.port)
        if not elsewhere:
            self.hosts.answered(*connection.place)
        return connection

    def close(self) -> None:
        """Close those that are idle."""
        with self._guard:
            connections = [*self._idle[False], *self._idle[True]]
            self._idle = {False: deque(), True: deque()}
        for connection in connections:
            connection.close()

    def before_fork(self) -> None:
        """The child must not find the guard held by a thread it does not have."""
        self._guard.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        """The connections are the parent's: the driver closes none that its process did not open."""
        if in_child:
            self._idle = {False: deque(), True: deque()}
        self._guard.release()


def _has_hung_up(connection: Connection[Row]) -> bool:
    """Has the server closed this connection while it lay idle? Then nothing was sent and nothing lost."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
