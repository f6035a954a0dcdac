"""What a pool tells about itself: statistics, health, events, monitors, and failing starts."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, cast

import pytest

from millpond import OptionError, Pool, PoolDegraded, TaskKilled, TaskTimeout, WorkerDied
from millpond.events import (
    PoolBecameDegraded,
    PoolRecovered,
    TaskCrashed,
    TaskTimedOut,
    WorkerFailedToStart,
    WorkerStarted,
    WorkerStopped,
)
from millpond.pool.statistics import PoolStatistics, Tally
from tests.pool import tasks
from tests.pool.conftest import Heard
from tests.pool.tasks import PATIENCE, Gate, answers, eventually, holder

PROCESSES = ["process", "async"]
KINDS = [*PROCESSES, "thread"]
MakePool = Callable[..., Pool]
Listen = Callable[[Pool], Heard]
pytestmark = pytest.mark.timeout(40)


def one_at_a_time(kind: str) -> dict[str, Any]:
    return {"max_workers": 1, "kind": kind, "concurrency": 1 if kind == "async" else None}


def accounted(statistics: PoolStatistics) -> int:
    """Tasks with an outcome, each counted once."""
    return (
        statistics.completed
        + statistics.errored
        + statistics.crashed
        + statistics.timed_out
        + statistics.expired
        + statistics.cancelled
        + statistics.killed
    )


# --- statistics ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_the_outcomes_add_up_to_what_was_submitted(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    pool.submit(tasks.square, 1).cancel()
    expiring = pool.using(max_queue_age=0.05).submit(tasks.square, 1)
    assert expiring.exception(PATIENCE) is not None
    gate.let_pass()
    answers([running, *[pool.submit(tasks.square, n) for n in range(10)]])
    for _ in range(3):
        pool.submit(tasks.fail).exception(PATIENCE)
    if kind != "thread":
        pool.submit(tasks.crash).exception(PATIENCE)
        pool.using(timeout=0.1).submit(tasks.hang).exception(PATIENCE)
    pool.shutdown()
    statistics = pool.statistics()
    processes = int(kind != "thread")
    assert statistics.submitted == 16 + 2 * processes
    assert (statistics.completed, statistics.errored) == (11, 3)
    assert (statistics.cancelled, statistics.expired) == (1, 1)
    assert (statistics.crashed, statistics.timed_out) == (processes, processes)
    assert accounted(statistics) == statistics.submitted
    assert (statistics.queued, statistics.size, statistics.busy) == (0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_the_items_of_a_map_add_up_too(kind: str, chunksize: int | None, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    assert len(list(pool.map(tasks.square, range(700), chunksize=chunksize, timeout=PATIENCE))) == 700
    pool.shutdown()
    statistics = pool.statistics()
    assert (statistics.completed, statistics.errored) == (700, 0)
    assert statistics.submitted == 700


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunksize", [None, 1, 7])
def test_the_errors_of_a_map_are_counted_as_errors(
    kind: str, chunksize: int | None, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    with pytest.raises(ValueError, match="on purpose"):
        list(pool.map(tasks.fail, ["on purpose"] * 70, chunksize=chunksize))
    pool.shutdown()
    statistics = pool.statistics()
    assert statistics.errored >= 1
    assert statistics.completed == 0


@pytest.mark.parametrize("kind", PROCESSES)
def test_tasks_that_were_killed_are_accounted_for(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    assert pool.kill(running)
    with pytest.raises(TaskKilled):
        running.result(PATIENCE)
    pool.shutdown()
    assert accounted(pool.statistics()) == pool.statistics().submitted == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_was_seen_is_counted(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    for number in range(1, 40):
        pool.submit(tasks.square, number).result(PATIENCE)
        assert pool.statistics().completed == number


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_pool_shows_who_does_what(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind, concurrency=1 if kind == "async" else None)
    futures = [pool.submit(holder(kind), gate.folder) for _ in range(2)]
    arrivals = gate.arrive(2)
    waiting = [pool.submit(tasks.square, n) for n in range(3)]
    statistics = pool.statistics()
    assert (statistics.size, statistics.busy, statistics.idle, statistics.queued) == (2, 2, 0, 3)
    assert {row.state for row in statistics.workers} == {"busy"}
    assert {row.pid for row in statistics.workers} == {
        arrival.thread if kind == "thread" else arrival.pid for arrival in arrivals
    }
    for row in statistics.workers:
        assert row.task is not None
        assert row.task.endswith(f"tasks.{holder(kind).__name__}")
        assert row.running_for is not None
        assert 0 <= row.running_for <= row.age < PATIENCE
        assert row.rss > 1_000_000 or kind == "thread"
    gate.open()
    answers([*futures, *waiting])


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_pool_shows_its_idle_workers(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(2, kind=kind)
    heard = listen(pool)
    with pool:
        heard.wait_for(WorkerStarted, 2)
        for _ in range(4):
            pool.submit(tasks.square, 2).result(PATIENCE)
        eventually(lambda: pool.statistics().idle == 2)
        statistics = pool.statistics()
        assert {(row.state, row.task, row.running_for) for row in statistics.workers} == {
            ("idle", None, None)
        }
        eventually(lambda: sum(row.tasks_done for row in pool.statistics().workers) == 4)


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_workers_row_has_a_number_that_stays_instants_and_tasks_by_their_end(
    kind: str, new_pool: MakePool
) -> None:
    began, nothing = time.time(), cast("Any", None)
    pool = new_pool(1, kind=kind)
    with pool:
        pool.submit(tasks.square, 2).result(PATIENCE)
        (first,) = pool.statistics().workers
        with pytest.raises(TypeError):
            pool.submit(tasks.square, nothing).result(PATIENCE)
        eventually(lambda: pool.statistics().workers[0].failed == 1)
        (row,) = pool.statistics().workers
    assert (row.tasks_done, row.completed, row.failed) == (2, 1, 1)
    assert row.id == first.id
    assert began - 1 <= row.started_at <= time.time()
    assert row.started_at == pytest.approx(first.started_at, abs=0.5)
    assert row.task_started_at is None


def test_a_worker_that_will_be_replaced_is_draining(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, max_tasks_per_child=1)
    running = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    assert "draining" in {row.state for row in pool.statistics().workers}
    assert pool.statistics().draining == 1
    gate.let_pass()
    running.result(PATIENCE)


@pytest.mark.parametrize("kind", KINDS)
def test_waits_and_runs_are_plausible(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    futures = [pool.submit(tasks.spin, 0.002) for _ in range(20)]
    with pytest.raises(TimeoutError):
        futures[-1].result(0.3)
    gate.let_pass()
    answers([running, *futures])
    pool.shutdown()
    waited, run = pool.statistics().wait, pool.statistics().run
    assert 0.25 < waited.p50 < PATIENCE  # twenty of twenty-one have waited behind the first
    assert 0.0015 < run.p50 < 0.2
    assert 0.25 < run.p99 < PATIENCE
    for durations, count in ((waited, 21), (run, 21)):
        assert 0 <= durations.p50 <= durations.p95 <= durations.p99
        assert durations.mean == pytest.approx(durations.total / count)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_did_nothing_has_statistics_too(kind: Any) -> None:
    pool = Pool(2, kind=kind)
    statistics = pool.statistics()
    assert (statistics.submitted, statistics.wait.p99, statistics.run.mean, statistics.workers) == (
        0,
        0,
        0,
        (),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_cannot_be_changed(kind: Any) -> None:
    statistics = Pool(1, kind=kind).statistics()
    with pytest.raises(AttributeError):
        statistics.size = 5  # type: ignore[misc]


@pytest.mark.parametrize("kind", KINDS)
def test_looking_all_the_time_disturbs_nothing(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind)
    stop, errors = threading.Event(), []

    def look() -> None:
        while not stop.is_set():
            try:
                pool.statistics()
                pool.health()
            except BaseException as error:
                errors.append(error)
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    lookers = [threading.Thread(target=look) for _ in range(2)]
    try:
        for looker in lookers:
            looker.start()
        for _ in range(5):
            assert answers([pool.submit(tasks.square, n) for n in range(100)]) == [n * n for n in range(100)]
    finally:
        stop.set()
        for looker in lookers:
            looker.join(PATIENCE)
        sys.setswitchinterval(interval)
    assert not errors


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_task_submitted_while_somebody_looks_is_not_left_lying(
    kind: str, new_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = new_pool(1, kind=kind)
    pool.submit(tasks.square, 2).result(PATIENCE)
    looking, submitted = threading.Event(), threading.Event()
    copy = Tally.copy

    def copy_slowly(tally: Tally) -> Tally:
        looking.set()
        submitted.wait(PATIENCE)
        return copy(tally)

    monkeypatch.setattr(Tally, "copy", copy_slowly)
    for _ in range(3):  # the first may be saved by a pool that has just woken for something else
        looking.clear()
        submitted.clear()
        looker = threading.Thread(target=pool.statistics)
        looker.start()
        assert looking.wait(PATIENCE)
        future = pool.submit(tasks.square, 3)
        submitted.set()
        looker.join(PATIENCE)
        assert wait([future], PATIENCE).done, "the task lies in the inbox and nobody looks"


# --- health --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_pool_says_so(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    assert (pool.health().status, pool.health().reasons) == ("ok", ())
    pool.submit(tasks.square, 2).result(PATIENCE)
    assert (pool.health().status, pool.health().reasons) == ("ok", ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_backs_up_is_a_reason(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = [pool.submit(tasks.square, n) for n in range(5)]
    assert not pool.health().reasons
    waiting.append(pool.submit(tasks.square, 5))
    health = pool.health()
    assert health.status == "ok"
    assert "the queue backs up: 6 tasks wait for 1 slots" in health.reasons
    gate.let_pass()
    answers([running, *waiting])
    assert not pool.health().reasons


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_pool_has_failed(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    pool.shutdown()
    assert pool.health().status == "failed"
    assert "shut down" in pool.health().reasons[0]


# --- events --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_workers_are_announced_when_they_come_and_go(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(2, kind=kind)
    heard = listen(pool)
    with pool:
        heard.wait_for(WorkerStarted, 2)
    assert {event.pid for event in heard.of(WorkerStopped)} == {
        event.pid for event in heard.of(WorkerStarted)
    }
    assert {event.reason for event in heard.of(WorkerStopped)} == {"shutdown"}


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_crash_is_announced_with_its_task(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(1, kind=kind)
    heard = listen(pool)
    with pytest.raises(WorkerDied) as caught:
        pool.submit(tasks.crash).result(PATIENCE)
    crashed = heard.wait_for(TaskCrashed)[0]
    assert (crashed.task, crashed.pid) == ("tests.pool.tasks.crash", caught.value.pid)
    assert "exited with code 3" in crashed.cause
    stopped = heard.wait_for(WorkerStopped)[0]
    assert (stopped.pid, stopped.reason, stopped.exitcode, stopped.signal) == (
        caught.value.pid,
        "died",
        3,
        None,
    )
    heard.wait_for(WorkerStarted, 2)


def test_a_worker_killed_in_its_idleness_is_announced_and_replaced(
    new_pool: MakePool, listen: Listen
) -> None:
    pool = new_pool(1)
    heard = listen(pool)
    with pool:
        first = heard.wait_for(WorkerStarted)[0].pid
        os.kill(first, signal.SIGKILL)
        stopped = heard.wait_for(WorkerStopped)[0]
        assert (stopped.pid, stopped.reason, stopped.signal) == (first, "died", signal.SIGKILL)
        heard.wait_for(WorkerStarted, 2)
        assert not heard.of(TaskCrashed)
        assert pool.submit(tasks.pid_of).result(PATIENCE) != first


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_timeout_is_announced_with_its_task(kind: str, new_pool: MakePool, listen: Listen) -> None:
    pool = new_pool(1, kind=kind, timeout=0.1)
    heard = listen(pool)
    with pytest.raises(TaskTimeout):
        pool.submit(tasks.hang).result(PATIENCE)
    overrun = heard.wait_for(TaskTimedOut)[0]
    assert overrun.task == "tests.pool.tasks.hang"
    assert 0.1 <= overrun.ran_for < PATIENCE
    stopped = heard.wait_for(WorkerStopped)[0]
    assert stopped.pid == overrun.pid
    assert stopped.reason in ("killed", "timeout")
    assert stopped.signal == signal.SIGKILL


@pytest.mark.parametrize("kind", KINDS)
def test_who_has_unsubscribed_hears_nothing_more(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    first, second = Heard(), Heard()
    end = pool.subscribe(first)
    pool.subscribe(second)
    end()
    end()
    with pool:
        second.wait_for(WorkerStarted)
    assert not first.events


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_callable_can_subscribe(kind: Any) -> None:
    with pytest.raises(TypeError, match="callable"):
        Pool(1, kind=kind).subscribe(5)  # type: ignore[arg-type]


# --- callbacks that raise ------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
def test_a_subscriber_that_raises_disturbs_nothing(
    kind: str, error: type[BaseException], new_pool: MakePool
) -> None:
    def bad(event: object) -> None:
        raise error

    pool = new_pool(1, kind=kind, min_workers=0, idle_timeout=0.01)
    pool.subscribe(bad)
    good = Heard()
    pool.subscribe(good)
    for turn in range(1, 3):
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
        good.wait_for(WorkerStopped, turn)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_a_done_callback_that_raises_disturbs_nothing(
    kind: str, error: type[BaseException], new_pool: MakePool, gate: Gate
) -> None:
    def bad(future: Future[Any]) -> None:
        raise error

    pool = new_pool(**one_at_a_time(kind))
    told = threading.Event()
    for _ in range(3):
        told.clear()
        future = pool.submit(holder(kind), gate.folder)
        gate.arrive()
        future.add_done_callback(bad)
        future.add_done_callback(lambda _: told.set())
        gate.let_pass()
        assert future.result(PATIENCE) == "-"
        if issubclass(error, Exception):
            assert told.wait(PATIENCE)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    assert pool.health().status == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_a_done_callback_may_submit_and_look(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    last: Future[int] = Future()

    def follow(future: Future[int]) -> None:
        pool.statistics()
        pool.health()
        if future.result() < 500:
            pool.submit(tasks.identity, future.result() * 2).add_done_callback(follow)
        else:
            last.set_result(future.result())

    pool.submit(tasks.identity, 1).add_done_callback(follow)
    assert last.result(PATIENCE) == 512


# --- monitor -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_reports_again_and_again_until_stopped(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    reports: list[PoolStatistics] = []
    enough = threading.Event()

    def take(statistics: PoolStatistics) -> None:
        reports.append(statistics)
        if len(reports) == 3:
            enough.set()
            stop()

    stop = pool.monitor(every="10ms", callback=take)
    assert enough.wait(PATIENCE)
    assert all(isinstance(statistics, PoolStatistics) for statistics in reports)
    pool.submit(tasks.square, 2).result(PATIENCE)
    assert len(reports) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_that_raises_is_called_again_and_disturbs_nothing(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    again = threading.Semaphore(0)

    def bad(_: PoolStatistics) -> None:
        again.release()
        raise ZeroDivisionError

    stop = pool.monitor("10ms", bad)
    assert all(again.acquire(timeout=PATIENCE) for _ in range(3))
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_monitor_ends_with_its_pool(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    before = set(threading.enumerate())
    pool.monitor(0.01, lambda _: None)
    mine = set(threading.enumerate()) - before
    pool.shutdown()
    for thread in mine:
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.mark.parametrize("every", [0, -1, "often", None])
def test_a_monitor_needs_a_real_period(every: Any) -> None:
    with pytest.raises(OptionError, match="every"):
        Pool(1, kind="thread").monitor(every, print)


def test_a_monitor_needs_something_to_call() -> None:
    with pytest.raises(TypeError, match="callback"):
        Pool(1, kind="thread").monitor(1, 5)  # type: ignore[arg-type]


# --- failing starts ------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_whose_initializer_fails_tells_whoever_waits_why(
    kind: str, new_pool: MakePool, listen: Listen, tmp_path: Path
) -> None:
    pool = new_pool(1, kind=kind, initializer=tasks.need, initargs=(tmp_path / "licence",))
    heard = listen(pool)
    with pytest.raises(PoolDegraded) as caught:
        pool.submit(tasks.square, 3).result(PATIENCE)
    text = str(caught.value)
    assert "LookupError: licence is missing" in text
    assert "in need" in text  # the traceback of the cause
    assert "tasks.square" in text
    failed = heard.wait_for(WorkerFailedToStart, 3)
    assert [event.failures for event in failed[:3]] == [1, 2, 3]
    assert failed[0].retry_in < failed[2].retry_in
    assert "licence is missing" in heard.wait_for(PoolBecameDegraded)[0].cause
    health = pool.health()
    assert health.status == "degraded"
    assert "licence is missing" in health.reasons[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_degraded_pool_recovers_when_starts_succeed_again(
    kind: str, new_pool: MakePool, listen: Listen, tmp_path: Path
) -> None:
    licence = tmp_path / "licence"
    pool = new_pool(1, kind=kind, initializer=tasks.need, initargs=(licence,))
    heard = listen(pool)
    with pytest.raises(PoolDegraded):
        pool.submit(tasks.square, 3).result(PATIENCE)
    heard.wait_for(PoolBecameDegraded)
    licence.touch()
    outcome = pool.submit(tasks.square, 3)
    while isinstance(outcome.exception(PATIENCE), PoolDegraded):
        threading.Event().wait(0.02)  # pacing only: the pool recovers in its own time
        outcome = pool.submit(tasks.square, 3)
    assert outcome.result(PATIENCE) == 9
    heard.wait_for(PoolRecovered)
    assert len(heard.of(PoolBecameDegraded)) == 1
    assert pool.health().status == "ok"


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_fails_to_start_for_a_moment_loses_nothing(
    kind: str, new_pool: MakePool, listen: Listen, tmp_path: Path
) -> None:
    licence = tmp_path / "licence"
    pool = new_pool(1, kind=kind, initializer=tasks.need, initargs=(licence,), max_queue_age=60)
    heard = listen(pool)
    pool.subscribe(lambda event: licence.touch() if isinstance(event, WorkerFailedToStart) else None)
    future = pool.submit(tasks.square, 3)
    assert future.result(PATIENCE) == 9
    assert len(heard.of(WorkerFailedToStart)) >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_that_cannot_start_can_be_shut_down(kind: str, new_pool: MakePool, tmp_path: Path) -> None:
    pool = new_pool(2, kind=kind, initializer=tasks.need, initargs=(tmp_path / "licence",))
    futures = [pool.submit(tasks.square, n) for n in range(5)]
    pool.shutdown()
    assert all(isinstance(future.exception(0), PoolDegraded) for future in futures)
