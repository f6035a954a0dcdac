"""The statements of PostgreSQL with our own names in them: the schema, and which row a session counts in.

A count in the caller's own transaction holds a row of the statistics for as long as that stays open: so it
has a row to itself, by the number of its backend, and no other session ever waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from millpond.store.postgres.arrays import array
from millpond.store.sql.query import LeaseClock, Many, Query
from millpond.store.sql.statements import statement

OURS = "pg_backend_pid() % 16"
LEFT_OUT = frozenset({"clear_parked"})  # the history has no such column
THE_CALLERS = "16 + pg_backend_pid()"


class Names(NamedTuple):
    """What is written into the statements of a store. The schema is checked."""

    schema: str
    shard: str = OURS


@cache
def text_of(name: str, names: Names) -> bytes:
    """A statement as it is sent."""
    text = statement("postgres", name).replace("{schema}", names.schema).replace("{shard}", names.shard)
    return text.encode()


def said(request: Query | Many | LeaseClock, names: Names) -> tuple[bytes, Sequence[Any]]:
    """A request as it is sent: the statement and its parameters."""
    if isinstance(request, LeaseClock):
        return text_of("lease_clock", names), ()
    text = text_of(request.name, names)
    if isinstance(request, Many):
        return text, [*request.shared, *(array(column) for column in zip(*request.rows, strict=True))]
    return text, [array(value) if isinstance(value, list) else value for value in request.parameters]
