"""A worker that stands still between two tasks holds up no other task, and is replaced.

Each test leaves a worker in such a state by a task that ends in good order, and then asks for other tasks.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millpond import Pool, TaskTimeout
from millpond.events import WorkerStalled, WorkerStopped
from tests.pool import wedges
from tests.pool.conftest import Heard
from tests.pool.tasks import Gate, identity, note_or_hold, pid_of

LONG = 120.0  # seconds; a standing worker is found after 8 of its own

Listen = Callable[[Pool], Heard]
Pools = Callable[..., Pool]


@pytest.mark.parametrize("how", wedges.STILL)
def test_a_result_whose_destructor_hangs_holds_up_no_other_task(
    new_pool: Pools, listen: Listen, how: str
) -> None:
    pool = new_pool(1, timeout="2s")
    heard = listen(pool)
    first = pool.submit(wedges.in_a_destructor, how)
    others = [pool.submit(identity, number) for number in range(4)]
    assert first.result(LONG) == ""
    assert [future.result(LONG) for future in others] == [0, 1, 2, 3]
    heard.wait_for(WorkerStopped, reason="stalled")
    assert pool.statistics().stalled == 1


@pytest.mark.parametrize("how", ["spins in C", "keeps the interpreter's lock", "is stopped"])
def test_a_thread_left_behind_by_a_task_holds_up_no_other(new_pool: Pools, listen: Listen, how: str) -> None:
    pool = new_pool(1, timeout="3s")
    heard = listen(pool)
    pool.submit(wedges.in_a_thread_left_behind, how).result(LONG)
    outcomes: list[Any] = []
    while not outcomes or not (heard.of(WorkerStalled) or isinstance(outcomes[-1], TaskTimeout)):
        outcomes.append(pool.submit(identity, 1).exception(LONG))  # until the thread is in the way
    assert pool.submit(identity, 2).result(LONG) == 2


@pytest.mark.parametrize("how", ["sleeps", "spins", "keeps the interpreter's lock", "is stopped"])
def test_a_signal_handler_that_hangs_between_two_tasks_holds_up_no_other(
    new_pool: Pools, listen: Listen, how: str
) -> None:
    pool = new_pool(1, timeout="3s")
    heard = listen(pool)
    pool.submit(wedges.in_a_signal_handler, how).result(LONG)
    outcomes: list[Any] = []
    while not outcomes or not (heard.of(WorkerStalled) or isinstance(outcomes[-1], TaskTimeout)):
        outcomes.append(pool.submit(identity, 1).exception(LONG))  # until the handler is called
    assert pool.submit(identity, 2).result(LONG) == 2


@pytest.mark.parametrize("leave", [wedges.in_a_callback_of_the_loop, wedges.in_a_destructor_on_the_loop])
@pytest.mark.parametrize("how", ["sleeps", "spins in C", "is stopped"])
def test_what_blocks_the_loop_of_an_async_worker_after_a_task_holds_up_no_other(
    new_pool: Pools, listen: Listen, leave: Callable[..., Any], how: str
) -> None:
    pool = new_pool(1, kind="async", timeout="2s")
    heard = listen(pool)
    pool.submit(leave, how).result(LONG)
    assert [pool.submit(identity, number).result(LONG) for number in range(3)] == [0, 1, 2]
    heard.wait_for(WorkerStopped, reason="stalled")


@pytest.mark.parametrize("kind", ["process", "async"])
def test_a_stopped_worker_is_replaced_though_no_task_has_a_timeout(
    new_pool: Pools, listen: Listen, kind: str
) -> None:
    pool = new_pool(1, kind=kind)
    heard = listen(pool)
    stopped = pool.submit(pid_of).result(LONG)
    os.kill(stopped, signal.SIGSTOP)
    assert pool.submit(pid_of).result(LONG) != stopped
    [event] = heard.wait_for(WorkerStalled)
    assert event.pid == stopped
    assert "stopped" in event.reason


@pytest.mark.parametrize("kind", ["process", "async"])
def test_with_another_worker_the_tasks_of_a_stopped_one_run_there(new_pool: Pools, kind: str) -> None:
    pool = new_pool(2, kind=kind)
    stopped = pool.submit(pid_of).result(LONG)
    os.kill(stopped, signal.SIGSTOP)
    ran_in = {future.result(LONG) for future in [pool.submit(pid_of) for _ in range(50)]}
    assert stopped not in ran_in


def test_a_pool_ends_although_a_worker_that_must_leave_is_stopped(new_pool: Pools) -> None:
    pool = new_pool(1)
    stopped = pool.submit(pid_of).result(LONG)
    os.kill(stopped, signal.SIGSTOP)
    pool.shutdown()
    assert not pool.statistics().workers


def test_health_names_a_worker_that_stands_still(new_pool: Pools) -> None:
    pool = new_pool(1)
    stopped = pool.submit(pid_of).result(LONG)
    os.kill(stopped, signal.SIGSTOP)
    waiting = pool.submit(identity, 1)
    while pool.health().status == "ok":
        assert not waiting.done()
    assert f"worker {stopped} begins none of its tasks: it is stopped" in pool.health().reasons[0]
    assert waiting.result(LONG) == 1
    assert pool.health().status == "ok"


def test_a_task_behind_a_long_one_has_another_worker_started(
    new_pool: Pools, gate: Gate, journal: Path
) -> None:
    pool = new_pool(2, min_workers=1)
    for number in range(50):  # so that it is known to be short, and travels in batches
        pool.submit(note_or_hold, None, journal, number).result(LONG)
    mixed = [pool.submit(note_or_hold, gate.folder if n == 0 else None, journal, n) for n in range(20)]
    gate.arrive()
    assert [future.result(LONG) for future in mixed[1:]] == list(range(1, 20))
    gate.let_pass()
    assert mixed[0].result(LONG) == 0
