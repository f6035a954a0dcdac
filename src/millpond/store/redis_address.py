"""Which Redis or Valkey server a URL means, and the time there as far as it is known here.

The clock that counts is the server's; scripts ask it themselves. This one only saves asking.
"""

from __future__ import annotations

import time
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from millpond.config import hide_password
from millpond.errors import OptionError

SAMPLE = 10.0  # seconds between two comparisons of the server's clock with ours


class Address:
    """What a URL says: where the server is, which namespace, whether it is a cluster."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        _ = parts.port  # raises if it can be none
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.namespace = options.pop("namespace", "millpond")
        self.cluster = options.pop("cluster", "").lower() in ("1", "true", "yes", "on")
        if not self.namespace or set("{}\0") & set(self.namespace):
            raise OptionError(
                f"namespace={self.namespace!r} must have a name without braces, as in ?namespace=shop"
            )
        scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
        query = f"?{urlencode(options)}" if options else ""
        self.driver_url = f"{scheme}://{parts.netloc}{parts.path}{query}"
        login, at, place = parts.netloc.rpartition("@")
        user = unquote(login.partition(":")[0])
        shown = f"{user}@{place}" if at and user else place
        query = f"?{parts.query}" if parts.query else ""
        self.url = hide_password(f"{parts.scheme}://{shown}{parts.path}{query}")


class RedisClock:
    """The server's clock, followed by our monotonic one: a step of our wall clock moves nothing. `shift`
    moves it, `freeze` stops it; only tests ever do."""

    def __init__(self) -> None:
        self.shift = 0
        self.frozen: int | None = None
        self._offset = (time.time_ns() - time.monotonic_ns()) // 1000  # until the server has been asked
        self._sampled_at = -SAMPLE

    def is_old(self) -> bool:
        """Is it time to ask the server again?"""
        return time.monotonic() - self._sampled_at > SAMPLE

    def set(self, server: int) -> None:
        """Take this for the server's time now."""
        self._offset = server - time.monotonic_ns() // 1000
        self._sampled_at = time.monotonic()

    def now(self) -> int:
        """About what the server's clock says; scripts ask the server itself."""
        running = time.monotonic_ns() // 1000 + self._offset
        return (running if self.frozen is None else self.frozen) + self.shift

    def freeze(self) -> None:
        """Stop the clock; from here on only `shift` moves it."""
        self.frozen = time.time_ns() // 1000
