"""The statements of PostgreSQL with our own names in them: schema, channel, and who counts where.

Whoever counts in the caller's own transaction holds a row of the statistics for as long as that stays open:
so it has one to itself, by the number of its backend, and nobody ever waits for it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from millpond.store.sql import statement

OURS = "pg_backend_pid() % 16"
THE_CALLERS = "16 + pg_backend_pid()"


class Names(NamedTuple):
    """What is written into the statements of a store. The schema is checked, the channel is made of it."""

    schema: str
    channel: str = ""  # none where nobody is to be told
    shard: str = OURS


@cache
def text_of(name: str, names: Names) -> bytes:
    """A statement as it is sent."""
    text = statement("postgres", name).replace("{schema}", names.schema).replace("{shard}", names.shard)
    if not names.channel:
        text = text.replace("count(pg_notify({channel}, queue))", "0")
    return text.replace("{channel}", f"'{names.channel}'").encode()
