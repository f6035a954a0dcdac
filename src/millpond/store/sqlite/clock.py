"""The processes on one SQLite file agree on the time: a document there says when the wall clock was last set.

Who starts after that has not seen it. Looked at once a second; written when somebody sets the clock.
"""

from __future__ import annotations

import apsw
import msgspec

from millpond.rules.store.store_time import Mark
from millpond.store.clock import Clock
from millpond.store.sql.statements import statement

NAME = "clock"
_READ, _WRITE = statement("sqlite", "document"), statement("sqlite", "write_document")


def agreed_time(connection: apsw.Connection, clock: Clock, *, may_write: bool = False) -> int:
    """The store's time, for what is about to happen in this transaction."""
    if clock.should_ask():
        found = list(connection.execute(_READ, (NAME,)))
        news = clock.agree(_decoded(found[0][0]) if found else None)
        if news is not None and may_write:
            version = found[0][1] if found else 0
            list(connection.execute(_WRITE, (NAME, msgspec.json.encode(news), version)))
    return clock.now()


def _decoded(value: bytes) -> Mark | None:
    try:
        return msgspec.json.decode(value, type=Mark)
    except msgspec.MsgspecError:  # somebody wrote nonsense: it is written anew
        return None
