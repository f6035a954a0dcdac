"""What the health port answers: one request in, one response out. Reads no socket.

Only GET and HEAD, four paths, and requests that name this machine: a web page must not be able to reach a
node through a name that it points at it. The probes say yes or no and one word; the rest needs a token.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import re
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from millpond.errors import OptionError
from millpond.node.observability import metrics
from millpond.node.observability.report import NodeReport
from millpond.node.scaling.fleet import scale_document
from millpond.rules.node.health import DEAF_AFTER, Verdict, is_live, is_ready

logger = logging.getLogger("millpond.node")
SHORTEST_TOKEN = 16
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE = re.compile(rb"([A-Z]{1,20}) (/[!-~]{0,1000}) HTTP/1\.[01]")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_ONCE = (b"host", b"authorization")  # headers of which a second one is an attack

Report = Callable[[], NodeReport]


class HealthOptions(NamedTuple):
    """Where the health port is and who may read what."""

    host: str = "127.0.0.1"
    port: int = 8650  # 0: any that is free
    token: str | None = None  # for /metrics and /scale
    open_metrics: bool = False  # both without a token
    hosts: tuple[str, ...] = ()  # names beside this machine's own by which it may be asked
    deaf_after: float = DEAF_AFTER  # seconds without a round until it is not ready


class Request(NamedTuple):
    """A request as it was understood."""

    method: str
    path: str
    headers: dict[bytes, bytes]


class Response(NamedTuple):
    """A response before it is bytes."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = "application/json"
    extra: tuple[str, ...] = ()


def check_options(options: HealthOptions) -> HealthOptions:
    """The options, or OptionError."""
    if type(options.port) is not int or not 0 <= options.port <= 65_535:
        raise OptionError(f"the health port must be a whole number from 0 to 65535, not {options.port!r:.80}")
    if options.token is not None and not SHORTEST_TOKEN <= len(options.token) <= 1_000:
        raise OptionError(
            f"the token for /metrics must have {SHORTEST_TOKEN} to 1000 characters: "
            "make one with python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if options.token is not None and not re.fullmatch(r"[!-~]+", options.token):
        raise OptionError("the token for /metrics must be of visible ASCII characters without spaces")
    return options


def read_request(head: bytes) -> Request | None:
    """The request whose head this is, without the empty line; None if it is not one to be answered."""
    first, *lines = head.split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        return None
    headers: dict[bytes, bytes] = {}
    for entry in lines:
        name, colon, value = entry.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            return None
        if name.lower() in headers and name.lower() in _ONCE:
            return None
        headers[name.lower()] = value.strip()
    return Request(line[1].decode(), line[2].decode().partition("?")[0], headers)


class Probes:
    """The routes of one node."""

    def __init__(self, report: Report, options: HealthOptions) -> None:
        self._report = report
        self._options = check_options(options)
        # Kept and compared as a digest: equal length, and the token itself stands in no frame.
        self._token = None if options.token is None else sha256(options.token.encode()).digest()

    def answer(self, head: bytes) -> bytes:
        """The bytes of the response to a request's head."""
        request = read_request(head)
        if request is None:
            return as_bytes(failed(HTTPStatus.BAD_REQUEST))
        return as_bytes(self._respond(request), with_body=request.method != "HEAD")

    def _respond(self, request: Request) -> Response:
        if not self._is_for_us(request.headers.get(b"host", b"").decode("latin-1")):
            return failed(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in {"GET", "HEAD"}:
            return failed(HTTPStatus.METHOD_NOT_ALLOWED, "Allow: GET, HEAD")
        if request.path == "/livez":
            return self._verdict(is_live)
        if request.path == "/readyz":
            return self._verdict(lambda node: is_ready(node, deaf_after=self._options.deaf_after))
        if request.path == "/metrics":
            return self._read(request, _page)
        if request.path == "/scale":
            return self._read(request, _scale)
        return failed(HTTPStatus.NOT_FOUND)

    def _is_for_us(self, host: str) -> bool:
        """A name that somebody else's server of names points here is refused; so is no name at all."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].strip("[]").lower()
        if name == "localhost" or name in (allowed.lower() for allowed in self._options.hosts):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # Who asks for an address was not led here by a name. A loopback port is only asked for as loopback.
        return address.is_loopback or not is_loopback(self._options.host)

    def _verdict(self, decide: Callable[[NodeReport], Verdict]) -> Response:
        try:
            verdict = decide(self._report())
        except Exception:  # a node that cannot even say how it is, is not well
            logger.exception("The node's report failed")
            verdict = Verdict(False, "report")
        if verdict.ok:
            return Response(HTTPStatus.OK, b'{"status":"ok"}\n')
        return Response(
            HTTPStatus.SERVICE_UNAVAILABLE, b'{"status":"no","reason":"%s"}\n' % verdict.reason.encode()
        )

    def _read(self, request: Request, show: Callable[[NodeReport], Response]) -> Response:
        """What needs the token, or has been opened to everybody."""
        authorization = request.headers.get(b"authorization", b"")
        if not self._options.open_metrics:
            if self._token is None:
                return failed(HTTPStatus.FORBIDDEN)
            scheme, _, given = authorization.partition(b" ")
            is_right = hmac.compare_digest(sha256(given.strip()).digest(), self._token)
            if scheme.lower() != b"bearer" or not is_right:
                return failed(HTTPStatus.UNAUTHORIZED, 'WWW-Authenticate: Bearer realm="millpond"')
        try:
            return show(self._report())
        except Exception:  # one bad scrape must not end the responder
            logger.exception("%s could not be made", request.path)
            return failed(HTTPStatus.INTERNAL_SERVER_ERROR)


def _page(report: NodeReport) -> Response:
    return Response(HTTPStatus.OK, metrics.render(report), metrics.CONTENT_TYPE)


def _scale(report: NodeReport) -> Response:
    """What the whole fleet would like to have, for those who start machines."""
    return Response(HTTPStatus.OK, msgspec.json.encode(scale_document(report.fleet)) + b"\n")


def is_loopback(host: str) -> bool:
    """Can only this machine reach what listens there?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def failed(status: HTTPStatus, *extra: str) -> Response:
    """A refusal that tells nothing but its class."""
    return Response(status, b'{"status":"no","reason":"%s"}\n' % status.phrase.lower().encode(), extra=extra)


def as_bytes(response: Response, *, with_body: bool = True) -> bytes:
    """The response as it goes over the wire; the connection ends with it."""
    lines = (
        f"HTTP/1.1 {response.status.value} {response.status.phrase}",
        f"Content-Type: {response.kind}",
        f"Content-Length: {len(response.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *response.extra,
    )
    return "\r\n".join((*lines, "", "")).encode() + (response.body if with_body else b"")
