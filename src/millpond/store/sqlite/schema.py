"""The tables in an SQLite file, the file itself, and what its engine's errors mean.

A new file is made on first use; what another version has made is refused, never changed silently.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from millpond.errors import OutcomeUnknown, StoreBusy, StoreRefused, StoreUnavailable
from millpond.rules.store.schema import Change, Schema, Step
from millpond.store.sql.rows import kept_lines
from millpond.store.sql.statements import split, statement

SCHEMA = 4  # the version that this code knows
BASE = 3  # the version of schema.sql; new files go the later steps at once
# For these, nodes and programs that enqueue are stopped
STOPPING = {1: ("from_1_to_2", "recount"), 2: ("from_2_to_3",)}
ONLINE = {3: ("from_3_to_4", 3)}  # the statements, and the oldest code that goes on with what they leave
CONTRACTIONS: dict[int, Step] = {}  # there is nothing yet that only older code needs
WRITING = "the lock of writers while it runs: they wait for it, up to 5 s each; reads go on"


def schema_of(connection: apsw.Connection) -> Schema | None:
    """What a file says about its tables; None if it has none."""
    if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'millpond_meta'")):
        return None
    ((version, *rest),) = connection.execute("SELECT * FROM millpond_meta")
    return Schema(int(version), int(rest[0] if rest else version))  # the oldest have no second number


def steps() -> dict[int, Step]:
    """Every step."""
    found = {}
    for before, names in STOPPING.items():
        texts = [statement("sqlite", name) for name in names]
        texts.append(f"UPDATE millpond_meta SET version = {before + 1}")  # noqa: S608 - a number
        whole = Change(";\n".join(text.rstrip(";") for text in texts), locks=WRITING)
        found[before] = Step(before, before + 1, before + 1, (whole,), stops=True)
    for before, (name, compatible_from) in ONLINE.items():
        parts = tuple(Change(text, note, WRITING) for text, note in split(statement("sqlite", name)))
        found[before] = Step(before, before + 1, compatible_from, parts)
    return found


def create_tables(connection: apsw.Connection, url: str) -> bool:
    """Create what a new file needs; True if it did."""
    try:
        if schema_of(connection) is None:
            with immediate(connection):
                if schema_of(connection) is None:
                    connection.execute(statement("sqlite", "schema"))
                    for before in range(BASE, SCHEMA):
                        for change in steps()[before].changes:
                            connection.execute(change.text)
                    return True
    except apsw.Error as error:
        raise translated(error, url) from error
    return False


def script(since: int | None) -> str:
    """What leads from a version, or from nothing, to this one; each change is a transaction of its own."""
    texts = [] if since is not None else [statement("sqlite", "schema")]
    for before in range(BASE if since is None else since, SCHEMA):
        texts += [change.text for change in steps()[before].changes]
    return "\n".join(f"BEGIN IMMEDIATE;\n{text.rstrip(';')};\nCOMMIT;" for text in texts)


@contextmanager
def immediate(connection: apsw.Connection) -> Iterator[None]:
    """A transaction that has the lock of writers from its beginning; all of it happens, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def create_private(path: str) -> None:
    """A new file is for its owner only: jobs may carry secrets."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(f"cannot create {path}: {error.strerror}; does the folder exist?") from error


def translated(error: apsw.Error, url: str) -> Exception:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(f"{url} is locked by another process; nothing was written")
    if isinstance(error, apsw.FullError):
        return StoreUnavailable(f"the disk of {url} is full; nothing was written")
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return StoreRefused(f"{url} is not a database, or is damaged: {error}")
    return StoreUnavailable(f"{url}: {type(error).__name__}: {error}")


def failed_commit(error: apsw.Error, url: str, *, rolled_back: bool) -> Exception:
    """What an error of COMMIT means. After most of them SQLite has rolled the transaction back by itself.

    A commit is in the log when its last page is. Where the write of a page failed (no room, a quota, a limit
    of the file's size) that page is not there, and nothing happened. After the last write, in a flush or in
    the index of the log, an error leaves the whole commit in the file: a crash before the next commit, which
    overwrites it, would bring it back. Tests: test_full_disk.py.
    """
    in_a_write = (
        isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE
    )
    if in_a_write and rolled_back:
        return StoreUnavailable(
            f"the disk of {url} is full, or the file may not grow ({error}); nothing was written"
        )
    return OutcomeUnknown(f"SQLite failed in COMMIT: {error}; ask for the job by its id")


def switch_to_wal(connection: apsw.Connection, patience: float) -> None:
    """Two who switch a new file at once refuse each other without waiting: one of them tries again."""
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except apsw.BusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.001)
        else:
            return


def add_functions(connection: apsw.Connection) -> None:
    """What SQLite has no words for."""

    def kept(*attempts: Any) -> str:
        return kept_lines(str(attempts[0]))

    connection.create_scalar_function("millpond_kept_lines", kept, 1, deterministic=True)
