"""The Lua scripts of the Redis store, put together from `lua/*.lua` and known by their digest.

A script is the prelude, the parts that its first line asks for (`-- uses: lines ends`), and itself. It never
looks into payloads, and everything it touches has the same hash tag.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

USES = "-- uses: "


class Script(NamedTuple):
    """What EVAL takes, and what EVALSHA takes."""

    source: str
    digest: str


@cache
def script(name: str) -> Script:
    """The script of that name."""
    body = _read(name)
    first = body.partition("\n")[0]
    parts = first.removeprefix(USES).split() if first.startswith(USES) else []
    source = "\n".join([*(_read(part) for part in ("prelude", *parts)), body])
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


def _read(name: str) -> str:
    return files("millpond.store").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
