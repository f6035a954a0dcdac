"""Who may ask the HTTP API for what: by path and method, by token, by the name and the page asked from.

Deny by default. What is not listed needs a token, methods are an allow-list, a request that does not name
this server is refused whatever it shows, and a change that another web page started is refused even with
the right token.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from typing import Literal, NamedTuple

Need = Literal["none", "read", "figures", "admin"]
Scope = Literal["none", "read", "admin"]
Shown = Literal["nothing", "right", "wrong", "expired"]  # what became of the token that came along

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_HOPS = 20  # proxies one behind the other
READS = frozenset({"GET", "HEAD"})
CHANGES = frozenset({"POST", "PUT", "DELETE"})
OPEN = frozenset({"/", "/livez", "/readyz", "/favicon.ico", "/api/v1/session"})  # carry no data of jobs
FIGURES = frozenset({"/metrics", "/scale"})
PRIVATE = frozenset({"/api/v1/audit"})
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://([^/\s]+)")
LOOPBACK_NAMES = frozenset({"localhost"})


class Refused(NamedTuple):
    """Why a request is not served: the kind of problem, and its text."""

    problem: str
    detail: str


def need_of(method: str, path: str) -> Need | None:
    """What a request must show; None for a method that nothing here has."""
    if method in CHANGES:
        return "none" if path == "/api/v1/session" else "admin"
    if method not in READS:
        return None
    if path in OPEN or path.startswith("/static/"):
        return "none"
    if path in FIGURES:
        return "figures"
    return "admin" if path in PRIVATE else "read"


def judge(
    need: Need, scope: Scope, shown: Shown, *, open_reads: bool, open_figures: bool, path: str = ""
) -> Refused | None:
    """May this be served? A token that is wrong or too old is refused even where none is needed."""
    if need == "none" and path == "/api/v1/session":
        return None
    if shown == "expired" and need != "none":
        return Refused("expired-token", "the token or the session has expired")
    if shown == "wrong" and need != "none":
        return Refused("wrong-token", "the token or the session is not one of this server")
    if need == "none" or scope == "admin":
        return None
    if need == "admin":
        if scope == "read":
            return Refused("needs-admin", "a read token can change nothing and not read the audit log")
        what = "the audit log" if path in PRIVATE else "every change"
        return Refused("no-token", f"{what} needs the admin token")
    is_open = open_figures if need == "figures" else open_reads
    return None if is_open or scope == "read" else Refused("no-token", "this needs a token")


def host_of(header: str) -> str | None:
    """The name in a Host header, in lower case and without port and brackets; None if it is not one."""
    match = _HOST.fullmatch(header)
    return None if match is None else match[1].strip("[]").lower().rstrip(".")


def is_for_us(header: str, names: Collection[str], *, only_loopback: bool) -> bool:
    """Does a Host header name this server? A name that somebody else's DNS points here does not."""
    name = host_of(header)
    if not name:
        return False
    if name in LOOPBACK_NAMES or name in names:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    # Who asks for an address was not led here by a name. A loopback port is only asked for as loopback.
    return address.is_loopback or not only_loopback


def is_same_origin(origin: str | None, site: str | None, host: str, *, https: bool) -> bool:
    """Did a page of this server start the change, or no page at all?

    Browsers send at least one of the two headers with every change; a program sends neither.
    """
    if site is not None and site not in ("same-origin", "none"):
        return False
    if origin is None:
        return True
    match = _ORIGIN.fullmatch(origin)
    if match is None or match[2].lower() != host.lower():
        return False
    return not https or match[1] == "https"


def may_read(path: str, site: str | None, mode: str | None) -> bool:
    """May a browser read this for the page that asks? Another page could not see the answer, but it could
    keep the server busy; a person who follows a link may."""
    if site in (None, "same-origin", "none") or mode == "navigate":
        return True
    return not path.startswith("/api/") and path not in FIGURES


def client_of(peer: str, forwarded: str, proxies: Collection[Network]) -> str:
    """Who asks: the peer, or, behind proxies that are trusted, the last address that none of them has.

    Each proxy writes the address that it was asked from behind the others' words. What stands before that of
    a stranger is the stranger's own word and could be any address: it is not read.
    """
    found = peer
    for said in reversed(forwarded.replace(";", ",").split(",")[-MOST_HOPS:]):
        if not is_one_of(found, proxies):
            break
        name = host_of(said.strip()) or said.strip(" []")
        try:
            found = str(ipaddress.ip_address(name))
        except ValueError:
            break
    return found


def is_one_of(address: str, networks: Collection[Network]) -> bool:
    """Is the address one of these networks'?"""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found.version == network.version and found in network for network in networks)


def counted_as(address: str) -> str:
    """What bounds by address count: whoever has one address of IPv6 has the 2**64 beside it, too."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped or ipaddress.ip_network((found, 64), strict=False))


def is_public(host: str) -> bool:
    """Can other machines reach what listens there?"""
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() != "localhost"
