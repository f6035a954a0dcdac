"""A connection to an SQLite file as this store wants it: durable, in WAL mode, patient with locks."""

from __future__ import annotations

import random
import time

import apsw

from millpond.errors import StoreRefused
from millpond.store.sqlite.schema import add_functions, switch_to_wal
from millpond.store.sqlite.wal_size import KEPT

NEEDED = 3_051_003  # older engines can lose commits in WAL mode when a checkpoint meets a writer
SHORT_NAP, LONG_NAP = 0.0005, 0.002  # of one who waits for a lock


def refuse_old_engine() -> None:
    """Raise StoreRefused unless the engine in this process keeps what it has committed."""
    major, minor, patch = (int(part) for part in apsw.sqlite_lib_version().split("."))
    if major * 1_000_000 + minor * 1000 + patch < NEEDED:
        raise StoreRefused(
            f"SQLite {apsw.sqlite_lib_version()} can lose commits: install apsw 3.51.3 or newer"
        )


def connected(path: str, busy: float) -> apsw.Connection:
    """A new connection; each of its statements waits so long for a lock."""
    connection = apsw.Connection(path)
    connection.set_busy_handler(_Patience(busy).wait)
    switch_to_wal(connection, busy)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute(f"PRAGMA journal_size_limit = {KEPT}")
    add_functions(connection)
    return connection


class _Patience:
    """Waits for a lock in short naps. SQLite's own grow to 100 ms: whoever has waited long would hardly ever
    find the lock free between two busy writers, and a heartbeat must."""

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._until = 0.0

    def wait(self, calls: int) -> bool:
        """Called again and again while a lock is held by somebody else; False gives up."""
        now = time.monotonic()
        if calls == 0:
            self._until = now + self._bound
        if now >= self._until:
            return False
        time.sleep(SHORT_NAP if calls < 20 else LONG_NAP * random.uniform(0.5, 1.5))
        return True
