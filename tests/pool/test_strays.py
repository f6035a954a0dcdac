"""A helper process that a task started lives as long as the worker of that task: no shorter, no longer."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from millpond import Pool
from millpond.events import WorkerStopped
from tests.pool import tasks
from tests.pool.helper_processes import (
    MARKED,
    leave_a_helper,
    lose_the_mark,
    pid_here,
    run_in_a_session,
    use_a_helper,
)
from tests.pool.test_faults import LONG, wait_until_dead

Start = Callable[[str, int], None]


class Helper:
    """The test's end of a helper process."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        for name in ("go", "pid"):
            os.mkfifo(folder / name)
        self.go = os.open(folder / "go", os.O_RDWR)  # both ends, so that opening it waits for nothing

    def pid(self) -> int:
        """Wait until the helper is up."""
        with open(f"{self.folder}/pid") as file:
            return int(file.readline())

    def finish(self) -> None:
        os.write(self.go, b"finished\n")


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Helper]:
    made = Helper(tmp_path)
    yield made
    os.close(made.go)


def end_an_idle_worker(pool: Pool) -> None:
    """When this returns the template has reported the end of an idle worker; it looks for strays next, and
    before it reports another end."""
    idle = pool.submit(pid_here).result(LONG)
    gone = threading.Event()
    pool.subscribe(
        lambda event: gone.set() if isinstance(event, WorkerStopped) and event.pid == idle else None
    )
    os.kill(idle, signal.SIGKILL)
    assert gone.wait(LONG)
    assert pool.submit(pid_here).result(LONG) != idle


@pytest.mark.parametrize("start", [*MARKED, lose_the_mark])
def test_a_helper_of_a_running_task_outlives_other_workers(helper, new_pool, start):
    pool = new_pool(2)
    task = pool.submit(use_a_helper, start, helper.folder)
    helper.pid()
    end_an_idle_worker(pool)
    end_an_idle_worker(pool)
    helper.finish()
    assert task.result(LONG) == "finished"


@pytest.mark.parametrize("start", MARKED)
def test_a_helper_ends_with_its_worker_while_another_worker_is_busy(helper, new_pool, gate, start):
    pool = new_pool(2)
    busy = pool.submit(tasks.hold, gate.folder, 1)
    gate.arrive()
    left = pool.submit(leave_a_helper, start, helper.folder)
    pid = helper.pid()
    os.kill(left.result(LONG), signal.SIGKILL)
    assert wait_until_dead([pid], LONG)
    gate.open()
    assert busy.result(LONG) == 1


def test_a_helper_whose_worker_is_unknown_ends_when_no_worker_is_left_that_may_own_it(helper, new_pool, gate):
    pool = new_pool(2)
    busy = pool.submit(tasks.hold, gate.folder, 1)
    gate.arrive()
    left = pool.submit(leave_a_helper, lose_the_mark, helper.folder)
    pid = helper.pid()
    os.kill(left.result(LONG), signal.SIGKILL)
    for _ in range(3):
        end_an_idle_worker(pool)
    assert not wait_until_dead([pid], 0)  # the busy worker may own it
    gate.open()
    assert busy.result(LONG) == 1
    for _ in range(20):  # births are known to 10 ms, so the next few workers may be thought to be older
        for row in pool.statistics().workers:
            os.kill(row.pid, signal.SIGKILL)
            assert wait_until_dead([row.pid], LONG)
        if wait_until_dead([pid], 0.05):
            break
        pool.submit(pid_here).result(LONG)
    assert wait_until_dead([pid], 0)


def test_helpers_of_a_pool_inside_a_task_end_with_the_task_s_worker(helper, new_pool, gate):
    """The inner template dies with the outer worker: what its workers started is the outer one's to end."""
    pool = new_pool(2)
    pool.submit(tasks.hold, gate.folder, 1)
    gate.arrive()
    left = pool.submit(use_a_pool, run_in_a_session, helper.folder)
    pid = helper.pid()
    os.kill(left.result(LONG), signal.SIGKILL)
    assert wait_until_dead([pid], LONG)


inner: list[Pool] = []


def use_a_pool(start: Start, folder: str) -> int:
    """Leaves a pool open, and a helper that one of its tasks started; the worker that ran this."""
    inner.append(Pool(1))
    inner[0].submit(leave_a_helper, start, folder).result(LONG)
    return os.getpid()


PRELOADED = """
    import os, signal, sys
    from pathlib import Path
    from millpond import Pool

    Path("has_a_helper.py").write_text("import subprocess; helper = subprocess.Popen(['sleep', '1000'])")

    def look():
        import has_a_helper
        return os.getpid(), has_a_helper.helper.pid

    with Pool(1, preload=["has_a_helper"]) as pool:
        for _ in range(4):
            worker, helper = pool.submit(look).result(60)
            os.kill(worker, signal.SIGKILL)
        print(Path(f"/proc/{helper}/stat").read_text().rpartition(")")[2].split()[0])
    """


def test_a_helper_that_a_preloaded_module_started_outlives_every_worker(run_script):
    assert run_script(PRELOADED) == "S\n"
