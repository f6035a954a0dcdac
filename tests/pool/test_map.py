"""`map`: ordered, eager, chunked by measurement, and exact about the item that went wrong."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from millpond import Pool, PoolClosed, TaskTimeout, WorkerDied
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, answers, eventually, holder

PROCESSES = ["process", "async"]
KINDS = [*PROCESSES, "thread"]
MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(40)


def taken(values: Any, into: list[Any]) -> None:
    """Take all values, keeping those that came before an error."""
    for value in values:
        into.append(value)  # noqa: PERF402  extend() would keep nothing


# --- values --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("items", [1, 3, 63, 64, 65, 1000])
def test_results_come_in_order(kind: str, items: int, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    assert list(pool.map(tasks.square, range(items), timeout=PATIENCE)) == [n * n for n in range(items)]


@pytest.mark.parametrize("kind", KINDS)
def test_results_come_in_order_even_if_they_are_ready_in_another(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(2, kind=kind)
    work = tasks.hold_first_async if kind == "async" else tasks.hold_first
    values = pool.map(partial(work, gate.folder, journal), range(4))
    gate.arrive()
    eventually(lambda: len(tasks.lines(journal)) == 3)
    gate.let_pass()
    assert list(values) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_several_iterables_are_taken_in_step_and_the_shortest_ends(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    assert list(pool.map(pow, [2, 3, 4, 5], [5, 2, 1], timeout=PATIENCE)) == [32, 9, 4]
    assert list(pool.map(divmod, range(100), [7] * 200, timeout=PATIENCE)) == [
        divmod(n, 7) for n in range(100)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_of_nothing_is_empty(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    assert list(pool.map(tasks.square, [])) == []
    assert list(pool.map(tasks.square)) == []
    assert list(pool.map(pow, [], [1, 2])) == []
    assert list(pool.map(tasks.square, [], chunksize=5)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_submitted_before_the_first_value_is_asked_for(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(2, kind=kind, concurrency=1 if kind == "async" else None)
    values = pool.map(partial(holder(kind), gate.folder), range(3))
    gate.arrive(2)
    gate.open()
    assert list(values) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_the_iterable_is_read_at_once(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    source = iter(range(5))
    values = pool.map(tasks.square, source)
    assert list(source) == []
    assert list(values) == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("kind", KINDS)
def test_map_takes_the_options_of_its_view(kind: str, new_pool: MakePool, gate: Gate, journal: Path) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None)
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    low = pool.map(partial(tasks.note, journal), ["low"] * 3)
    high = pool.using(priority=5).map(partial(tasks.note, journal), ["high"] * 3)
    gate.let_pass()
    running.result(PATIENCE)
    assert list(low) + list(high) == ["low"] * 3 + ["high"] * 3
    assert tasks.lines(journal) == ["high"] * 3 + ["low"] * 3


# --- chunks --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunksize", [1, 7, 1000])
def test_the_size_of_chunks_changes_no_value(kind: str, chunksize: int, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    values = pool.map(tasks.square, range(100), chunksize=chunksize, timeout=PATIENCE)
    assert list(values) == [n * n for n in range(100)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunksize", [0, -1])
def test_a_chunk_holds_at_least_one(kind: str, chunksize: int, new_pool: MakePool) -> None:
    with pytest.raises(ValueError, match="chunksize"):
        new_pool(1, kind=kind).map(tasks.square, [1], chunksize=chunksize)


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_large_map_of_short_items_travels_in_chunks(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    values = pool.map(tasks.square, range(20_000), timeout=PATIENCE)
    assert list(values) == [n * n for n in range(20_000)]


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_coroutine_function_can_be_mapped(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    values = pool.map(tasks.square_async, range(500), timeout=PATIENCE)
    assert list(values) == [n * n for n in range(500)]
    values = pool.map(tasks.square_async, range(50), chunksize=7, timeout=PATIENCE)
    assert list(values) == [n * n for n in range(50)]


def test_items_with_a_timeout_are_watched_one_by_one(new_pool: MakePool) -> None:
    pool = new_pool(2)
    list(pool.map(tasks.hang_with, [False] * 100, timeout=PATIENCE))  # short, and known to be
    got: list[int] = []
    with pytest.raises(TaskTimeout):
        taken(pool.using(timeout=0.3).map(tasks.hang_with, [False] * 80 + [True] + [False] * 10), got)
    assert len(got) == 80


def test_large_items_travel_through_a_chunked_map(new_pool: MakePool) -> None:
    pool = new_pool(2)
    values = pool.map(
        tasks.identity, [bytes([n]) * 200_000 for n in range(20)], chunksize=5, timeout=PATIENCE
    )
    assert [value[0] for value in values] == list(range(20))


# --- errors --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_an_error_comes_at_its_item_after_all_earlier_values(
    kind: str, chunksize: int | None, new_pool: MakePool
) -> None:
    pool = new_pool(2, kind=kind)
    got: list[int] = []
    with pytest.raises(ValueError, match="item 150"):
        taken(pool.map(partial(tasks.fail_at, 150), range(200), chunksize=chunksize), got)
    assert got == list(range(150))
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_a_crash_comes_at_its_item_after_all_earlier_values(
    kind: str, chunksize: int | None, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None)
    list(pool.map(tasks.crash_at_quickly, [-1] * 200, range(200), timeout=PATIENCE))  # known to be short
    got: list[int] = []
    with pytest.raises(WorkerDied) as caught:
        taken(pool.map(tasks.crash_at_quickly, [150] * 300, range(300), chunksize=chunksize), got)
    assert caught.value.exitcode == 9
    assert got == list(range(150))
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


def test_items_behind_a_crash_in_a_chunk_are_run_at_most_twice(new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(1)
    got: list[int] = []
    with pytest.raises(WorkerDied):
        taken(pool.map(partial(tasks.crash_at, 33, journal), range(70), chunksize=10), got)
    assert got == list(range(33))
    assert max(Counter(map(int, tasks.lines(journal))).values()) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_that_takes_too_long_says_so(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind)
    values = pool.map(partial(holder(kind), gate.folder), range(2), timeout=0.5)
    gate.arrive(2)
    with pytest.raises(TimeoutError):
        next(values)
    gate.open()


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_of_a_map_runs_from_the_call_not_from_each_item(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None)
    began = time.monotonic()
    values = pool.map(partial(holder(kind), gate.folder), range(3), timeout=1.0)
    gate.arrive()
    gate.let_pass()
    assert next(values) == 0
    with pytest.raises(TimeoutError):
        next(values)
    assert 0.9 <= time.monotonic() - began < 5
    gate.open()


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_after_shutdown_is_refused(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    pool.shutdown()
    with pytest.raises(PoolClosed):
        pool.map(tasks.square, range(3))


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_function_that_cannot_be_pickled_fails_its_items_not_the_pool(
    kind: str, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    unpicklable: Future[int] = Future()  # holds a lock
    for items in (3, 200):
        with pytest.raises(TypeError, match="pickle"):
            list(pool.map(partial(tasks.report, unpicklable), range(items)))
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


# --- stopping early ------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_closing_the_iterator_cancels_what_has_not_begun(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None)
    values: Any = pool.map(partial(tasks.hold_and_note, gate.folder, journal), range(10))
    gate.arrive()
    gate.let_pass()
    assert next(values) == 0
    values.close()
    gate.open()
    pool.submit(tasks.square, 2).result(PATIENCE)
    assert len([line for line in tasks.lines(journal) if line.startswith("+")]) <= 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_a_map_cancels_what_has_not_begun(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind=kind, concurrency=1 if kind == "async" else None)
    values = pool.map(partial(tasks.fail_or_hold, gate.folder), range(10))
    with pytest.raises(ValueError, match="on purpose"):
        next(values)
    gate.open()
    pool.submit(tasks.square, 2).result(PATIENCE)
    eventually(lambda: pool.statistics().cancelled >= 7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_may_be_dropped_half_way(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    assert list(islice(pool.map(tasks.square, range(1000)), 5)) == [0, 1, 4, 9, 16]
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


# --- progress ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_progress_changes_no_value(kind: str, new_pool: MakePool, capfd: pytest.CaptureFixture[str]) -> None:
    pool = new_pool(2, kind=kind)
    values = pool.map(tasks.square, range(200), progress=True, timeout=PATIENCE)
    assert list(values) == [n * n for n in range(200)]
    assert not capfd.readouterr().out


def test_progress_is_shown_on_the_terminal(
    new_pool: MakePool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    pool = new_pool(2)
    assert len(list(pool.map(tasks.square, range(30), progress=True))) == 30
    assert "map" in capsys.readouterr().err


def test_an_error_passes_through_the_progress_bar(new_pool: MakePool) -> None:
    pool = new_pool(2)
    got: list[int] = []
    with pytest.raises(ValueError, match="item 20"):
        taken(pool.map(partial(tasks.fail_at, 20), range(40), progress=True), got)
    assert got == list(range(20))


# --- what can be called --------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_lambdas_closures_methods_partials_and_objects_can_be_called(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    offset = 10
    counter = tasks.Counter(5)
    calls: list[Callable[[int], Any]] = [
        lambda n: n + offset,
        counter.plus,
        counter,
        partial(tasks.fail_at, -1),
        [3, 1, 3].count,
        tasks.Counter,
    ]
    results = [answers([pool.submit(call, n) for n in range(3)]) for call in calls]
    assert results[:5] == [[10, 11, 12], [5, 6, 7], [5, 6, 7], [0, 1, 2], [0, 1, 0]]
    assert [made.value for made in results[5]] == [0, 1, 2]
    assert list(pool.map(lambda n: n + offset, range(100))) == list(range(10, 110))
    assert list(pool.map(counter.plus, range(100))) == list(range(5, 105))


@pytest.mark.parametrize("kind", KINDS)
def test_each_call_sees_the_state_of_its_callable_at_the_time_of_the_submit(
    kind: str, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    counter, values, captured = tasks.Counter(1), [1], 1
    closure = lambda: captured
    seen = []
    for _ in range(3):
        futures: list[Future[int]] = [
            pool.submit(counter.plus, 0), pool.submit(counter, 0),
            pool.submit(partial(tasks.identity, captured)), pool.submit(values.count, 1),
            pool.submit(closure),
        ]  # fmt: skip
        seen.append(answers(futures))
        counter.value += 1
        values.append(1)
        captured += 1
    assert seen == [[n] * 5 for n in (1, 2, 3)]


def test_a_worker_is_another_process_and_a_thread_is_not(new_pool: MakePool) -> None:
    where = {kind: new_pool(1, kind=kind).submit(os.getpid).result(PATIENCE) for kind in KINDS}
    assert where["thread"] == os.getpid()
    assert len(set(where.values())) == 3
