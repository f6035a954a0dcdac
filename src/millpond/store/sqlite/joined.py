"""Whose connection an SQLite store may join: one of apsw, to the same file, or to the same memory."""

from __future__ import annotations

from pathlib import Path

import apsw

from millpond.errors import StoreRefused
from millpond.store.sqlite.file import has_moved


def joinable(given: object, url: str, place: str | apsw.Connection | None) -> apsw.Connection:
    """The caller's connection, or StoreRefused unless it leads to `place`: the path of a file, or the one
    connection to what is in memory, None while that is not open."""
    if not isinstance(given, apsw.Connection):
        raise StoreRefused(_wrong_connection(given))
    if not _leads_to(place, given):
        raise StoreRefused(f"this connection is not to {url}: it is to {given.filename!r}")
    if isinstance(place, str) and has_moved(given):
        raise StoreRefused(f"{url} was replaced after this connection was opened: open it again")
    return given


def _leads_to(place: str | apsw.Connection | None, given: apsw.Connection) -> bool:
    if not isinstance(place, str):
        return given is place
    try:
        return Path(given.filename).samefile(place)
    except OSError:  # theirs is in memory, or one of the two is not there yet
        return False


def _wrong_connection(given: object) -> str:
    kind = type(given)
    if kind.__module__ == "sqlite3":
        return (
            "transaction= takes an apsw.Connection, not a sqlite3.Connection: two SQLite libraries in one "
            "process drop each other's file locks"
        )
    return (
        f"transaction= takes an apsw.Connection to the same file, not {kind.__module__}.{kind.__qualname__}"
    )
