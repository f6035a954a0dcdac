"""The gate before every route: who asks, under which name, from which page, with how much.

Plain ASGI, before any routing, so that no route can be reached around it. A refused request is not read: a
body is taken only when everything else about the request is right, and only up to its bound.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from millpond.api.context import Desk
from millpond.api.methods import allowed
from millpond.api.problems import Problem, problem_of
from millpond.api.security.audit import address_of, peer_of, write_down
from millpond.api.security.tokens import NOBODY, Caller
from millpond.api.snapshot import Snapshot
from millpond.errors import MillpondError
from millpond.rules.http_access import (
    CHANGES,
    Network,
    client_of,
    is_for_us,
    is_same_origin,
    judge,
    may_read,
    need_of,
)

logger = logging.getLogger("millpond.api")
COOKIE = "millpond-session"
ENDLESS = "/api/v1/events"
FORWARDED = b"x-forwarded-for"
OPEN_ALWAYS = ("/livez", "/readyz")
ONCE = (b"host", b"authorization", b"origin", b"content-length", b"content-type", b"sec-fetch-site")
LONGEST_HEAD = 16_384  # bytes of headers
LOGIN = 8_192  # bytes that somebody who has shown nothing may send
TAKE = 30.0  # seconds for a client to take a piece of an answer
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    b"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


class Gate:
    """An ASGI app around the routes."""

    def __init__(self, inner: ASGIApp, desk: Desk, routes: Sequence[BaseRoute] = ()) -> None:
        self._inner = inner
        self._desk = desk
        self._routes = routes

    @property
    def proxies(self) -> tuple[Network, ...]:
        """Those whose word about who asks is taken."""
        return self._desk.options.proxies

    def warm(self) -> asyncio.Task[Snapshot]:
        """Ask the store how things stand, before anybody wants to know."""
        return self._desk.warm()

    def close(self) -> None:
        """End every stream; the server is about to stop."""
        self._desk.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._serve(scope, receive, _Reply(scope, send))
        else:
            await self._inner(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        try:
            headers = _headers(scope)
            scope["millpond.address"] = client_of(
                peer_of(scope), headers.get(FORWARDED, ""), self._desk.options.proxies
            )
            if route_path(scope) not in OPEN_ALWAYS:  # a probe is answered whatever the store does
                await self._desk.ends.ready(has_session=_cookie(headers) is not None)
            caller = self._admit(scope, headers)
            scope["millpond.caller"] = caller
            body = b""
            if scope["method"] in CHANGES:
                most = self._desk.limits.body if caller.shown == "right" else LOGIN
                body = await self._body(headers, receive, most)
        except (Problem, MillpondError) as error:  # also of a store that cannot say which sessions have ended
            problem = problem_of(error) or Problem("internal", type(error).__name__)
            await problem.response()(scope, receive, reply)
            return
        if scope["method"] in CHANGES:
            reply.before_start = lambda status: write_down(self._desk, scope, caller, status)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the server's own stays: it must know that no body comes
        await self._inner(scope, _whole(body, receive), reply)
        if not reply.is_started:
            logger.error("%s %s was not answered", scope["method"], scope["path"])

    # --- who -----------------------------------------------------------------------------------------
    def _admit(self, scope: Scope, headers: Mapping[bytes, str]) -> Caller:
        """Who asks; a Problem if that is not to be served."""
        options = self._desk.options
        method, path = scope["method"], route_path(scope)
        if not is_for_us(headers.get(b"host", ""), options.hosts, only_loopback=options.only_loopback):
            raise Problem("wrong-host", f"this server is not called {headers.get(b'host', '')!r:.100}")
        need = need_of(method, path)
        if need is None or (method == "HEAD" and path == ENDLESS):
            refusal = f"{method[:20]} is not a method of this path"
            raise Problem("method-not-allowed", refusal, allow=allowed(self._routes, path))
        if method in CHANGES:
            self._check_change(headers)
        elif not may_read(path, headers.get(b"sec-fetch-site"), headers.get(b"sec-fetch-mode")):
            raise Problem("foreign-origin", "another page asked for data of this server")
        caller = self._caller(headers)
        refused = judge(
            need,
            caller.scope,
            caller.shown,
            open_reads=options.open_reads,
            open_figures=options.open_metrics,
            path=path,
        )
        if refused is not None:
            if caller.shown == "wrong" and caller.how == "token":
                self._desk.tries.refuse(address_of(scope), time.time())
            raise Problem(refused.problem, refused.detail)
        return caller

    def _check_change(self, headers: Mapping[bytes, str]) -> None:
        same = is_same_origin(
            headers.get(b"origin"),
            headers.get(b"sec-fetch-site"),
            headers.get(b"host", ""),
            https=self._desk.options.behind_tls,
        )
        if not same:
            raise Problem(
                "foreign-origin", f"the request comes from {headers.get(b'origin', 'another page')!r:.100}"
            )
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem("not-json", f"the body is of type {kind!r:.100}")

    def _caller(self, headers: Mapping[bytes, str]) -> Caller:
        """A token counts before a cookie: who sends one means it."""
        said = headers.get(b"authorization")
        if said is not None:
            scheme, _, text = said.partition(" ")
            found = Caller(shown="wrong", how="token")
            if scheme.lower() == "bearer":
                found = self._desk.keyring.look(text.strip(), time.time())
            return found
        cookie = _cookie(headers)
        return NOBODY if cookie is None else self._desk.keyring.look_session(cookie, time.time())

    # --- how much ------------------------------------------------------------------------------------
    async def _body(self, headers: Mapping[bytes, str], receive: Receive, most: int) -> bytes:
        """The whole body; a Problem as soon as it is known to be too large."""
        length = headers.get(b"content-length", "")
        if length and (not length.isdigit() or int(length[:20]) > most):
            raise Problem("too-large", f"the body has {length[:20]} bytes, and {most} are the most")
        taken = bytearray()
        try:
            async with asyncio.timeout(self._desk.limits.body_within):
                while True:
                    part = await receive()
                    if part["type"] != "http.request":
                        raise Problem("bad-request", "the request ended before its body did")
                    taken += part.get("body", b"")
                    if len(taken) > most:
                        raise Problem("too-large", f"the body has more than {most} bytes")
                    if not part.get("more_body", False):
                        return bytes(taken)
        except TimeoutError:
            raise Problem("bad-request", "the body did not come in time") from None


class _Reply:
    """The way out: adds the headers that every answer has, and gives up a client that takes nothing."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._is_head = scope["method"] == "HEAD"
        self.is_started = False
        self.before_start: Any = None

    async def __call__(self, part: Message) -> None:
        if part["type"] == "http.response.start":
            if self.before_start is not None:
                await self.before_start(part["status"])
            self.is_started = True
            named = {name.lower() for name, _ in part.get("headers", ())}
            part["headers"] = [*part.get("headers", ()), *(pair for pair in HEADERS if pair[0] not in named)]
        elif self._is_head:
            part = {**part, "body": b""}
        try:
            await asyncio.wait_for(self._send(part), TAKE)
        except TimeoutError:
            transport = self._scope.get("millpond.transport")
            if transport is not None:
                transport.abort()
            raise


def route_path(scope: Scope) -> str:
    """The path below where the app is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and path.startswith(root + "/"):
        return path[len(root) :]
    return "/" if root and path == root else path


def cookie_name(host: str) -> str:
    """The name of the session's cookie: browsers keep cookies of all ports of a host together."""
    _, colon, port = host.rpartition(":")
    return f"{COOKIE}-{port}" if colon and port.isdigit() else COOKIE


def _headers(scope: Scope) -> dict[bytes, str]:
    """Headers by name; one that must not come twice and does is an attack."""
    found: dict[bytes, str] = {}
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LONGEST_HEAD:
        raise Problem("head-too-large", f"the headers have more than {LONGEST_HEAD} bytes")
    for name, value in scope["headers"]:
        if name in found and name in ONCE:
            raise Problem("bad-request", f"the header {name.decode('latin-1')!r} came twice")
        found[name] = (
            value.decode("latin-1") if name not in found else f"{found[name]}; {value.decode('latin-1')}"
        )
    return found


def _cookie(headers: Mapping[bytes, str]) -> str | None:
    """The session that came along; None if there is none. Other servers of this host set cookies, too."""
    text = headers.get(b"cookie")
    name = cookie_name(headers.get(b"host", ""))
    if text is None or name not in text:
        return None
    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _whole(body: bytes, receive: Receive) -> Receive:
    """The body that was read, as if it came now; then whatever comes."""
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return parts.pop() if parts else await receive()

    return read
