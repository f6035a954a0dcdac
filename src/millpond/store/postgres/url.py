"""Where a PostgreSQL store is, as its URL says.

The driver reads the URL, so that whatever libpq understands works here: several hosts, sockets, services.
Nothing of a password may come out of here but in `parameters`.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from millpond.errors import OptionError

NAME = re.compile(r"[a-z_][a-z0-9_]{0,50}")
OURS = frozenset(("schema", "notify", "prepare", "listen"))
WISH = "target_session_attrs"


class Place(NamedTuple):
    """One of the servers that a URL names. An empty text is the driver's default."""

    host: str
    address: str  # hostaddr
    port: str

    def shown(self) -> str:
        """Host and port as in a URL."""
        name = self.host or self.address or "local"
        return (f"[{name}]" if ":" in name else name) + (f":{self.port}" if self.port else "")


class PostgresAddress:
    """What our part of the URL says; the rest is the driver's."""

    def __init__(self, url: str) -> None:
        mine, self.dsn = _divided(url)
        self.schema = mine.get("schema", "millpond")
        if not NAME.fullmatch(self.schema):
            raise OptionError(f"schema={self.schema!r} must be a lower-case name such as 'millpond'")
        self.notify = _one_of(mine, "notify", ("on", "off")) == "on"
        self.prepare = _one_of(mine, "prepare", ("auto", "on", "off"))
        self.parameters = _parameters(self.dsn)
        self.places = _places(self.parameters)
        # A standby cannot take one job. Where several hosts are named, it is passed over for the primary.
        if len(self.places) > 1 and not os.environ.get("PGTARGETSESSIONATTRS"):
            self.parameters.setdefault(WISH, "read-write")
        self.listen = mine.get("listen", self.dsn)
        self.listens_elsewhere = self.listen != self.dsn
        self.listen_parameters = _parameters(self.listen) if self.listens_elsewhere else self.parameters
        _places(self.listen_parameters)
        self.shown = self._shown()

    def _shown(self) -> str:
        """The servers that are meant and the database."""
        facts = []
        places, head = self.places, "postgresql://"
        if any(place.host.startswith("/") for place in places):  # a socket has no place before the path
            facts.append("host=" + ",".join(place.host or place.address for place in places))
            if any(place.port for place in places):
                facts.append("port=" + ",".join(place.port for place in places))
        elif "service" in self.parameters and not any(map(any, places)):
            facts.append(f"service={self.parameters['service']}")
        else:
            head += ",".join(place.shown() for place in places)
        if self.schema != "millpond":
            facts.append(f"schema={self.schema}")
        database = str(self.parameters.get("dbname", ""))
        path = f"/{quote(database, safe='')}" if database or facts else ""
        return head + path + ("?" + "&".join(facts) if facts else "")


def _divided(url: str) -> tuple[dict[str, str], str]:
    """Our options, and the URL without them. The others stay as they were written: libpq takes a plus sign
    for itself, where a decoder of forms would make a space of it."""
    head, _, query = url.partition("?")
    mine: dict[str, str] = {}
    others = []
    for part in query.split("&") if query else ():
        key, _, value = part.partition("=")
        if key in OURS:
            mine[key] = unquote(value)
        else:
            others.append(part)
    rest = head.partition("://")[2]
    return mine, f"postgresql://{rest}" + ("?" + "&".join(others) if others else "")


def _parameters(dsn: str) -> dict[str, Any]:
    """What the driver makes of a URL. Its own error may quote the password, so it is not passed on."""
    try:
        return dict(conninfo_to_dict(dsn))
    except psycopg.ProgrammingError:
        raise ValueError(
            "the PostgreSQL driver cannot read it: look for an option it does not know, and percent-encode "
            "special characters of a password"
        ) from None


def _places(parameters: dict[str, Any]) -> tuple[Place, ...]:
    """Every server that is named, in that order."""
    hosts = _list(parameters, "host", "PGHOST")
    addresses = _list(parameters, "hostaddr", "PGHOSTADDR")
    ports = _list(parameters, "port", "")
    number = max(len(hosts), len(addresses), 1)
    for name, found in (("hosts", hosts), ("addresses", addresses)):
        if len(found) not in (0, number):
            raise ValueError(f"it names {len(found)} {name} for {number} servers")
    if len(ports) not in (0, 1, number):
        raise ValueError(f"it names {len(ports)} ports for {number} servers")
    for port in ports:
        if port and not (port.isdecimal() and 0 < int(port) < 65536):
            raise ValueError("a port must be a number from 1 to 65535")
    if len(ports) == 1:
        ports *= number
    missing = [""] * number
    return tuple(map(Place, hosts or missing, addresses or missing, ports or missing))


def _list(parameters: dict[str, Any], name: str, variable: str) -> list[str]:
    """The values of a parameter that may have several."""
    value = str(parameters.get(name) or os.environ.get(variable) or "")
    return value.split(",") if value else []


def _one_of(said: dict[str, str], name: str, values: tuple[str, ...]) -> str:
    """The value of an option; the first is the default."""
    value = said.get(name, values[0])
    if value not in values:
        raise OptionError(f"{name}={value!r} of a PostgreSQL store must be one of: {', '.join(values)}")
    return value
