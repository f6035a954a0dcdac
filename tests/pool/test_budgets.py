"""What a worker may use up before it is replaced: tasks, age, memory. Nothing is lost by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millpond import MemoryExceeded, Pool, WorkerDied
from millpond.events import WorkerStarted, WorkerStopped
from tests.pool import tasks
from tests.pool.conftest import Heard
from tests.pool.tasks import PATIENCE, Gate, answers, eventually

PROCESSES = ["process", "async"]
MakePool = Callable[..., Pool]
Listen = Callable[[Pool], Heard]
MB = 1 << 20
pytestmark = pytest.mark.timeout(40)


# --- tasks ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("budget", [1, 3])
def test_each_worker_runs_exactly_its_budget_of_tasks(kind: str, budget: int, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, max_tasks_per_child=budget)
    runs = Counter(pool.submit(tasks.pid_of).result(PATIENCE) for _ in range(4 * budget))
    assert list(runs.values()) == [budget] * 4


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_flood_never_exceeds_the_budget_of_a_worker(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind, max_tasks_per_child=5)
    runs = Counter(answers([pool.submit(tasks.pid_of, n) for n in range(100)]))
    assert max(runs.values()) <= 5
    assert len(runs) >= 20


def test_a_map_never_exceeds_the_budget_of_a_worker(new_pool: MakePool) -> None:
    pool = new_pool(2, max_tasks_per_child=10)
    runs = Counter(pool.map(tasks.pid_of, range(200), timeout=PATIENCE))
    assert max(runs.values()) <= 10


def test_a_large_budget_is_spread_so_that_not_all_rotate_at_once(new_pool: MakePool) -> None:
    pool = new_pool(1, max_tasks_per_child=40)
    runs = Counter(answers([pool.submit(tasks.pid_of, n) for n in range(400)]))
    whole = list(runs.values())[:-1]
    assert all(36 <= number <= 40 for number in whole), runs
    assert len(set(whole)) > 1


@pytest.mark.parametrize("kind", PROCESSES)
def test_recycled_workers_are_counted_and_announced(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(1, kind=kind, max_tasks_per_child=1)
    heard = listen(pool)
    answers([pool.submit(tasks.pid_of) for _ in range(3)])
    stopped = heard.wait_for(WorkerStopped, 3, reason="tasks")
    assert {(event.exitcode, event.signal) for event in stopped} == {(0, None)}
    assert pool.statistics().recycled == 3


def test_a_successor_stands_ready_before_the_last_task_of_a_budget_is_done(
    new_pool: MakePool, gate: Gate, listen: Listen
) -> None:
    pool = new_pool(1, max_tasks_per_child=1)
    heard = listen(pool)
    last = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    heard.wait_for(WorkerStarted, 2)
    gate.let_pass()
    assert last.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_crash_counts_against_no_other_budget(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, max_tasks_per_child=2)
    for _ in range(3):
        with pytest.raises(WorkerDied):
            pool.submit(tasks.crash).result(PATIENCE)
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


# --- age -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_a_worker_that_is_old_is_replaced_between_tasks(
    kind: str, new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(1, kind=kind, max_age=0.2)
    heard = listen(pool)
    pids = []
    while not heard.of(WorkerStopped):
        pids.append(pool.submit(tasks.pid_of).result(PATIENCE))
    assert heard.of(WorkerStopped)[0].reason == "age"
    assert pool.submit(tasks.pid_of).result(PATIENCE) not in pids[:1]
    assert pool.statistics().recycled >= 1


def test_a_task_longer_than_the_age_of_its_worker_is_not_disturbed(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, max_age=0.05)
    long = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    with pytest.raises(TimeoutError):
        long.result(0.3)
    gate.let_pass()
    assert long.result(PATIENCE) == "-"


# --- memory --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_leaking_tasks_have_their_worker_replaced_and_none_fails(
    kind: str, new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None, max_memory=150 * MB)
    heard = listen(pool)
    pids = answers([pool.submit(tasks.leak, 10 * MB) for _ in range(40)])
    assert len(set(pids)) >= 3
    assert heard.wait_for(WorkerStopped, 2, reason="memory")
    eventually(lambda: pool.statistics().completed == 40)
    assert pool.statistics().crashed == 0
    assert pool.statistics().recycled >= 2


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_task_that_outgrows_the_memory_is_stopped_with_the_figures(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(1, kind=kind, max_memory="100MB")
    with pytest.raises(
        MemoryExceeded, match=r"held [0-9,]+ bytes, more than max_memory=100,000,000"
    ) as caught:
        pool.submit(tasks.grow_and_hold, gate.folder, 200 * MB).result(PATIENCE)
    assert isinstance(caught.value, WorkerDied)
    held = int(str(caught.value).split("held ")[1].split(" bytes")[0].replace(",", ""))
    assert held > 100_000_000
    assert caught.value.ran_for is not None
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


def test_large_arguments_and_results_are_not_mistaken_for_a_leak(new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(1, max_memory=150 * MB)
    heard = listen(pool)
    data = bytes(20 * MB)
    for _ in range(8):
        assert len(pool.submit(tasks.identity, data).result(PATIENCE)) == 20 * MB
    assert not heard.of(WorkerStopped)


# --- all at once ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_every_budget_at_once_loses_nothing(kind: str, new_pool: MakePool, journal: Path) -> None:
    budgets: dict[str, Any] = {"max_tasks_per_child": 7, "max_age": 0.1, "max_memory": 60 * MB, "timeout": 5}
    pool = new_pool(2, kind=kind, min_workers=0, idle_timeout=0.02, **budgets)
    futures = [pool.submit(tasks.note, journal, n) for n in range(150)]
    futures += [pool.submit(tasks.leak, 5 * MB) for _ in range(20)]
    assert answers(futures[:150]) == list(range(150))
    answers(futures[150:])
    assert Counter(map(int, tasks.lines(journal))) == Counter(range(150))
