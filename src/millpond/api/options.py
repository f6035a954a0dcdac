"""What the HTTP API is told: who may come in, under which names it is asked, and its bounds.

Values only, checked once.
"""

from __future__ import annotations

from typing import NamedTuple

from millpond.api.security.tokens import Source
from millpond.rules.http_access import Network, is_public

MEBIBYTE = 1 << 20


class Limits(NamedTuple):
    """Every bound of the server. Beyond one of them a caller is refused, never queued without end."""

    body: int = MEBIBYTE  # bytes of a request
    body_within: float = 10.0  # seconds for a request's body to come
    request_within: float = 10.0  # seconds for the store to answer
    threads: int = 4  # that wait for the store
    waiting: int = 64  # requests in line for them
    streams: int = 100  # event streams
    streams_each: int = 20  # of one address, or of one session
    behind: int = 64  # messages that a slow reader may lag
    page: int = 500  # jobs in one answer
    page_bytes: int = 8 * MEBIBYTE  # of job data read for one answer, about
    scan: int = 2_000  # jobs looked at for one answer of a search by text


class ApiOptions(NamedTuple):
    """One server."""

    tokens: Source
    host: str = "127.0.0.1"  # where it listens, or "*" when somebody else listens for it
    hosts: frozenset[str] = frozenset()  # names beside its own by which it may be asked
    open_reads: bool = False  # reading without a token
    open_metrics: bool = False  # /metrics and /scale without a token
    behind_tls: bool = False  # something before it speaks TLS
    proxies: tuple[Network, ...] = ()  # whose word about who asks is taken
    app_name: str | None = None
    knows_tasks: bool = True  # the app was imported: its tasks can be enqueued
    token_file: str | None = None
    beside: tuple[str, int] | None = None  # host and process of the node that it was started with
    limits: Limits = Limits()

    @property
    def only_loopback(self) -> bool:
        """Can only this machine reach it?"""
        return self.host != "*" and not is_public(self.host)
