"""Workers that `multiprocessing` has started: one that stands still is found and replaced as well."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing import forkserver

import pytest

from millpond import Pool
from millpond.events import WorkerStalled, WorkerStopped
from tests.pool import wedges
from tests.pool.conftest import Heard
from tests.pool.tasks import identity, pid_of

LONG = 120.0
Listen = Callable[[Pool], Heard]
Pools = Callable[..., Pool]
METHODS = ["fork", "spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
def test_a_stopped_worker_of_a_context_is_replaced(new_pool: Pools, listen: Listen, method: str) -> None:
    pool = new_pool(1, mp_context=multiprocessing.get_context(method), timeout="2s")
    heard = listen(pool)
    stopped = pool.submit(pid_of).result(LONG)
    os.kill(stopped, signal.SIGSTOP)
    assert pool.submit(pid_of).result(LONG) != stopped
    [event] = heard.wait_for(WorkerStalled)
    assert (event.pid, "stopped" in event.reason) == (stopped, True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", ["sleeps", "keeps the interpreter's lock"])
def test_a_result_whose_destructor_hangs_holds_up_no_other_task_of_a_context(
    new_pool: Pools, listen: Listen, how: str, method: str
) -> None:
    pool = new_pool(1, mp_context=multiprocessing.get_context(method), timeout="2s")
    heard = listen(pool)
    first = pool.submit(wedges.in_a_destructor, how)
    others = [pool.submit(identity, number) for number in range(4)]
    assert first.result(LONG) == ""
    assert [future.result(LONG) for future in others] == [0, 1, 2, 3]
    heard.wait_for(WorkerStopped, reason="stalled")


def test_health_is_degraded_while_a_stopped_fork_server_holds_up_a_start(new_pool: Pools) -> None:
    pool = new_pool(1, mp_context=multiprocessing.get_context("forkserver"))
    worker = pool.submit(pid_of).result(LONG)
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    os.kill(server, signal.SIGSTOP)
    try:
        os.kill(worker, signal.SIGKILL)
        while pool.health().status == "ok":
            pass
        assert "forkserver.py" in pool.health().reasons[0]  # the place where the dispatcher waits
    finally:
        os.kill(server, signal.SIGCONT)
    assert pool.submit(pid_of).result(LONG) != worker
