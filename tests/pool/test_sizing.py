"""How many workers there are: growth, shrinking, bounds that hold, and new bounds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from millpond import OptionError, Pool
from millpond.events import WorkerStarted, WorkerStopped
from millpond.pool.process import supervisor
from tests.pool import tasks
from tests.pool.conftest import Heard
from tests.pool.tasks import PATIENCE, Gate, answers, eventually, holder

KINDS = ["process", "thread", "async"]
MakePool = Callable[..., Pool]
Listen = Callable[[Pool], Heard]
pytestmark = pytest.mark.timeout(40)


def workers_of(kind: str, most: int, **options: Any) -> dict[str, Any]:
    """The options of a pool in which every worker runs one task at a time."""
    return {"max_workers": most, "kind": kind, "concurrency": 1 if kind == "async" else None, **options}


# --- growing -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_grows_while_work_waits_and_not_beyond_its_bound(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=1))
    futures = [pool.submit(holder(kind), gate.folder, n) for n in range(6)]
    gate.arrive(3)
    statistics = pool.statistics()
    assert (statistics.size, statistics.busy, statistics.queued) == (3, 3, 3)
    gate.open()
    assert answers(futures) == list(range(6))


@pytest.mark.parametrize("kind", KINDS)
def test_each_task_that_finds_everybody_busy_brings_a_worker(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=0))
    futures = []
    for size in (1, 2, 3):
        futures.append(pool.submit(holder(kind), gate.folder))
        gate.arrive()
        assert pool.statistics().busy == size
    gate.open()
    answers(futures)


def test_async_workers_are_filled_before_new_ones_start(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(3, kind="async", concurrency=2, min_workers=1)
    futures = []
    for size in (1, 1, 2, 2, 3, 3):
        futures.append(pool.submit(tasks.hold_async, gate.folder))
        gate.arrive()
        assert pool.statistics().size == size
    gate.open()
    answers(futures)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_pool_starts_all_its_workers_when_entered(
    kind: str, new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3))
    heard = listen(pool)
    with pool:
        heard.wait_for(WorkerStarted, 3)
        assert pool.statistics().size == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_of_at_least_none_has_no_workers_before_the_first_task(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=0))
    with pool:
        assert pool.statistics().size == 0
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
        assert pool.statistics().size == 1


# --- shrinking -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", [0, 1])
def test_idle_workers_retire_down_to_the_lower_bound_and_come_back(
    kind: str, least: int, new_pool: MakePool, gate: Gate, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=least, idle_timeout=0.05))
    heard = listen(pool)
    futures = [pool.submit(holder(kind), gate.folder) for _ in range(3)]
    gate.arrive(3)
    gate.let_pass(3)
    answers(futures)
    stopped = heard.wait_for(WorkerStopped, 3 - least)
    assert {event.reason for event in stopped} == {"idle"}
    assert pool.statistics().size == least
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_worker_never_retires(kind: str, new_pool: MakePool, gate: Gate, listen: Listen) -> None:
    pool = new_pool(**workers_of(kind, 2, min_workers=0, idle_timeout=0.05))
    heard = listen(pool)
    busy = pool.submit(holder(kind), gate.folder, "busy")
    gate.arrive()
    brief = pool.submit(holder(kind), gate.folder, "brief")
    gate.arrive()
    gate.let_pass()
    heard.wait_for(WorkerStopped)
    assert busy.done() != brief.done()
    assert pool.statistics().busy == 1
    gate.let_pass()
    answers([busy, brief])


@pytest.mark.parametrize("kind", KINDS)
def test_the_most_recently_used_worker_works_first(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**workers_of(kind, 3))
    where = tasks.thread_of if kind == "thread" else tasks.pid_of
    warm = [pool.submit(holder(kind), gate.folder) for _ in range(3)]
    gate.arrive(3)
    gate.let_pass(3)
    answers(warm)
    used = set()
    for _ in range(10):
        eventually(lambda: pool.statistics().idle == 3)
        used.add(pool.submit(where).result(PATIENCE))
    assert len(used) == 1


@pytest.mark.parametrize("kind", ["process", "async"])
def test_a_worker_that_is_used_now_and_then_outlives_the_idle_ones(
    kind: str, new_pool: MakePool, gate: Gate, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=1, idle_timeout=0.3))
    heard = listen(pool)
    futures = [pool.submit(holder(kind), gate.folder) for _ in range(3)]
    gate.arrive(3)
    gate.let_pass(3)
    answers(futures)
    eventually(lambda: pool.statistics().idle == 3)
    used = pool.submit(tasks.pid_of).result(PATIENCE)
    while len(heard.of(WorkerStopped)) < 2:
        eventually(lambda: not pool.statistics().busy)
        assert pool.submit(tasks.pid_of).result(PATIENCE) == used
    assert {row.pid for row in pool.statistics().workers} == {used}


# --- never too many ------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_no_more_tasks_run_at_once_than_there_may_be_workers(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(**workers_of(kind, 2, min_workers=0))
    futures = [pool.submit(holder(kind), gate.folder) for _ in range(8)]
    gate.arrive()
    for _ in range(7):
        gate.arrive()
        assert gate.nobody_else()
        gate.let_pass()
    gate.open()
    answers(futures)


@pytest.mark.parametrize("kind", ["process", "async"])
def test_recycling_never_lets_more_tasks_run_at_once(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**workers_of(kind, 2, max_tasks_per_child=1))
    futures = [pool.submit(tasks.hold_and_note, gate.folder, journal, n) for n in range(8)]
    gate.arrive(2)
    for _ in range(6):
        assert gate.nobody_else()
        gate.let_pass()
        gate.arrive()
    gate.open()
    answers(futures)
    assert most_at_once(tasks.lines(journal)) == 2
    assert len({line.split()[1] for line in tasks.lines(journal)}) == 8


def test_recycling_async_workers_never_lets_more_tasks_run_at_once_than_there_are_slots(
    new_pool: MakePool, gate: Gate, listen: Listen
) -> None:
    pool = new_pool(1, kind="async", concurrency=2, max_tasks_per_child=2)
    heard = listen(pool)
    futures = [pool.submit(tasks.hold_async, gate.folder) for _ in range(4)]
    gate.arrive(2)
    try:
        heard.wait_for(WorkerStarted, 2)  # the next worker may stand ready ...
        pool.submit(tasks.square, 2).cancel()
        assert pool.statistics().queued >= 2  # ... but has nothing before its predecessor is done
    finally:
        gate.open()
    answers(futures)


def most_at_once(journal: list[str]) -> int:
    """From lines that begin with + and -: how many were inside at once, at most."""
    inside = most = 0
    for line in journal:
        inside += 1 if line.startswith("+") else -1
        most = max(most, inside)
    return most


# --- new bounds ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_can_be_made_larger_while_work_waits(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**workers_of(kind, 1))
    futures = [pool.submit(holder(kind), gate.folder) for _ in range(3)]
    gate.arrive(1)
    pool.resize(3)
    gate.arrive(2)
    assert pool.statistics().busy == 3
    gate.open()
    answers(futures)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_can_be_made_smaller_and_busy_workers_finish_first(
    kind: str, new_pool: MakePool, gate: Gate, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3))
    heard = listen(pool)
    futures = [pool.submit(holder(kind), gate.folder, n) for n in range(5)]
    gate.arrive(3)
    pool.resize(1)
    gate.let_pass(3)
    heard.wait_for(WorkerStopped, 2)
    gate.arrive(1)
    assert gate.nobody_else()
    assert pool.statistics().size == 1
    gate.open()
    assert answers(futures) == list(range(5))


@pytest.mark.parametrize("kind", KINDS)
def test_idle_workers_leave_at_once_when_the_pool_is_made_smaller(
    kind: str, new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3))
    heard = listen(pool)
    with pool:
        heard.wait_for(WorkerStarted, 3)
        pool.resize(1)
        stopped = heard.wait_for(WorkerStopped, 2)
        assert {event.reason for event in stopped} == {"resize"}
        assert pool.statistics().size == 1
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_under_a_steady_flood_of_short_tasks_can_be_made_smaller(
    kind: str, new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(**workers_of(kind, 3))
    heard = listen(pool)
    smaller = threading.Event()

    def again(future: Future[Any]) -> None:
        if not smaller.is_set() and not future.exception():
            pool.submit(tasks.square, 2).add_done_callback(again)

    for _ in range(200):
        pool.submit(tasks.square, 2).add_done_callback(again)
    heard.wait_for(WorkerStarted, 3)
    pool.resize(1)
    try:
        heard.wait_for(WorkerStopped, 2)
    finally:
        smaller.set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_pool_can_be_made_dynamic(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(**workers_of(kind, 3, idle_timeout=0.05))
    heard = listen(pool)
    with pool:
        heard.wait_for(WorkerStarted, 3)
        pool.resize(min_workers=1)
        heard.wait_for(WorkerStopped, 2)
        assert pool.statistics().size == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_pool_stays_fixed_when_it_is_resized(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(**workers_of(kind, 1, idle_timeout=0.05))
    heard = listen(pool)
    with pool:
        pool.resize(3)
        heard.wait_for(WorkerStarted, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_raising_the_lower_bound_starts_workers(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(**workers_of(kind, 3, min_workers=0))
    heard = listen(pool)
    with pool:
        pool.resize(min_workers=2)
        heard.wait_for(WorkerStarted, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "bounds", [{"max_workers": 0}, {"max_workers": -1}, {"min_workers": 9}, {"min_workers": -1}]
)
def test_impossible_bounds_are_refused_and_change_nothing(
    kind: str, bounds: dict[str, int], new_pool: MakePool
) -> None:
    pool = new_pool(**workers_of(kind, 2))
    with pytest.raises(OptionError):
        pool.resize(**bounds)
    assert "2..2 workers" in repr(pool)


@pytest.mark.parametrize("bounds", [{"max_workers": 2.5}, {"max_workers": "many"}, {"min_workers": True}])
def test_bounds_of_the_wrong_type_are_refused_by_name(bounds: dict[str, Any]) -> None:
    with pytest.raises((TypeError, OptionError), match=next(iter(bounds))):
        Pool(2).resize(**bounds)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_resized_over_and_over_loses_nothing(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(**workers_of(kind, 1))
    numbers = count()
    futures = []
    for size in (3, 1, 2, 3, 1):
        futures += [pool.submit(tasks.square, next(numbers)) for _ in range(40)]
        pool.resize(size)
    assert answers(futures) == [n * n for n in range(200)]


# --- shared memory -------------------------------------------------------------------------------------
def test_a_worker_at_rest_holds_no_shared_memory_for_large_arguments_and_results(
    new_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ARENA_REST", 0.2)
    pool = new_pool(1)
    data = os.urandom(20 << 20)
    assert pool.submit(tasks.identity, data).result(PATIENCE) == data
    [link] = pool._engine.links.values()  # type: ignore[union-attr]

    def held() -> int:
        return os.fstat(link.page.descriptor).st_blocks * 512

    eventually(lambda: held() < 1 << 20)
    for _ in range(5):  # the arenas go round
        assert pool.submit(tasks.identity, data).result(PATIENCE) == data
