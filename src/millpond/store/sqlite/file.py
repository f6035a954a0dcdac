"""The file at the path of an SQLite store: is it still the one that was opened?

A file that is deleted or replaced stays open, and SQLite works on in it without an error. Only names are
looked at here: opening and closing a database beside SQLite would drop the locks of this process.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from millpond.errors import StoreBusy, StoreUnavailable
from millpond.store.sqlite.schema import create_private
from millpond.store.sqlite.wal_size import warn_of_size

logger = logging.getLogger("millpond")
LOOK = 0.5  # seconds between two looks at the names
NAP = 0.005  # seconds between two tries to lock the folder
Inode = tuple[int, int]  # device and number
_logged: set[tuple[str, Files]] = set()  # a process has several stores on one file: one of them logs a change


class Files(NamedTuple):
    """Which files have the three names of a database; None where there is none."""

    database: Inode | None
    wal: Inode | None
    shm: Inode | None


class DatabaseFile:
    """The names of one store's file, and which files had them when it was opened."""

    def __init__(self, path: str, url: str, patience: float) -> None:
        self._path, self._url, self._patience = path, url, patience
        self._opened: Files | None = None
        self._changed = False
        self._looked = 0.0

    def has_changed(self) -> bool:
        """Has another file, or none, the name of the opened one? Costs two stats, twice a second at most."""
        now = time.monotonic()
        if self._opened is None or self._changed or now - self._looked < LOOK:
            return self._changed
        self._looked = now
        self._changed = _inode(_status(self._path)) != self._opened.database
        if self._changed:
            self._log()
        elif (wal := _status(f"{self._path}-wal")) is not None:
            warn_of_size(self._path, wal.st_size)
        return self._changed

    def leave(self, connection: apsw.Connection) -> None:
        """Close a connection to a file that has lost its name.

        What was committed may be in the log alone, whose name does not move along with that of the database.
        It is written into the database first, so an old file that was moved away is complete
        (test_a_file_that_was_moved_away_keeps_what_was_only_in_its_log).
        """
        with suppress(apsw.Error):
            connection.set_busy_handler(None)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    @contextmanager
    def opening(self, *, may_create: bool) -> Iterator[None]:
        """Around the opening: the first one creates a missing file, a later one never does by itself.

        A database that took the place of another finds that one's log beside it, and SQLite would apply it:
        the new database would be damaged. Whichever process notices first removes it. Two at once could
        remove the new log of each other, so a lock on the folder admits one after the other
        (test_stores_that_notice_at_once_meet_in_the_new_file).
        """
        if self._opened is None:
            create_private(self._path)
            yield
            return
        found = _status(self._path)
        if _inode(found) == self._opened.database:
            yield
            return
        self._log()
        if (found is None or found.st_size == 0) and not may_create:  # empty: a copy may have begun
            raise StoreUnavailable(
                f"{self._url} was deleted or moved away while it was in use; nothing was written: bring it "
                "back, by renaming it, or make an empty one with `millpond migrate`"
            )
        with _alone_in(Path(self._path).parent, self._url, self._patience):
            self._remove_leftovers(self._opened)
            create_private(self._path)
            yield

    def opened(self, connection: apsw.Connection) -> None:
        """Remember which files a connection has open."""
        now = files_at(self._path)
        if has_moved(connection):
            raise StoreUnavailable(f"{self._url} was replaced while it was opened; nothing was written")
        self._opened, self._changed, self._looked = now, False, time.monotonic()

    def forget(self) -> None:
        """Whatever has the name from now on is the store's file."""
        self._opened, self._changed = None, False

    def _remove_leftovers(self, opened: Files) -> None:
        now = files_at(self._path)
        for name, found, old in (("-wal", now.wal, opened.wal), ("-shm", now.shm, opened.shm)):
            if found is not None and found == old:
                Path(self._path + name).unlink(missing_ok=True)

    def _log(self) -> None:
        assert self._opened is not None
        if (self._path, self._opened) in _logged:
            return
        _logged.add((self._path, self._opened))
        if _status(self._path) is None:
            logger.error(
                "%s was deleted or moved away while it was in use: nothing is stored and no job is claimed "
                "until it is back; `millpond migrate` makes an empty one",
                self._path,
            )
        else:
            logger.error(
                "%s was replaced while it was in use: the new file is opened, its jobs are used from now on",
                self._path,
            )


def files_at(path: str) -> Files:
    """Which files have these names now."""
    return Files(*(_inode(_status(path + name)) for name in ("", "-wal", "-shm")))


def has_moved(connection: apsw.Connection) -> bool:
    """Has the file of this connection another name by now, or none?"""
    moved = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116 - a third of the cost of Path.stat, and often called
    except OSError:
        return None


def _inode(found: os.stat_result | None) -> Inode | None:
    return None if found is None else (found.st_dev, found.st_ino)


@contextmanager
def _alone_in(folder: Path, url: str, patience: float) -> Iterator[None]:
    """Hold a lock on a folder; another process that holds it is waited for, up to a bound."""
    until = time.monotonic() + patience
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise StoreBusy(
                        f"{url} was replaced, and another process has been opening it for {patience:g} s; "
                        "nothing was written"
                    ) from None
                time.sleep(NAP)
        yield
    finally:
        os.close(descriptor)
