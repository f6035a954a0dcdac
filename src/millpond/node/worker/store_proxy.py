"""The way from a worker to a store that lives in the node's memory: a socket only this user can open.

`memory://` exists in one process. A job that enqueues another, asks for one, or triggers or switches a
recurring task does so through the node; the other verbs stay there. Both ends run the same code, so nothing
is versioned.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from millpond import errors
from millpond.errors import MillpondError, StoreRefused, StoreUnavailable
from millpond.job import Enqueued, Job, NewJob
from millpond.store.clock import Clock
from millpond.store.protocol import Document, Entry, Filter, Store, Tick

logger = logging.getLogger("millpond")
LENGTH = struct.Struct("<I")
AGAIN = 0.1  # seconds until the next try to let somebody in
_encode = msgspec.msgpack.Encoder().encode


class Page(msgspec.Struct, frozen=True):
    """The arguments of `record`."""

    name: str
    value: bytes | None
    version: int | None


class Lines(msgspec.Struct, frozen=True):
    """The arguments of `log`."""

    name: str
    entries: list[bytes]
    after: int
    limit: int
    keep: int


ARGUMENTS: dict[str, Any] = {
    "enqueue": list[NewJob],
    "get": list[str],
    "cancel": Filter,
    "plan": list[Tick],
    "record": Page,
    "log": Lines,
}
ANSWERS: dict[str, Any] = {
    "enqueue": list[Enqueued],
    "get": list[Job | None],
    "cancel": int,
    "plan": list[bool],
    "record": Document,
    "log": list[Entry],
}


class Doorway:
    """The node's end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = tempfile.mkdtemp(prefix="millpond-")  # 0700
        self.path = str(Path(self._folder) / "store")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        self._is_open = True
        self._thread = threading.Thread(target=self._accept, name="millpond-doorway", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nobody comes in any more."""
        self._is_open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would leave the thread in accept()
        self._thread.join(1.0)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self) -> None:
        while self._is_open:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                if self._is_open:  # out of descriptors, most likely: others may be given back
                    logger.error("A worker could not reach the store: %s", error)
                    time.sleep(AGAIN)
                continue
            threading.Thread(
                target=self._serve, args=(connection,), name="millpond-doorway", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (request := _receive(connection)) is not None:
                    _send(connection, self._answer(request))
            except OSError:
                return

    def _answer(self, request: bytes) -> bytes:
        try:
            verb, raw = msgspec.msgpack.decode(request, type=tuple[str, msgspec.Raw])
            argument = msgspec.msgpack.decode(raw, type=ARGUMENTS[verb])
            named = msgspec.structs.asdict(argument) if isinstance(argument, Page | Lines) else None
            call = getattr(self._store, verb)
            return _encode((True, call(argument) if named is None else call(**named)))
        except MillpondError as error:
            return _encode((False, (type(error).__name__, str(error))))
        except Exception as error:
            logger.exception("A worker's request failed")
            return _encode((False, ("StoreError", str(error))))


class StoreOfTheNode:
    """The worker's end: a store in the node's memory, with the verbs that jobs have a use for."""

    def __init__(self, path: str) -> None:
        self.url = "memory://"
        self.clock = Clock()
        self._path = path
        self._here = threading.local()

    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none."""
        if transaction is not None:
            raise StoreRefused("memory:// has no transactions that could be joined from a worker")
        found: list[Enqueued] = self._ask("enqueue", list(jobs))
        return found

    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked."""
        found: list[Job | None] = self._ask("get", list(ids))
        return found

    def cancel(self, chosen: Filter) -> int:
        """End jobs."""
        number: int = self._ask("cancel", chosen)
        return number

    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        """Record ticks and enqueue their jobs."""
        found: list[bool] = self._ask("plan", list(ticks))
        return found

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document."""
        found: Document = self._ask("record", Page(name, value, version))
        return found

    def log(
        self, name: str, entries: Sequence[bytes] = (), *, after: int = 0, limit: int = 100, keep: int = 1000
    ) -> list[Entry]:
        """Append to a bounded log and read on from a number."""
        found: list[Entry] = self._ask("log", Lines(name, list(entries), after, limit, keep))
        return found

    def close(self) -> None:
        """Hang up; the next call opens a new connection."""
        self._here = threading.local()

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)
        raise StoreRefused(f"{verb} of memory:// works in the process of the node only, not in a worker")

    def _ask(self, verb: str, argument: Any) -> Any:
        answer: bytes | None = None
        try:
            connection = self._connected()
            _send(connection, _encode((verb, argument)))
            answer = _receive(connection)
        except OSError as error:
            raise StoreUnavailable(f"the node that holds memory:// does not answer: {error}") from error
        finally:
            if answer is None:  # also when a signal handler raised: the next call must not read this answer
                self._hang_up()
        if answer is None:
            raise StoreUnavailable("the node that holds memory:// is gone")
        good, raw = msgspec.msgpack.decode(answer, type=tuple[bool, msgspec.Raw])
        if good:
            return msgspec.msgpack.decode(raw, type=ANSWERS[verb])
        name, text = msgspec.msgpack.decode(raw, type=tuple[str, str])
        raise getattr(errors, name, MillpondError)(text)

    def _hang_up(self) -> None:
        connection: socket.socket | None = getattr(self._here, "connection", None)
        self._here.connection = None
        if connection is not None:
            connection.close()

    def _connected(self) -> socket.socket:
        connection: socket.socket | None = getattr(self._here, "connection", None)
        if connection is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self._path)
            self._here.connection = connection
        return connection


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(LENGTH.pack(len(data)) + data)


def _receive(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, LENGTH.size)
    return None if head is None else _exactly(connection, *LENGTH.unpack(head))


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            return None
        data += part
    return bytes(data)
