"""Waiting for work on Redis: a subscription of its own for every thread that waits.

It stays open between waits, so that what is announced in between is heard by the next one. Only a hint:
when the connection breaks or an announcement is lost, the wait ends by its timeout.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from millpond.errors import StoreUnavailable
from millpond.store.redis.connection import Server

STEP = 1.0  # the longest the socket is asked to wait at once


class Subscription:
    """What one thread of one process listens to."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._owner = os.getpid()
        self._connection: Any = None
        self._queues: set[str] = set()

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until one of the queues is announced, at most `timeout`."""
        until = time.monotonic() + timeout
        if self._owner != os.getpid():  # that connection is our parent's
            self._owner, self._connection, self._queues = os.getpid(), None, set()
        try:
            if self._subscribe([queue for queue in queues if queue not in self._queues]):
                return True
            return self._listen(queues, until)
        except (TypeError, ValueError, AttributeError):  # closed by another thread while we listened
            if self._connection is None:
                return False
            raise
        except self._server.failures as error:
            self.close()
            if isinstance(error, StoreUnavailable):
                raise
            raise StoreUnavailable(f"{self._server.url} cannot be reached: {error}") from error

    def _subscribe(self, new: Sequence[str]) -> bool:
        """Listen to more queues; True if one of them has a line already."""
        if self._connection is None:
            self._connection = self._server.dedicated()
            self._queues = set()
        if not new:
            return False
        prefix = self._server.key.removesuffix("schema")
        self._connection.send_command("SUBSCRIBE", *(f"{prefix}wake:{queue}" for queue in new))
        for _ in new:
            self._connection.read_response(disable_decoding=True)
        self._queues.update(new)
        return any(self._server.send("EXISTS", f"{prefix}lines:{queue}") for queue in new)

    def _listen(self, queues: Sequence[str], until: float) -> bool:
        """What came since the last wait is one hint, however much it was; of what comes later, the first."""
        connection = self._connection
        wanted = {f"{self._server.key.removesuffix('schema')}wake:{queue}".encode() for queue in queues}
        heard = False
        while connection.can_read(timeout=0.0):
            heard = connection.read_response(disable_decoding=True)[1] in wanted or heard
        while not heard and (left := until - time.monotonic()) > 0 and self._connection is connection:
            if connection.can_read(timeout=min(STEP, left)):
                heard = connection.read_response(disable_decoding=True)[1] in wanted
        return heard

    def close(self) -> None:
        """Stop listening."""
        connection, self._connection = self._connection, None
        self._queues = set()
        if connection is not None and self._owner == os.getpid():
            connection.disconnect()
