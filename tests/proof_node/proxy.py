"""A TCP proxy between a node and its server that can fall silent, or swallow an answer and hang up.

Silent, it closes nothing: bytes wait and new connections are accepted and not served, as when packets are
dropped on the way. It never changes a byte.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from random import Random
from typing import Self
from urllib.parse import urlsplit

Tells = Callable[[bytes], bool]
RESET = struct.pack("ii", 1, 0)  # close with a reset, not with a farewell


class Proxy:
    """Forwards to the server behind a store's URL. Only answers that come after a request of which `asks` is
    true may be swallowed."""

    def __init__(self, url: str, asks: Tells | None = None) -> None:
        self._server = (urlsplit(url).hostname, urlsplit(url).port)
        self._asks = asks or (lambda _: True)
        self._answers: Tells = lambda _: True
        self._flows = threading.Event()
        self._flows.set()
        self._guard = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._lost: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = url.replace(f":{self._server[1]}", f":{self._listener.getsockname()[1]}", 1)
        self.swallowed, self._most, self._every, self._draw = 0, 0, 1, Random(4)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._flows.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._guard:
            sockets = list(self._sockets)
        for one in sockets:
            _hang_up(one)

    def fall_silent(self) -> None:
        """From now on nothing comes through, and nothing is closed."""
        self._flows.clear()

    def speak_again(self) -> None:
        """What waited goes on."""
        self._flows.set()

    def lead_to(self, url: str) -> None:
        """New connections go to this server, as when a name is given to another one."""
        self._server = (urlsplit(url).hostname, urlsplit(url).port)

    def lose_all(self) -> None:
        """Whatever is open now stays open, and nothing comes through it any more; new connections work."""
        with self._guard:
            self._lost |= self._sockets

    def swallow(self, most: int, every: int, answers: Tells) -> None:
        """One in `every` of the answers of which `answers` is true is not delivered and its connection reset,
        `most` times. Which ones is drawn: counted, they could fall on the same step of each try for ever."""
        with self._guard:
            self._answers = answers
            self._most, self._every = self.swallowed + most, every

    # --- pumping ----------------------------------------------------------------------------------------
    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._flows.wait()
        try:
            server = socket.create_connection(self._server)
        except OSError:
            _hang_up(client)
            return
        with self._guard:
            self._sockets |= {client, server}
        asked = threading.Event()
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._pump, args=(server, client, asked, False), daemon=True)
        back.start()
        self._pump(client, server, asked, True)
        back.join()
        with self._guard:
            self._sockets -= {client, server}
            self._lost -= {client, server}
        client.close()
        server.close()

    def _pump(self, here: socket.socket, there: socket.socket, asked: threading.Event, asking: bool) -> None:
        """Until either end is closed."""
        with contextlib.suppress(OSError):
            while data := here.recv(1 << 16):
                self._flows.wait()
                if here in self._lost:
                    continue
                if asking:
                    if self._asks(data):
                        asked.set()
                elif asked.is_set() and self._answers(data):
                    asked.clear()
                    if self._is_to_be_swallowed():
                        break
                there.sendall(data)
        _hang_up(there if asking else here)
        _hang_up(here if asking else there)

    def _is_to_be_swallowed(self) -> bool:
        with self._guard:
            if self.swallowed >= self._most or self._draw.randrange(self._every):
                return False
            self.swallowed += 1
            return True


def _hang_up(one: socket.socket) -> None:
    """Reset a connection; the thread that reads it finds its end."""
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        one.shutdown(socket.SHUT_RDWR)
