"""Pools that can start only some of their workers, or very many, or that are made in unusual places."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from millpond import Pool, WorkerDied
from tests.pool import leaving
from tests.pool.tasks import PATIENCE, Gate, eventually

MakePool = Callable[..., Pool]

pytestmark = pytest.mark.timeout(90)


def run(source: str, folder: Path, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a program as a user would."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        text=True,
        timeout=8 * PATIENCE,
        cwd=folder,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


# --- very many workers -------------------------------------------------------------------------------------
MANY = """
import logging, resource, sys, threading
from millpond import Pool

class Bell(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)
        warned.set()

warned = threading.Event()
logging.getLogger().addHandler(Bell())

limit, workers, count = map(int, sys.argv[1:])
if limit:
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
with Pool(workers) as pool:
    futures = [pool.submit(pow, n, 2) for n in range(count)]
    assert [future.result() for future in futures] == [n * n for n in range(count)]
    assert not limit or warned.wait(20)
    print(len(pool.statistics().workers), pool.health().status)
"""


def test_a_pool_of_five_hundred_workers_starts_and_works(tmp_path: Path) -> None:
    workers, status = run(MANY, tmp_path, "0", "500", "1000").stdout.split()
    assert int(workers) >= 1
    assert status == "ok"


@pytest.mark.parametrize(("limit", "wanted", "least"), [(256, 100, 20), (1024, 210, 120)])
def test_where_descriptors_are_short_as_many_workers_as_fit_do_all_the_work(
    limit: int, wanted: int, least: int, tmp_path: Path
) -> None:
    done = run(MANY, tmp_path, str(limit), str(wanted), "420")
    assert least <= int(done.stdout.split()[0]) < wanted
    assert done.stderr.count("open files leaves room for") == 1
    assert "Traceback" not in done.stderr


FULL_TO_THE_BRIM = """
import resource
from millpond import Pool

resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
with Pool(100, min_workers=100) as pool:
    pool.submit(pow, 2, 2).result()
    kept = [open("/dev/null") for _ in range(8)]
    print("room is left")
"""


def test_a_large_pool_leaves_descriptors_to_its_program(tmp_path: Path) -> None:
    assert run(FULL_TO_THE_BRIM, tmp_path).stdout == "room is left\n"


# --- causes of failure -------------------------------------------------------------------------------------
NO_PROCESSES = """
import os, resource

if os.getuid() == 0:
    os.setuid(65534)  # root may always fork
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
"""

REFUSED = """
from millpond import Pool, PoolDegraded

with Pool(1, preload=["no_processes"]) as pool:
    try:
        pool.submit(pow, 2, 2).result()
    except PoolDegraded as error:
        print(error)
"""


def test_a_process_that_the_system_refuses_is_told_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "no_processes.py").write_text(NO_PROCESSES)
    told = run(REFUSED, tmp_path).stdout
    assert "no process could be forked: Resource temporarily unavailable (EAGAIN)" in told
    assert "ulimit -u" in told


# --- unusual places ----------------------------------------------------------------------------------------
FROZEN = """
import multiprocessing, subprocess, sys
sys.frozen = True  # as PyInstaller and others set it

def never(*_, **__):
    raise SystemExit("the program was started again")

from millpond import OptionError, Pool
started, subprocess.Popen = subprocess.Popen, never
try:
    Pool(1)
except OptionError as error:
    print(error)
with Pool(1, mp_context=multiprocessing.get_context("fork")) as pool:
    print(pool.submit(pow, 2, 3).result())
with Pool(1, kind="thread") as pool:
    print(pool.submit(pow, 2, 4).result())
"""


def test_a_frozen_program_does_not_start_itself_again_and_is_told_the_way_out(tmp_path: Path) -> None:
    first, *rest = run(FROZEN, tmp_path).stdout.splitlines()
    assert "sys.frozen" in first
    assert "get_context('fork')" in first
    assert rest == ["8", "16"]


IN_A_CHILD = """
import multiprocessing, sys
from dataclasses import dataclass
from millpond import Pool

factor = 3

@dataclass
class Point:
    x: int

class Further(Point):
    def scaled(self):
        return Point(self.x * factor)

def scale(point):
    return point.scaled()

def child(queue):
    with Pool(1) as pool:
        queue.put((pool.submit(scale, Further(2)).result(), pool.submit(lambda: factor).result()))

if __name__ == "__main__":
    start = multiprocessing.get_context(sys.argv[1])
    queue = start.Queue()
    process = start.Process(target=child, args=(queue,))
    process.start()
    process.join(20)
    print(process.exitcode, *queue.get(timeout=1))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_in_a_child_process_runs_functions_and_classes_of_the_script(
    method: str, tmp_path: Path
) -> None:
    assert run(IN_A_CHILD, tmp_path, method).stdout == "0 Point(x=6) 3\n"


COUNT_ARGUMENTS = """
import sys
from millpond import Pool

def count():
    import sys
    return len(sys.argv)

sys.argv += [f"/some/where/picture-{n:06}.png" for n in range(12_000)]
with Pool(1) as pool:
    print(pool.submit(count).result())
"""


def test_a_command_line_of_many_file_names_reaches_the_workers(tmp_path: Path) -> None:
    done = run(COUNT_ARGUMENTS, tmp_path)
    assert done.stdout == "12001\n"
    assert not done.stderr


BLOCKED = """
import os, signal, time
from millpond import Pool, WorkerDied

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
with Pool(1) as pool:
    try:
        pool.submit(os._exit, 7).result()
    except WorkerDied as error:
        print(error.death.exitcode)
"""


def test_the_exit_code_of_a_worker_is_known_although_the_program_blocks_all_signals(tmp_path: Path) -> None:
    assert run(BLOCKED, tmp_path).stdout == "7\n"


NEIGHBOUR = """
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
import beside
from millpond import Pool

os.chdir(sys.argv[1])
with Pool(1) as pool:
    print(pool.submit(beside.answer).result())
"""


def test_a_module_of_the_working_directory_is_not_taken_for_one_of_the_standard_library(
    tmp_path: Path,
) -> None:
    (tmp_path / "beside.py").write_text("def answer(): return 'of the script'\n")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("socket", "marshal", "select", "struct"):
        (folder / f"{name}.py").write_text("raise SystemExit('foreign code was run')\n")
    done = run(NEIGHBOUR, tmp_path, str(folder))
    assert done.stdout == "of the script\n"
    assert not done.stderr


# --- a fork server -----------------------------------------------------------------------------------------
def test_the_exit_code_that_a_fork_server_tells_late_is_not_lost(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, mp_context=multiprocessing.get_context("forkserver"))
    future = pool.submit(leaving.hold_and_exit, gate.folder, 7)
    gate.arrive()
    pool.shutdown(wait=False)  # no successor is started, which would wait for the fork server
    server: Any = forkserver
    os.kill(server._forkserver._forkserver_pid, signal.SIGSTOP)
    try:
        gate.open()
        eventually(lambda: [row.state for row in pool.statistics().workers] == ["dead"])
    finally:
        os.kill(server._forkserver._forkserver_pid, signal.SIGCONT)
    error = future.exception(PATIENCE)
    assert isinstance(error, WorkerDied)
    assert error.death is not None
    assert error.death.exitcode == 7


def test_programs_read_how_many_workers_there_may_be_as_from_an_executor_of_the_standard_library(
    new_pool: MakePool,
) -> None:
    pool = new_pool(3)
    assert pool._max_workers == 3
    pool.resize(5)
    assert pool._max_workers == 5
    assert new_pool(2, kind="thread")._max_workers == 2


# --- preloading --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("module", ["numpy", "with_a_thread"])
def test_only_threads_of_python_that_preloaded_modules_leave_behind_are_warned_of(
    module: str, tmp_path: Path
) -> None:
    if module == "numpy":
        pytest.importorskip("numpy")
    (tmp_path / "with_a_thread.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    source = f"from millpond import Pool\nPool(1, preload=['{module}']).submit(pow, 2, 2).result()\n"
    told = run(source, tmp_path).stderr
    assert ("has opened 1 thread" in told) == (module == "with_a_thread")
