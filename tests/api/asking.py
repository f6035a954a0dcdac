"""A client that calls the ASGI app itself, and the answers it gets. No network, no framework."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from millpond.api.app import build
from millpond.api.options import ApiOptions, Limits
from millpond.api.security.gate import Gate
from millpond.api.security.tokens import token
from millpond.app import App

ADMIN = "admin-token-for-tests-0123456789"
READ = "read-token-for-tests-0123456789"
OLD = "expired-token-for-tests-0123456789"
TOKENS = (token("admin", ADMIN), token("read", READ), token("admin", OLD, expires_at=1.0))
HOST = "127.0.0.1:8640"


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks as somebody."""

    def __init__(self, gate: Gate, token: str | None = None) -> None:
        self.gate = gate
        self.token = token

    def as_(self, token: str | None) -> Client:
        return Client(self.gate, token)

    async def get(self, path: str, **options: Any) -> Answered:
        return await self.ask("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answered:
        return await self.ask("POST", path, {} if body is None else body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answered:
        return await self.ask("PUT", path, body, **options)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        client: str = "127.0.0.1",
        **query: Any,
    ) -> Answered:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        scope = self.scope(method, path, headers, client, query, has_body=body is not None)
        sent: list[Any] = []
        incoming = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Any:
            if not incoming:
                await asyncio.Event().wait()
            return incoming.pop()

        async def send(part: Any) -> None:
            sent.append(part)

        await self.gate(scope, receive, send)
        assert sent, "nothing was answered"
        start, *parts = sent
        found = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answered(start["status"], found, b"".join(part.get("body", b"") for part in parts))

    def scope(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None,
        client: str,
        query: dict[str, Any],
        *,
        has_body: bool,
    ) -> dict[str, Any]:
        said = {"host": HOST}
        if has_body:
            said["content-type"] = "application/json"
        if self.token is not None:
            said["authorization"] = f"Bearer {self.token}"
        said.update(headers or {})
        path, _, rest = path.partition("?")
        text = "&".join(filter(None, (rest, urlencode(query, doseq=True))))
        return {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": text.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in said.items()],
            "client": (client, 50_000),
            "server": ("127.0.0.1", 8640),
            "root_path": "",
        }

    @contextlib.asynccontextmanager
    async def listening(
        self, headers: dict[str, str] | None = None, client: str = "127.0.0.1", **query: Any
    ) -> AsyncIterator[Reader]:
        """The event stream, read as it comes."""
        reader = Reader()
        scope = self.scope("GET", "/api/v1/events", headers, client, query, has_body=False)
        task = asyncio.create_task(self.gate(scope, reader.receive, reader.send))
        reader.task = task
        try:
            yield reader
        finally:
            reader.left.set()
            await asyncio.wait_for(task, 5)


class Reader:
    """Who reads a stream, at its own pace."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self.status: int | None = None
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._text = ""

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, part: Any) -> None:
        await self.takes.wait()
        if part["type"] == "http.response.start":
            self.status = part["status"]
        self._text += part.get("body", b"").decode()
        while "\n\n" in self._text:
            block, _, self._text = self._text.partition("\n\n")
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                self._events.put_nowait({**fields, "data": json.loads(fields["data"])})

    async def next(self, event: str) -> dict[str, Any]:
        """The next event of that name; others are passed over."""
        while True:
            found = await asyncio.wait_for(self._events.get(), 20)
            if found["event"] == event:
                return found


def gate_for(app: App, **options: Any) -> Gate:
    """The API of an app, with the tokens of the tests."""
    limits = Limits(**options.pop("limits", {}))
    return build(app, ApiOptions(tokens=lambda: TOKENS, **{"open_reads": True, "limits": limits, **options}))
