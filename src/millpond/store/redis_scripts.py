"""The Lua scripts of the Redis store, put together from `lua/*.lua` and known by their digest.

A script is the prelude, the parts that its first line asks for (`-- uses: lines ends`), and itself. It never
looks into payloads, and everything it touches has the same hash tag. The ones that are called for single jobs
are also functions, which the server keeps ready: a script is built up anew by every call.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

USES = "-- uses: "
BEGIN = "local early = begin({})\nif early then\n    return early\nend\n"
FUNCTIONS = frozenset({"enqueue", "exchange"})


class Script(NamedTuple):
    """What EVAL takes, what EVALSHA takes; and FUNCTION LOAD and FCALL, if it is a function, too."""

    source: str
    digest: str
    library: str = ""
    function: str = ""


@cache
def script(name: str) -> Script:
    """The script of that name."""
    body = _read(name)
    first = body.partition("\n")[0]
    parts = first.removeprefix(USES).split() if first.startswith(USES) else []
    parts_text = "\n".join(_read(part) for part in ("prelude", *parts))
    source = f"{parts_text}\n{BEGIN.format('KEYS, ARGV')}{body}"
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    if name not in FUNCTIONS:
        return Script(source, digest)
    function = f"millpond_{name}_{digest[:16]}"  # two versions of us may share a server
    library = (
        f"#!lua name={function}\n{parts_text}\n"
        f"redis.register_function('{function}', function(keys, told)\n"
        f"{BEGIN.format('keys, told')}{body}\nend)\n"
    )
    return Script(source, digest, library, function)


def _read(name: str) -> str:
    return files("millpond.store").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
