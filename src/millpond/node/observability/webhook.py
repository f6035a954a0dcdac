"""Sends alerts to a URL, and only to where an alert may go.

The name is resolved once, every address it has is checked, and the connection goes to the address that was
checked: a name that changes its mind in between changes nothing. Loopback, private, link-local and metadata
addresses are refused unless their network is allowed. Redirects are not followed, proxies not used.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from millpond.errors import OptionError
from millpond.node.observability.alerts import Alert
from millpond.units import seconds

TIMEOUT = 5.0
TRIES = 3
FIRST_PAUSE = 1.0  # before the second try; then twice as long
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
_MOST_OF_A_STATUS_LINE = 1_024

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# Not public, though `is_global` of some version of Python says so; the first is where one cloud keeps its
# machines' secrets. Set apart by IANA for other uses: the rest.
_SET_APART = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24",
        "64:ff9b:1::/48", "100::/64", "2001::/23", "3fff::/20", "5f00::/16",
    )
)  # fmt: skip
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


class WebhookFailed(Exception):
    """An alert did not arrive; `is_final` if another try cannot help."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class Target(NamedTuple):
    """An address that was checked."""

    family: int
    address: Any  # as getaddrinfo gives it


class Webhook:
    """A hook that posts each alert as JSON. Called in a thread of its own by `Alerts`."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | str = TIMEOUT,
        tries: int = TRIES,
        allow: Iterable[str] = (),
    ) -> None:
        self._url = check_url(url)
        self._headers = _checked_headers(headers or {})
        self._timeout = seconds(timeout, name="timeout")
        self._tries = tries
        self._allowed = tuple(_network(text) for text in allow)
        self._stopped = threading.Event()

    def __repr__(self) -> str:
        return f"<Webhook to {self._url.scheme}://{self._url.hostname}>"  # paths often are secrets

    def close(self) -> None:
        """Try no more."""
        self._stopped.set()

    def __call__(self, alert: Alert) -> None:
        """Post one alert, with a few tries. Raises WebhookFailed."""
        body = json.dumps({**alert._asdict(), "facts": dict(alert.facts)}).encode()
        for number in range(1, self._tries + 1):
            try:
                self._post(body)
                return
            except WebhookFailed as failure:
                if failure.is_final or number == self._tries:
                    raise
                if self._stopped.wait(FIRST_PAUSE * 2 ** (number - 1)):
                    raise  # no more tries: whoever called must know that it was not delivered

    def _post(self, body: bytes) -> None:
        ends_at = time.monotonic() + self._timeout
        target = resolve(self._url, self._allowed)
        try:
            with socket.socket(target.family, socket.SOCK_STREAM) as raw:
                raw.settimeout(_left(ends_at))
                raw.connect(target.address)
                with self._secured(raw, ends_at) as connection:
                    self._send(connection, body, ends_at)
                    status = _status(connection, ends_at)
        except (OSError, http.client.HTTPException) as error:
            raise WebhookFailed(f"{self!r} cannot be reached: {error}") from error
        if not 200 <= status < 300:
            hint = ", and redirects are not followed" if 300 <= status < 400 else ""
            raise WebhookFailed(f"{self!r} answered {status}{hint}", is_final=status < 500 and status != 429)

    def _secured(self, raw: socket.socket, ends_at: float) -> socket.socket:
        if self._url.scheme == "http":
            return raw
        raw.settimeout(_left(ends_at))
        context = ssl.create_default_context()
        return context.wrap_socket(raw, server_hostname=self._url.hostname)  # checked against the name

    def _send(self, connection: socket.socket, body: bytes, ends_at: float) -> None:
        """By http.client, which refuses headers that would begin a new line."""
        connection.settimeout(_left(ends_at))
        request = http.client.HTTPConnection(self._url.hostname or "", self._url.port)
        request.sock = connection
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "millpond",
            "Connection": "close",
            "Host": self._url.netloc,
            **self._headers,
        }
        path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        request.request("POST", path, body, headers)


# --- where an alert may go ---------------------------------------------------------------------------------
def check_url(url: str) -> SplitResult:
    """The parts of a webhook's URL, or OptionError. The URL itself is never shown: it may be a secret."""
    if not re.fullmatch(r"[!-~]{1,2000}", str(url)):
        raise OptionError("a webhook's URL must be visible ASCII text, such as 'https://hooks.example.com/x'")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise OptionError(f"a webhook's URL is not valid: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise OptionError("a webhook's URL must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise OptionError("a webhook's URL must hold no user or password: give headers={'Authorization': …}")
    return parts


def resolve(url: SplitResult, allowed: tuple[Network, ...] = ()) -> Target:
    """Where to connect. Refused if any address of the name is one where alerts must not go."""
    host = url.hostname or ""
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WebhookFailed(f"the name {host} of a webhook cannot be resolved: {error}") from error
    for *_, address in found:
        if not may_be_asked(ipaddress.ip_address(str(address[0]).partition("%")[0]), allowed):
            raise WebhookFailed(
                f"the webhook at {host} is refused: {address[0]} is not a public address. "
                f"If it is meant, give allow=['{address[0]}']",
                is_final=True,
            )
    family, *_, address = found[0]
    return Target(family, address)


def may_be_asked(address: Address, allowed: tuple[Network, ...] = ()) -> bool:
    """Is it a public address, or in a network that was allowed? What is inside a tunnel counts, too."""
    if _is_in(address, allowed):
        return True
    inner = _embedded(address)
    if inner:
        return all(may_be_asked(one, allowed) for one in inner)
    is_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    is_odd = is_local or address.is_multicast or address.is_reserved or address.is_unspecified
    return address.is_global and not is_odd and not _is_in(address, _SET_APART)


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _embedded(address: Address) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses an IPv6 address stands for, by whatever scheme."""
    if not isinstance(address, ipaddress.IPv6Address):
        return ()
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return (ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF),)
    return ()


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise OptionError(f"allow must list addresses or networks such as '10.1.0.0/16': {error}") from None


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not re.fullmatch(r"[ -~]*", value):
            raise OptionError(f"the header {name!r:.80} of a webhook must be visible ASCII text on one line")
    return dict(headers)


# --- the answer --------------------------------------------------------------------------------------------
def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


def _status(connection: socket.socket, ends_at: float) -> int:
    """The status of the response; nothing else of it is read, and a byte now and then does not buy time."""
    head = b""
    while b"\n" not in head and len(head) < _MOST_OF_A_STATUS_LINE:
        connection.settimeout(_left(ends_at))
        data = connection.recv(_MOST_OF_A_STATUS_LINE)
        if not data:
            break
        head += data
    match = _STATUS_LINE.match(head)
    if match is None:
        raise WebhookFailed("a webhook gave an answer that is not HTTP")
    return int(match[1])
