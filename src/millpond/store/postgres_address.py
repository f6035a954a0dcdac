"""Where a PostgreSQL store is, as its URL says."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from millpond.errors import OptionError

NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")


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
