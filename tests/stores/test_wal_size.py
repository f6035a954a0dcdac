"""The write-ahead log of an SQLite file: it is reported while it grows and cut back afterwards."""

from __future__ import annotations

import logging
from pathlib import Path

import apsw
import pytest

from millpond.store.sqlite import file, wal_size
from millpond.store.sqlite.store import SQLiteStore
from tests.stores.acting import new_job, put

MB = 1024 * 1024


@pytest.fixture
def store(sqlite_path: Path):
    made = SQLiteStore(str(sqlite_path))
    made.migrate()
    yield made
    made.close()


def size(sqlite_path: Path) -> int:
    return Path(f"{sqlite_path}-wal").stat().st_size


def reader(sqlite_path: Path) -> apsw.Connection:
    """A transaction that has read, and stays open."""
    connection = apsw.Connection(str(sqlite_path))
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM millpond_jobs").fetchall()
    return connection


def grow(store: SQLiteStore, megabytes: int) -> None:
    for _ in range(megabytes):
        put(store, new_job(payload=b"x" * MB))


def test_a_log_that_had_to_grow_is_cut_back_when_the_reader_has_ended(store, sqlite_path):
    holder = reader(sqlite_path)
    grow(store, 40)
    assert size(sqlite_path) > wal_size.KEPT
    holder.close()
    grow(store, 5)  # after which SQLite begins the log anew
    assert size(sqlite_path) <= wal_size.KEPT


def test_a_log_that_grows_is_warned_of_and_again_when_it_has_doubled(store, sqlite_path, caplog, monkeypatch):
    monkeypatch.setattr(wal_size, "TOO_LARGE", 5 * MB)
    monkeypatch.setattr(file, "LOOK", 0.0)
    holder = reader(sqlite_path)
    with caplog.at_level(logging.WARNING, "millpond"):
        grow(store, 3)
        assert caplog.records == []
        grow(store, 4)
        assert [record.args for record in caplog.records] == [(str(sqlite_path), 5)]
        grow(store, 8)
        assert len(caplog.records) == 2
    assert "backup" in caplog.text
    holder.close()


def test_a_log_that_has_been_small_again_is_warned_of_anew(store, sqlite_path, caplog, monkeypatch):
    monkeypatch.setattr(wal_size, "TOO_LARGE", 5 * MB)
    monkeypatch.setattr(file, "LOOK", 0.0)
    for number in (1, 2):
        holder = reader(sqlite_path)
        grow(store, 7)
        assert len(caplog.records) == number
        holder.close()
        store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store.counts()
