"""The end of a worker in good order: what it has begun is ended, within a bound, and delays nothing else."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millpond import Pool
from millpond.events import WorkerFailedToStart, WorkerStopped
from millpond.rules.pool import size
from tests.pool import leaving, tasks
from tests.pool.conftest import Heard
from tests.pool.leaving import RECORDS
from tests.pool.tasks import PATIENCE, Gate

MakePool = Callable[..., Pool]
METHODS = ["fork", "spawn", "forkserver"]
pytestmark = pytest.mark.timeout(60)


def context(method: str | None) -> Any:
    return None if method is None else multiprocessing.get_context(method)


# --- queues ----------------------------------------------------
@pytest.mark.parametrize("tasks_each", [None, 10])
@pytest.mark.parametrize("method", METHODS)
def test_every_record_that_a_worker_has_put_into_a_queue_arrives(
    method: str, tasks_each: int | None, new_pool: MakePool
) -> None:
    start = context(method)
    records = start.Queue()
    pool = new_pool(
        2,
        mp_context=start,
        initializer=leaving.log_to,
        initargs=(records,),
        max_tasks_per_child=tasks_each,
    )
    arrived: list[Any] = []
    listener = threading.Thread(target=lambda: arrived.extend(iter(records.get, None)), daemon=True)
    listener.start()
    assert list(pool.map(leaving.log, range(40), chunksize=1)) == [None] * 40
    pool.shutdown()
    records.put(None)
    records.cancel_join_thread()
    listener.join(PATIENCE)
    assert not listener.is_alive(), f"{len(arrived)} came; then a worker that left kept the queue locked"
    assert len(arrived) == 40 * RECORDS


# --- exit handlers and finalizers ----------------------------------------------------
@pytest.mark.parametrize("method", [None, "spawn"])
@pytest.mark.parametrize("kind", ["process", "async"])
def test_what_a_task_registered_for_the_exit_is_called(
    kind: str, method: str | None, new_pool: MakePool, journal: Path
) -> None:
    pool = new_pool(1, kind=kind, mp_context=context(method))
    pool.submit(leaving.note_when_finalized, journal).result(PATIENCE)
    pool.submit(leaving.note_at_exit, journal).result(PATIENCE)
    pool.shutdown()
    assert tasks.lines(journal) == ["finalizer", "exit handler"]


def test_a_worker_that_is_replaced_calls_its_exit_handlers(new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(1, max_tasks_per_child=1)
    pids = {pool.submit(leaving.note_at_exit, journal).result(PATIENCE) for _ in range(3)}
    pool.shutdown()
    assert len(pids) == 3
    assert tasks.lines(journal) == ["exit handler"] * 3


def test_exit_handlers_of_preloaded_modules_are_not_called_by_each_worker(
    new_pool: MakePool, journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cleans_up.py").write_text(
        textwrap.dedent(f"""
            import atexit, weakref
            from tests.pool import tasks

            class Folder: pass

            folder = Folder()
            atexit.register(tasks.note, {str(journal)!r}, "of the template")
            weakref.finalize(folder, tasks.note, {str(journal)!r}, "of the template")

            def mine():
                weakref.finalize(folder, tasks.note, {str(journal)!r}, "of the worker")
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    import cleans_up  # type: ignore[import-not-found]

    pool = new_pool(2, preload=["cleans_up"])
    pool.submit(cleans_up.mine).result(PATIENCE)
    pool.shutdown()
    assert tasks.lines(journal) == ["of the worker"]


def test_what_a_failing_initializer_has_logged_arrives(
    new_pool: MakePool, listen: Callable[[Pool], Heard]
) -> None:
    start = context("fork")
    records = start.Queue()
    pool = new_pool(1, mp_context=start, initializer=leaving.log_and_fail, initargs=(records,))
    heard = listen(pool)
    pool.submit(tasks.square, 2)
    heard.wait_for(WorkerFailedToStart)
    assert records.get(timeout=PATIENCE).getMessage() == "cannot begin"


# --- threads ----------------------------------------------------
@pytest.mark.parametrize("method", [None, "fork"])
@pytest.mark.parametrize("kind", ["process", "async"])
def test_a_thread_that_is_no_daemon_is_waited_for(
    kind: str, method: str | None, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(1, kind=kind, mp_context=context(method))
    work = leaving.leave_a_thread_in_a_loop if kind == "async" else leaving.leave_a_thread
    pool.submit(work, gate.folder, journal).result(PATIENCE)
    gate.arrive()
    pool.shutdown(wait=False)
    gate.open()
    pool.shutdown()
    assert tasks.lines(journal) == ["thread"]


def test_the_successor_of_a_worker_that_leaves_slowly_works_already(
    new_pool: MakePool, gate: Gate, journal: Path, listen: Callable[[Pool], Heard]
) -> None:
    pool = new_pool(1, max_tasks_per_child=1)
    heard = listen(pool)
    slow = pool.submit(leaving.leave_a_thread, gate.folder, journal).result(PATIENCE)
    gate.arrive()
    assert pool.submit(os.getpid).result(PATIENCE) != slow
    assert slow not in {event.pid for event in heard.of(WorkerStopped)}
    gate.open()
    heard.wait_for(WorkerStopped, pid=slow, exitcode=0)
    assert tasks.lines(journal) == ["thread"]


def test_a_worker_that_never_leaves_is_killed_and_the_log_shows_what_it_waited_for(
    new_pool: MakePool,
    listen: Callable[[Pool], Heard],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(size, "LEAVE_WAIT", 0.5)
    pool = new_pool(1, max_tasks_per_child=1)
    heard = listen(pool)
    with caplog.at_level(logging.WARNING, "millpond"):
        pool.submit(leaving.leave_a_thread_for_ever).result(PATIENCE)
        heard.wait_for(WorkerStopped, signal=9)
    assert "was told to leave" in caplog.text
    assert "never_end" in caplog.text


# --- measuring coverage ----------------------------------------------------
MEASURED = """
import multiprocessing, sys
import measured
from millpond import Pool

if __name__ == "__main__":
    method = sys.argv[1]
    start = None if method == "template" else multiprocessing.get_context(method)
    with Pool(1, mp_context=start) as pool:
        assert pool.submit(measured.work).result() == 3
"""


@pytest.mark.parametrize("method", ["template", "fork", "spawn"])
def test_coverage_of_what_ran_in_workers_is_written(method: str, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    (tmp_path / "measured.py").write_text("def work():\n    found = 1\n    found += 2\n    return found\n")
    (tmp_path / "script.py").write_text(MEASURED)
    patch = "subprocess" if method == "template" else ""
    (tmp_path / ".coveragerc").write_text(
        f"[run]\nparallel=true\nsource=.\npatch={patch}\nconcurrency=multiprocessing,thread\n"
    )

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "coverage", *command],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("run", "script.py", method)
    run("combine")
    assert re.search(r"measured\.py +4 +0 +100%", run("report"))


# --- as multiprocessing sees it ----------------------------------------------------
@pytest.mark.parametrize("method", [None, *METHODS])
def test_a_worker_is_a_process_of_multiprocessing(method: str | None, new_pool: MakePool) -> None:
    pool = new_pool(1, mp_context=context(method))
    name, identity, parent, alive = pool.submit(leaving.who_am_i).result(PATIENCE)
    assert name == "millpond-worker-1"
    assert identity[-1] >= 1
    assert parent == os.getpid()
    assert alive


def test_workers_have_names_and_numbers_of_their_own(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2)
    held = [pool.submit(leaving.hold_and_tell, gate.folder) for _ in range(2)]
    gate.arrive(2)
    gate.open()
    assert sorted(future.result(PATIENCE)[:2] for future in held) == [
        ("millpond-worker-1", (1,)),
        ("millpond-worker-2", (2,)),
    ]
