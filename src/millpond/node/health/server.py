"""The health port: one thread that answers probes and scrapes over HTTP, whatever the clients do.

Nothing a client sends, or does not send, takes more than a bounded time and memory, and none of it can hold
up another client or the node. What is answered is in `probes.py`.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from http import HTTPStatus

from millpond.errors import OptionError
from millpond.node.health.routes import HealthOptions, Probes, Report, as_bytes, failed

logger = logging.getLogger("millpond.node")
LONGEST_REQUEST = 8_192  # bytes
PATIENCE = 5.0  # seconds from a client's connect to its last byte
MOST_CLIENTS = 64  # beyond it the one that has been connected longest has to go
_END = b"\r\n\r\n"
_READ_CHUNK = 4_096


class _Client:
    """One connection: first its request comes in, then the response goes out."""

    __slots__ = ("ends_at", "incoming", "outgoing", "socket")

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self.socket = connection
        self.ends_at = ends_at
        self.incoming = bytearray()
        self.outgoing = memoryview(b"")


class HealthServer:
    """Answers on the health port from `start()` to `stop()`."""

    def __init__(self, report: Report, options: HealthOptions | None = None) -> None:
        self._options = options or HealthOptions()
        self._probes = Probes(report, self._options)
        self._clients: dict[socket.socket, _Client] = {}  # the oldest first
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: host and port."""
        if self._listener is None:
            raise RuntimeError("the health port is not open: call start() first")
        host, port, *_ = self._listener.getsockname()
        return host, port

    def start(self) -> None:
        """Open the port and begin to answer. OptionError if it cannot be had."""
        self._listener = _listen(self._options.host, self._options.port)
        self._selector = selectors.DefaultSelector()
        self._bell, self._rope = socket.socketpair()  # pulled to stop the thread
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="millpond-health", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Close the port. Safe to call twice."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._rope.send(b"x")
        thread.join(timeout)

    # --- the thread ----------------------------------------------------------------------------------
    def _serve(self) -> None:
        try:
            while self._turn():
                pass
        except Exception:
            logger.exception("The health port failed and is closed; the node goes on")
        finally:
            self._close_all()

    def _turn(self) -> bool:
        """One round; False when it is time to stop."""
        for key, _ in self._selector.select(self._until_next_end()):
            if key.fileobj is self._bell:
                return False
            if key.fileobj is self._listener:
                self._accept()
            elif client := self._clients.get(key.fileobj):  # type: ignore[call-overload]
                self._step(client)
        now = time.monotonic()
        for client in [client for client in self._clients.values() if client.ends_at <= now]:
            self._drop(client)
        return True

    def _until_next_end(self) -> float | None:
        first = next(iter(self._clients.values()), None)  # all have the same patience
        return None if first is None else max(0.0, first.ends_at - time.monotonic())

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            connection, _ = self._listener.accept()
        except OSError as error:  # gone again, or no descriptor is free: make room and do not spin
            logger.debug("A client could not be accepted: %s", error)
            self._drop_oldest()
            time.sleep(0.05)
            return
        connection.setblocking(False)
        if len(self._clients) >= MOST_CLIENTS:
            self._drop_oldest()
        self._clients[connection] = _Client(connection, time.monotonic() + PATIENCE)
        self._selector.register(connection, selectors.EVENT_READ)

    def _step(self, client: _Client) -> None:
        try:
            if not client.outgoing and not self._receive(client):
                return
            sent = client.socket.send(client.outgoing)
            client.outgoing = client.outgoing[sent:]
            if not client.outgoing:
                client.socket.shutdown(socket.SHUT_WR)
                self._drop(client)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # the client is gone
            self._drop(client)

    def _receive(self, client: _Client) -> bool:
        """Take what came; True when there is a response to send."""
        data = client.socket.recv(_READ_CHUNK)
        client.incoming += data
        end = client.incoming.find(_END)
        if end >= 0:
            response = self._probes.answer(bytes(client.incoming[:end]))
        elif len(client.incoming) > LONGEST_REQUEST:
            response = as_bytes(failed(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        elif data:
            return False
        else:
            self._drop(client)
            return False
        client.outgoing = memoryview(response)
        self._selector.modify(client.socket, selectors.EVENT_WRITE)
        return True

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._clients.values()), None)
        if oldest is not None:
            self._drop(oldest)

    def _drop(self, client: _Client) -> None:
        if self._clients.pop(client.socket, None) is not None:
            self._selector.unregister(client.socket)
            client.socket.close()

    def _close_all(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()
        for end in (self._listener, self._bell, self._rope):
            if end is not None:
                end.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OptionError(f"the health port cannot listen on {host!r}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(MOST_CLIENTS)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"the health port {host}:{port} cannot be opened: {error.strerror}. Give another, or 0 for any"
        ) from error
    return listener
