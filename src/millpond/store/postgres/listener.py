"""Waiting for a notification of PostgreSQL that names a queue: a hint that there may be work in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import psycopg

from millpond.store.postgres.connection import PatientConnection
from millpond.store.postgres.pool import ConnectionPool
from millpond.store.postgres.timeouts import WHEN_VANISHED
from millpond.store.postgres.url import PostgresAddress

POLL = 0.25  # how long a wait sleeps where no notification can arrive


class Listener:
    """The one connection of a store that listens, made when it is first needed."""

    def __init__(self, connections: ConnectionPool, address: PostgresAddress, channel: str) -> None:
        self._connections, self._address, self._channel = connections, address, channel
        self._connection: PatientConnection | None = None
        self._turn = threading.Lock()  # held by the one thread that listens

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a notification names one of the queues, at most `timeout`."""
        unheard = self._connections.pooled and not self._address.listens_elsewhere
        turn = self._turn
        if not self._address.notify or unheard or not turn.acquire(blocking=False):  # a second thread, too
            time.sleep(min(timeout, POLL))
            return False
        try:
            for notice in self._listening().notifies(timeout=timeout):
                if notice.payload in queues:
                    return True
        except psycopg.Error as error:
            self._stop(error)
            time.sleep(min(timeout, POLL))
        finally:
            turn.release()
        return False

    def close(self) -> None:
        """Close the connection; the next wait opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def forget(self) -> None:
        """In a child after a fork: the connection, and a thread that waits on it, are the parent's."""
        self._connection, self._turn = None, threading.Lock()

    def _listening(self) -> PatientConnection:
        connection = self._connection
        if connection is not None and not self._connections.is_good(connection):
            connection.close()
        if connection is None or connection.closed:
            connection = self._connection = self._connections.listener()
            connection.execute(f'{WHEN_VANISHED}; LISTEN "{self._channel}"'.encode())
        return connection

    def _stop(self, error: psycopg.Error) -> None:
        """The connection has failed: what that shows of the server holds for the others."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if not self._address.listens_elsewhere:
                self._connections.learn(connection, error)
            connection.close()
