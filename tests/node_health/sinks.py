"""A real HTTP server on loopback that keeps what is posted to it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any, NamedTuple

LIMIT = 10  # seconds for what takes milliseconds


class Posted(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Sink:
    """Answers with `statuses`, one after the other; the last one for ever."""

    def __init__(self, *statuses: int, location: str = "", context: ssl.SSLContext | None = None) -> None:
        self.posted: SimpleQueue[Posted] = SimpleQueue()
        self.count = 0
        self.statuses = list(statuses or (204,))
        self.location = location
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = sink.statuses[min(sink.count, len(sink.statuses) - 1)]
                sink.count += 1
                self.send_response(status)
                if sink.location:
                    self.send_header("Location", sink.location)
                self.end_headers()
                sink.posted.put(Posted(self.path, dict(self.headers), body))

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]

    def url(self, host: str = "127.0.0.1", path: str = "/hook", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@contextmanager
def listening(*statuses: int, **options: Any) -> Iterator[Sink]:
    sink = Sink(*statuses, **options)
    thread = threading.Thread(target=sink.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield sink
    finally:
        sink.server.shutdown()
        thread.join(LIMIT)
        sink.server.server_close()
