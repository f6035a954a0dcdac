"""Where a PostgreSQL store is, as its URL says, and what time it is there."""

from __future__ import annotations

import re
import time
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from millpond.errors import OptionError

NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")
SAMPLE = 10.0  # how often the server's clock is compared with ours


class PostgresAddress:
    """What our part of the URL says; the rest is the driver's."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        mine, others = {}, []
        for key, value in parse_qsl(parts.query, keep_blank_values=True):
            if key in ("schema", "notify", "prepare", "listen"):
                mine[key] = value
            else:
                others.append((key, value))
        self.schema = mine.get("schema", "millpond")
        if not NAME.fullmatch(self.schema):
            raise OptionError(f"schema={self.schema!r} must be a lower-case name such as 'millpond'")
        self.notify = _one_of(mine, "notify", ("on", "off")) == "on"
        self.prepare = _one_of(mine, "prepare", ("auto", "on", "off"))
        self.dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(others)))
        self.listen = mine.get("listen", self.dsn)
        place = parts.hostname or "local"
        self.shown = f"postgresql://{place}{f':{parts.port}' if parts.port else ''}{parts.path}"
        if self.schema != "millpond":
            self.shown += f"?schema={self.schema}"


def _one_of(said: dict[str, str], name: str, values: tuple[str, ...]) -> str:
    """The value of an option; the first is the default."""
    value = said.get(name, values[0])
    if value not in values:
        raise OptionError(f"{name}={value!r} of a PostgreSQL store must be one of: {', '.join(values)}")
    return value


class PostgresClock:
    """The server's clock, followed by our monotonic one: a step of our wall clock moves nothing."""

    def __init__(self) -> None:
        self.shift = 0
        self.frozen: int | None = None
        self._offset = 0
        self._sampled_at = -SAMPLE

    def is_old(self) -> bool:
        """Is it time to compare again?"""
        return time.monotonic() - self._sampled_at > SAMPLE

    def set(self, server: int) -> None:
        """Take this for the server's time now."""
        self._offset = server - time.monotonic_ns() // 1000
        self._sampled_at = time.monotonic()

    def now(self) -> int:
        """The server's time, as near as can be told without asking."""
        running = time.monotonic_ns() // 1000 + self._offset
        return (running if self.frozen is None else self.frozen) + self.shift

    def lease_now(self, server: int) -> int:
        """The clock of the leases, given what the server said just now."""
        return (server if self.frozen is None else self.frozen) + self.shift

    def freeze(self) -> None:
        """Stop the clock; from here on only `shift` moves it."""
        self.frozen = time.time_ns() // 1000
