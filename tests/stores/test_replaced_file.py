"""An SQLite file that is deleted or replaced while stores have it open: none works on in the old one."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from millpond import App
from millpond.errors import StoreRefused, StoreUnavailable
from millpond.job import JobState
from millpond.rules.node.health import is_live, is_ready
from millpond.store.sqlite.store import SQLiteStore
from tests.node.waiting import ended, until
from tests.stores.acting import AnyStore, Node, new_job, opened, put, put_many, tally
from tests.stores.test_sharing import in_child

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
ENQUEUE = """
import sys
from tests.stores.acting import new_job, opened, put
store = opened(sys.argv[1])
print(*put(store, new_job()))
store.close()
"""
PARTS = ("", "-wal", "-shm")


@pytest.fixture
def store(sqlite_path: Path) -> Any:
    made: Any = SQLiteStore(str(sqlite_path))
    yield made
    made.close()


def remove(path: Path, parts: tuple[str, ...] = PARTS) -> None:
    for part in parts:
        Path(f"{path}{part}").unlink(missing_ok=True)


def noticed(call: Callable[[], Any]) -> StoreUnavailable:
    """The error of a call, once the store has noticed."""

    def is_refused() -> StoreUnavailable | None:
        try:
            call()
        except StoreUnavailable as error:
            return error
        return None

    return until(is_refused, "a refusal")  # type: ignore[no-any-return]


def enqueued_by_another_process(path: Path) -> str:
    command = [sys.executable, "-c", ENQUEUE, f"sqlite:///{path}"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def other_file(folder: Path, number: int) -> Path:
    """A store of its own with some jobs, closed."""
    path = folder / "other.db"
    other = opened(f"sqlite:///{path}")
    put_many(other, number, queue="restored")
    other.close()
    return path


# --- deleted --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("parts", [PARTS, ("",)], ids=["all three files", "the database alone"])
def test_a_deleted_file_is_unavailable_and_is_not_made_anew(store, sqlite_path, parts):
    put(store, new_job())
    remove(sqlite_path, parts)
    assert "deleted" in str(noticed(lambda: put(store, new_job())))
    for call in (
        lambda: store.enqueue([new_job()]),
        lambda: store.renew("n1", "here"),
        store.counts,
        lambda: store.wait(["default"], 0.01),
    ):
        with pytest.raises(StoreUnavailable, match="millpond migrate"):
            call()
    assert not sqlite_path.exists()


@pytest.mark.parametrize("parts", [PARTS, ("",)], ids=["all three files", "the database alone"])
def test_after_a_deletion_the_file_that_another_process_makes_is_used(store, sqlite_path, parts):
    put_many(store, 3)
    remove(sqlite_path, parts)
    noticed(store.counts)
    job = enqueued_by_another_process(sqlite_path)
    assert tally(store) == {"queued": 1}
    assert [job.id for job in Node(store).claim()] == [job]


def test_a_deleted_file_is_noticed_by_a_store_that_only_reads(store, sqlite_path):
    put(store, new_job())
    remove(sqlite_path)
    noticed(lambda: store.get(["x"]))


def test_a_deleted_file_is_noticed_by_a_store_that_only_waits(store, sqlite_path):
    put(store, new_job())
    store.wait(["other"], 0.01)
    remove(sqlite_path)
    noticed(lambda: store.wait(["other"], 0.01))


def test_an_empty_file_in_place_of_a_deleted_one_is_not_taken_for_a_store(store, sqlite_path):
    put(store, new_job())
    remove(sqlite_path)
    sqlite_path.touch()  # as a copy begins
    noticed(store.counts)
    assert sqlite_path.stat().st_size == 0


def test_after_a_fork_neither_process_makes_a_deleted_file_anew(store, sqlite_path):
    put(store, new_job())
    remove(sqlite_path)
    assert in_child(store.counts).startswith("StoreUnavailable")
    with pytest.raises(StoreUnavailable):
        store.counts()
    assert not sqlite_path.exists()


def test_migrate_makes_a_deleted_file_anew(store, sqlite_path):
    put(store, new_job())
    remove(sqlite_path)
    noticed(store.counts)
    assert "created" in store.migrate()[0]
    assert tally(store) == {}


def test_a_file_that_comes_back_has_all_its_jobs(store, sqlite_path, tmp_path):
    jobs = put_many(store, 5)
    sqlite_path.rename(tmp_path / "away.db")
    noticed(store.counts)
    (tmp_path / "away.db").rename(sqlite_path)
    assert None not in store.get(jobs)


# --- replaced -------------------------------------------------------------------------------------------
def test_a_replaced_file_is_opened_anew_without_the_log_of_the_old_one(store, sqlite_path, tmp_path):
    old = put_many(store, 50)
    other_file(tmp_path, 2).rename(sqlite_path)
    until(lambda: tally(store, "restored") == {"queued": 2})
    assert store.get(old) == [None] * 50
    put_many(store, 50, queue="restored")
    store.close()
    ((found,),) = apsw.Connection(str(sqlite_path)).execute("PRAGMA integrity_check")
    assert found == "ok"
    assert tally(opened(f"sqlite:///{sqlite_path}"), "restored") == {"queued": 52}


def test_a_file_that_was_moved_away_keeps_what_was_only_in_its_log(store, sqlite_path, tmp_path):
    put_many(store, 50)
    sqlite_path.rename(tmp_path / "away.db")
    other_file(tmp_path, 2).rename(sqlite_path)
    until(lambda: tally(store, "restored") == {"queued": 2})
    assert tally(opened(f"sqlite:///{tmp_path / 'away.db'}")) == {"queued": 50}


def test_stores_that_notice_at_once_meet_in_the_new_file(sqlite_path, tmp_path):
    stores = [opened(f"sqlite:///{sqlite_path}") for _ in range(8)]
    put_many(stores[0], 50)
    for store in stores:
        store.wait(["default"], 0)
    other_file(tmp_path, 1).rename(sqlite_path)
    start = threading.Barrier(len(stores))

    def enqueue_after_the_change(store: AnyStore) -> None:
        start.wait()
        until(lambda: tally(store, "restored"))
        put_many(store, 10, queue="restored")

    threads = [threading.Thread(target=enqueue_after_the_change, args=[store]) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {store.counts().queues[0].states[JobState.QUEUED] for store in stores} == {81}
    for store in stores:
        store.close()


def test_a_store_that_waits_hears_of_work_in_the_new_file(store, sqlite_path, tmp_path):
    put(store, new_job(queue="other"))
    heard = threading.Event()

    def listen() -> None:
        while not store.wait(["restored"], 5):
            pass
        heard.set()

    thread = threading.Thread(target=listen)
    thread.start()
    other_file(tmp_path, 2).rename(sqlite_path)
    until(lambda: tally(store, "restored"))
    put(store, new_job(queue="restored"))
    assert heard.wait(30)
    thread.join()


def test_a_transaction_on_the_replaced_file_is_refused(store, sqlite_path, tmp_path):
    put(store, new_job())
    theirs = apsw.Connection(str(sqlite_path))
    theirs.execute("BEGIN")
    other_file(tmp_path, 2).rename(sqlite_path)
    with pytest.raises(StoreRefused, match="open it again"):
        store.enqueue([new_job()], transaction=theirs)


def test_the_change_is_logged_once(store, sqlite_path, caplog):
    put(store, new_job())
    second: Any = SQLiteStore(str(sqlite_path))
    second.counts()
    remove(sqlite_path)
    with caplog.at_level(logging.ERROR, "millpond"):
        for each in (store, second, store, second):
            noticed(each.counts)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert str(sqlite_path) in caplog.text
    second.close()


# --- a node ---------------------------------------------------------------------------------------------
def test_a_node_whose_file_was_deleted_is_alive_and_not_ready_until_there_is_one(tmp_path):
    from millpond import Node as RealNode

    path = tmp_path / "jobs.db"
    app = App(f"sqlite:///{path}")

    @app.task(name="answer")
    def answer() -> int:
        return os.getpid()

    node = RealNode(app, lease=2.0)
    node.start()
    try:
        ended(answer.enqueue())
        remove(path)
        until(lambda: not is_ready(node.report(), deaf_after=1.0).ok)
        assert is_live(node.report()).ok
        noticed(answer.enqueue)
        job = enqueued_by_another_process(path)
        until(lambda: is_ready(node.report(), deaf_after=1.0).ok)
        assert app.store.get([job])[0] is not None
        assert ended(answer.enqueue()).state == "completed"
    finally:
        node.stop(0.0)
        app.store.close()
