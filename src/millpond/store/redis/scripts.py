"""The Lua scripts of the Redis store, put together from `lua/*.lua` and known by their digest.

A script is the parts that all have, those that its first line asks for (`-- uses: lines ends`), and itself.
It never looks into payloads, and everything it touches has the same hash tag. The ones that are called for
single jobs are also functions, which the server keeps ready: a script is built up anew by every call.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

USES = "-- uses: "
ALWAYS = ("prelude", "buckets", "columns", "writes")
BEGIN = "local early = begin({})\nif early then\n    return early\nend\n"
FUNCTIONS = frozenset({"enqueue", "exchange"})
# What goes on when the server's memory is full: it frees memory, or lets jobs end that will be deleted later,
# and needs little itself. Without this flag a backlog could neither be worked off nor thrown away, and nodes
# could not renew. What adds jobs or records is refused: see tests/stores/test_redis_full.py.
WHEN_FULL = frozenset(
    {
        *("open", "renew", "give_up", "exchange", "held", "seal", "verdicts"),
        *("cancel", "discard", "prune", "configure", "regroup", "forget_old_slots", "set_version"),
    }
)
SHEBANG = "#!lua flags=allow-oom\n"


class Script(NamedTuple):
    """What EVAL takes, what EVALSHA takes; and FUNCTION LOAD and FCALL, if it is a function, too."""

    source: str
    digest: str
    library: str = ""
    function: str = ""


@cache
def script(name: str, has_flags: bool = True) -> Script:
    """The script of that name; without flags for a server that does not know them."""
    body = _read(name)
    first = body.partition("\n")[0]
    parts = first.removeprefix(USES).split() if first.startswith(USES) else []
    parts_text = "\n".join(_read(part) for part in (*ALWAYS, *parts))
    when_full = has_flags and name in WHEN_FULL
    source = f"{SHEBANG if when_full else ''}{parts_text}\n{BEGIN.format('KEYS, ARGV')}{body}"
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    if name not in FUNCTIONS:
        return Script(source, digest)
    function = f"millpond_{name}_{digest[:16]}"  # two versions of us may share a server
    flags = "'allow-oom'" if when_full else ""
    library = (
        f"#!lua name={function}\n{parts_text}\n"
        f"redis.register_function{{function_name = '{function}', callback = function(keys, told)\n"
        f"{BEGIN.format('keys, told')}{body}\nend, flags = {{{flags}}}}}\n"
    )
    return Script(source, digest, library, function)


def _read(name: str) -> str:
    return files("millpond.store.redis").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")
