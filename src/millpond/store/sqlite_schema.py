"""The tables in an SQLite file, the file itself, and what its engine's errors mean.

A new file is made on first use; what another version has made is refused, never changed silently.
"""

from __future__ import annotations

import os
import time
from typing import Any

import apsw

from millpond.errors import SchemaOutdated, StoreBusy, StoreRefused, StoreUnavailable
from millpond.store.relational.rows import kept_lines
from millpond.store.sql import statement

SCHEMA = 2
STEPS = {1: ("from_1_to_2", "recount")}  # the statements that lead from a version to the next


def create_tables(connection: apsw.Connection, url: str) -> bool:
    """Create what a new file needs; True if it did. Refuses what an older or newer version has made."""
    try:
        if schema_of(connection) is None:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if schema_of(connection) is None:
                    connection.execute(statement("sqlite", "schema"))
                    connection.execute("COMMIT")
                    return True
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        refuse_other_versions(schema_of(connection), url)
    except apsw.Error as error:
        raise translated(error, url) from error
    return False


def update_tables(connection: apsw.Connection, url: str) -> list[str]:
    """Create what a new file needs, or take an older one from version to version, each step whole or not at
    all; returns what was done."""
    try:
        while (version := schema_of(connection)) in STEPS:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if schema_of(connection) == version:  # or somebody else did it while we waited
                    for name in STEPS[version]:
                        connection.execute(statement("sqlite", name))
                    connection.execute("UPDATE millpond_meta SET version = ?", (version + 1,))
                    connection.execute("COMMIT")
                    return [
                        f"brought {url} from version {version} to {version + 1}",
                        *update_tables(connection, url),
                    ]
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
    except apsw.Error as error:
        raise translated(error, url) from error
    made = create_tables(connection, url)
    return [f"created the tables of version {SCHEMA} in {url}"] if made else []


def refuse_other_versions(version: int | None, url: str) -> None:
    if version != SCHEMA:
        raise SchemaOutdated(
            f"{url} has schema version {version}, this Millpond needs {SCHEMA}: run `millpond migrate`"
            + ("" if version is None or version < SCHEMA else " with the newer Millpond that made it")
        )


def schema_of(connection: apsw.Connection) -> int | None:
    if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'millpond_meta'")):
        return None
    ((version,),) = connection.execute("SELECT version FROM millpond_meta")
    return int(version)


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
