"""The API as a server of its own: uvicorn with the deadlines it lacks, and an end within a second.

A client that sends nothing, or a header drop by drop, is cut off; a connection that was closed but whose peer
takes nothing is cut off, too. At a signal the event streams are ended first: nothing else would end them.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from millpond.api.security.gate import LONGEST_HEAD, Gate
from millpond.rules.http_access import Network, counted_as, is_one_of

logger = logging.getLogger("millpond.api")
HEAD = 10.0  # seconds for a request's head to come
IDLE = 15.0  # seconds that a connection is kept without a request
CLOSING = 5.0  # seconds for the last of an answer to be taken
MOST_CONNECTIONS = 400  # of which requests are served; the rest is told to come back
MOST_OPEN = 500  # beyond it a connection is closed without a word
MOST_IDLE = (
    50  # connections of one address that ask for nothing; the one that has done so for longest is closed
)
GRACE = 1  # seconds that requests have when the server stops
BACKLOG = 256
FIRST_LOOK = 2.0  # seconds for it before the server is said to be there all the same


class Idle:
    """The connections that ask for nothing, by address, in the order in which they began to.

    A connection costs its client nothing, and there is room for some hundred. One address must not take it
    all: its oldest idle connection makes room for its next, so that no other client is turned away, and other
    clients of the same address get in as well (`test_idle_connections_of_one_address_leave_room_for_others`).
    """

    def __init__(self, proxies: Collection[Network] = ()) -> None:
        """Proxies that are trusted keep as many as they like: they come for everybody."""
        self._proxies = proxies
        self._by_address: dict[str, OrderedDict[Patient, None]] = {}

    def add(self, connection: Patient) -> None:
        """It waits for a request; the oldest of its address is closed if there are too many."""
        if is_one_of(connection.address, self._proxies):
            return
        line = self._by_address.setdefault(counted_as(connection.address), OrderedDict())
        line[connection] = None
        if len(line) > MOST_IDLE:
            oldest, _ = line.popitem(last=False)
            oldest.transport.abort()

    def remove(self, connection: Patient) -> None:
        """It has a request, or is gone."""
        key = counted_as(connection.address)
        line = self._by_address.get(key, OrderedDict())
        line.pop(connection, None)
        if not line:
            self._by_address.pop(key, None)


class Patient(H11Protocol):
    """A connection whose patience ends."""

    idle = Idle()
    address = ""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head; let the app cut the connection."""
        super().connection_made(transport)
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self.idle.add(self)
        if len(self.connections) > MOST_OPEN:
            transport.abort()
            return
        inner = self.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["millpond.transport"] = transport
            await inner(scope, receive, send)

        self.app = app
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """A piece of a request."""
        super().data_received(data)
        if self._is_between_requests():
            self._wait_for_head()
        else:
            self._stop_waiting()
            self.idle.remove(self)

    def on_response_complete(self) -> None:
        """A request was answered: from here on it waits for the next."""
        super().on_response_complete()
        if self._is_between_requests() and not self.transport.is_closing():
            self.idle.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self.idle.remove(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_between_requests():
            self.transport.abort()

    def _is_between_requests(self) -> bool:
        cycle: Any = self.cycle  # None before the first
        return cycle is None or bool(cycle.response_complete)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more came: close, and do not wait for what the peer does not take."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(CLOSING, self.transport.abort)


class Server(uvicorn.Server):
    """A uvicorn that ends its streams before it waits for its connections."""

    def __init__(self, gate: Gate, ready: Callable[[], object] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                gate,
                http=type("Patient", (Patient,), {"idle": Idle(gate.proxies)}),
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                log_level="error",  # a crowd that is turned away must not fill the log
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=True,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=int(IDLE),
                timeout_graceful_shutdown=GRACE,
                h11_max_incomplete_event_size=LONGEST_HEAD,
                backlog=BACKLOG,
            )
        )
        self._gate = gate
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; say so when nobody who comes has to wait for the first look at the store."""
        await super().startup(sockets)
        await asyncio.wait([self._gate.warm()], timeout=FIRST_LOOK)
        if self._ready is not None:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye to those who listen, then stop."""
        self._gate.close()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; OSError if it cannot be had."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind(address)
        found.listen(BACKLOG)
        found.setblocking(False)
    except OSError:
        found.close()
        raise
    return found
