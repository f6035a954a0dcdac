"""The event stream of one reader over HTTP: server-sent events, with an end that comes when it must.

Ends when the reader leaves, is too slow, its session runs out, or the server stops: never by itself. A slow
reader's connection is cut, since nothing more can be said to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from millpond.api.stream.broadcaster import Listener, Watch, message

QUIET = 15.0  # seconds after which a comment keeps proxies from closing the connection
PATIENCE = 10.0  # seconds for a reader to take one message
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",
}
RETRY = b"retry: 2000\n\n"


class Stream(Response):
    """One stream, from its first words to its end."""

    def __init__(self, watch: Watch, listener: Listener, first: list[bytes], ends_at: float | None) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._watch = watch
        self._listener = listener
        self._first = first
        self._ends_at = ends_at

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until somebody ends it."""
        gone = asyncio.create_task(_gone(receive))
        telling = asyncio.create_task(self._tell(send))
        dropped = asyncio.create_task(self._listener.dropped.wait())
        try:
            await asyncio.wait({gone, telling, dropped}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return
            if dropped.done() and self._listener.reason != "slow":
                telling.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await telling
                await self._say_goodbye(send)
            elif dropped.done() or not telling.cancelled():
                await _cut(scope, gone)
        finally:
            self._watch.detach(self._listener)
            for task in (gone, telling, dropped):
                task.cancel()
            await asyncio.gather(gone, telling, dropped, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await _body(send, RETRY + b"".join(self._first[:2]))
        for data in self._first[2:]:
            await _body(send, data)
        while True:
            left = None if self._ends_at is None else self._ends_at - time.time()
            if left is not None and left <= 0:
                self._listener.drop("expired")
                await asyncio.sleep(PATIENCE)
            try:
                data = await asyncio.wait_for(self._listener.line.get(), min(QUIET, left or QUIET))
            except TimeoutError:
                data = b": still here\n\n"
            await _body(send, data)

    async def _say_goodbye(self, send: Send) -> None:
        with contextlib.suppress(TimeoutError, OSError):
            data = message("goodbye", {"reason": self._listener.reason})
            async with asyncio.timeout(0.5):
                await send({"type": "http.response.body", "body": data, "more_body": False})


async def _body(send: Send, data: bytes) -> None:
    """One message, taken by the reader in time."""
    await asyncio.wait_for(send({"type": "http.response.body", "body": data, "more_body": True}), PATIENCE)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(scope: dict[str, Any] | Scope, gone: asyncio.Task[None]) -> None:
    """Close the connection without waiting for what it has not taken."""
    transport = scope.get("millpond.transport")
    if transport is not None:
        transport.abort()
        await asyncio.wait({gone}, timeout=1.0)
