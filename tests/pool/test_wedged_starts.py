"""A start that never ends is killed and counted as failed; a pool of which no start ends says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from millpond import Pool, PoolDegraded
from millpond.events import PoolBecameDegraded, WorkerFailedToStart
from millpond.pool.process.control import CrewControl
from millpond.pool.process.starters import TemplateProcess
from tests.pool import wedges
from tests.pool.conftest import Heard
from tests.pool.tasks import identity, pid_of
from tests.pool.test_faults import wait_until_dead

LONG = 120.0
Listen = Callable[[Pool], Heard]
Pools = Callable[..., Pool]


def hang_once(marker: Path, how: str) -> None:
    """An initializer that hangs in the first worker that gets here."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    wedges.STILL[how]()


@pytest.mark.parametrize("how", ["sleeps", "spins in C", "keeps the interpreter's lock", "is stopped"])
def test_a_start_that_hangs_is_killed_and_another_is_made(
    new_pool: Pools, listen: Listen, tmp_path: Path, how: str
) -> None:
    pool = new_pool(1, initializer=hang_once, initargs=(tmp_path / "marker", how), start_timeout=1.5)
    heard = listen(pool)
    assert pool.submit(identity, 1).result(LONG) == 1
    [event] = heard.wait_for(WorkerFailedToStart)
    assert "not ready 1.5 s after its start" in event.cause


def test_a_pool_of_which_no_start_ends_fails_its_tasks_and_names_the_place(
    new_pool: Pools, listen: Listen
) -> None:
    pool = new_pool(1, initializer=wedges.sleep, start_timeout=0.5)
    heard = listen(pool)
    error = pool.submit(identity, 1).exception(LONG)
    assert isinstance(error, PoolDegraded)
    assert "in sleep" in str(error)
    heard.wait_for(PoolBecameDegraded)
    assert pool.health().status == "degraded"


def test_a_preload_that_never_ends_fails_the_tasks(new_pool: Pools) -> None:
    pool = new_pool(1, preload=["tests.pool.wedged_preload"], start_timeout=0.5)
    assert isinstance(pool.submit(identity, 1).exception(LONG), PoolDegraded)


def test_a_pool_ends_while_a_start_hangs(new_pool: Pools) -> None:
    pool = new_pool(1, initializer=wedges.sleep)
    pool.submit(identity, 1)
    pool.shutdown(cancel_futures=True, timeout=0.1)
    assert not pool.statistics().workers


def test_a_worker_that_starts_has_no_pid_yet(new_pool: Pools) -> None:
    pool = new_pool(1, preload=["tests.pool.wedged_preload"])
    pool.submit(identity, 1)
    while not (rows := pool.statistics().workers):
        pass
    assert [(row.state, row.pid) for row in rows] == [("starting", None)]
    pool.kill_workers()


def test_a_start_that_is_stopped_by_a_signal_is_replaced(new_pool: Pools, tmp_path: Path) -> None:
    pool = new_pool(2, initializer=hang_once, initargs=(tmp_path / "marker", "is stopped"), start_timeout=2)
    assert [pool.submit(identity, number).result(LONG) for number in range(20)] == list(range(20))
    for row in pool.statistics().workers:
        assert row.pid is None or row.pid > 0


def test_a_template_that_is_stopped_goes_on_when_it_is_needed(new_pool: Pools) -> None:
    pool = new_pool(1)
    first = pool.submit(pid_of).result(LONG)
    engine = pool._engine
    assert isinstance(engine, CrewControl)
    os.kill(engine.upkeep.starter.pid, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    assert pool.submit(pid_of).result(LONG) != first


HANGING_PRELOAD = """
import os, sys
from millpond import Pool
from tests.pool.tasks import identity
os.environ["WEDGED_PRELOAD"], os.environ["WEDGED_HOW"] = sys.argv[1:]
Pool(1, preload=["tests.pool.announced_preload"]).submit(identity, 1).result()
"""


@pytest.mark.parametrize("how", ["sleeps", "spins in C", "keeps the interpreter's lock"])
def test_a_template_that_hangs_in_a_preload_ends_with_its_killed_parent(tmp_path: Path, how: str) -> None:
    announced = tmp_path / "announced"
    os.mkfifo(announced)
    script = tmp_path / "script.py"
    script.write_text(HANGING_PRELOAD)
    command = [sys.executable, str(script), str(announced), how]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.getcwd()}) as parent:
        template = int(announced.read_text())
        parent.kill()
    try:
        assert wait_until_dead([template], 20)
    finally:
        wedges.kill_if_alive(template)


def test_to_close_a_template_that_hangs_in_a_preload_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template = TemplateProcess(("tests.pool.wedged_preload",), fenced=False)
    wait = template.process.wait

    def wait_long(timeout: float | None = None) -> int:
        try:
            return wait(20)
        except subprocess.TimeoutExpired:
            pytest.fail("it was waited for, and hangs")

    monkeypatch.setattr(template.process, "wait", wait_long)
    try:
        template.close()
    finally:
        wedges.kill_if_alive(template.process.pid)
    assert template.process.returncode == -signal.SIGKILL


def test_to_close_a_template_that_is_stopped_lets_it_end(new_pool: Pools) -> None:
    pool = new_pool(1)
    worker = pool.submit(pid_of).result(LONG)
    engine = pool._engine
    assert isinstance(engine, CrewControl)
    template = engine.upkeep.starter._own.process
    os.kill(template.pid, signal.SIGSTOP)
    pool.shutdown()
    assert template.returncode == 0
    assert wait_until_dead([worker], 20)
