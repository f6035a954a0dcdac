"""Limits on time, stopping tasks, and who is to blame when a worker dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from millpond import OptionError, Pool, TaskExpired, TaskKilled, TaskTimeout, WorkerDied
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, answers, eventually, holder

PROCESSES = ["process", "async"]
KINDS = [*PROCESSES, "thread"]
MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(40)


def one_at_a_time(kind: str) -> dict[str, Any]:
    return {"max_workers": 1, "kind": kind, "concurrency": 1 if kind == "async" else None}


# --- timeout and deadline ------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_a_task_that_overruns_its_timeout_is_stopped_and_the_pool_goes_on(
    kind: str, new_pool: MakePool
) -> None:
    pool = new_pool(**one_at_a_time(kind), timeout=0.2)
    before = pool.using(timeout=60).submit(tasks.pid_of).result(PATIENCE)
    began = time.monotonic()
    with pytest.raises(TaskTimeout, match=r"hang was still running after its timeout of 0\.2 s") as caught:
        pool.submit(tasks.hang).result(PATIENCE)
    assert 0.2 <= time.monotonic() - began < 4
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.timeout == 0.2
    assert "hang" in caught.value.stack
    assert pool.using(timeout=60).submit(tasks.pid_of).result(PATIENCE) != before
    assert pool.statistics().timed_out == 1


def test_an_async_task_that_overruns_is_cancelled_and_its_worker_lives_on(new_pool: MakePool) -> None:
    pool = new_pool(1, kind="async", timeout=0.2)
    before = pool.using(timeout=60).submit(tasks.pid_of).result(PATIENCE)
    with pytest.raises(TaskTimeout):
        pool.submit(tasks.sleep_async, 3600).result(PATIENCE)
    assert pool.using(timeout=60).submit(tasks.pid_of).result(PATIENCE) == before


@pytest.mark.parametrize("kind", PROCESSES)
def test_the_timeout_counts_from_the_start_of_the_run(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.using(timeout=1.5).submit(holder(kind), gate.folder, "waited")
    with pytest.raises(TimeoutError):
        waiting.result(1.6)
    assert not waiting.done()
    gate.let_pass(2)
    assert answers([running, waiting]) == ["-", "waited"]


@pytest.mark.parametrize("kind", PROCESSES)
def test_one_task_can_have_a_timeout_of_its_own(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind, concurrency=1 if kind == "async" else None)
    free = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    with pytest.raises(TaskTimeout):
        pool.using(timeout="100ms").submit(tasks.hang).result(PATIENCE)
    gate.let_pass()
    assert free.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", PROCESSES)
def test_the_pools_timeout_can_be_lifted_for_one_task(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind, timeout=0.1, concurrency=1 if kind == "async" else None)
    free = pool.using(timeout=None).submit(holder(kind), gate.folder)
    gate.arrive()
    with pytest.raises(TaskTimeout):
        pool.submit(tasks.hang).result(PATIENCE)
    assert not free.done()
    gate.let_pass()
    assert free.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", PROCESSES)
def test_many_short_tasks_with_a_timeout_all_pass(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(2, kind=kind, timeout=5)
    assert answers([pool.submit(tasks.square, n) for n in range(500)]) == [n * n for n in range(500)]


def test_of_many_short_tasks_only_those_that_hang_time_out(new_pool: MakePool) -> None:
    # The first task of a new worker imports what it needs, and on a busy machine that is not short
    pool = new_pool(2, timeout=0.3, preload=[tasks.__name__])
    answers([pool.submit(tasks.hang_with, False) for _ in range(50)])  # short, and known to be
    futures = [pool.submit(tasks.hang_with, number in (10, 30)) for number in range(60)]
    errors = [future.exception(PATIENCE) for future in futures]
    assert [number for number, error in enumerate(errors) if error is not None] == [10, 30]
    assert isinstance(errors[10], TaskTimeout)
    assert isinstance(errors[30], TaskTimeout)


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_deadline_that_passes_in_the_line_expires_the_task(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    late = pool.using(deadline=0.1).submit(tasks.note, journal, "ran late")
    with pytest.raises(TaskExpired):
        late.result(PATIENCE)
    assert not running.done()
    gate.let_pass()
    running.result(PATIENCE)
    assert not tasks.lines(journal)


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_deadline_that_passes_during_the_run_stops_the_task(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(**one_at_a_time(kind))
    pool.submit(tasks.square, 2).result(PATIENCE)
    with pytest.raises(TaskTimeout, match=r"was not done 0\.3 s after its submit"):
        pool.using(deadline=0.3).submit(tasks.hang).result(PATIENCE)


@pytest.mark.parametrize("kind", PROCESSES)
def test_the_deadline_counts_the_wait(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    began = time.monotonic()
    waiting = pool.using(deadline=1.0, timeout=30).submit(tasks.hang)
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    gate.let_pass()
    with pytest.raises(TaskTimeout):
        waiting.result(PATIENCE)
    assert time.monotonic() - began < 5
    assert running.result(PATIENCE) == "-"


def test_a_deadline_that_passes_behind_a_stuck_task_expires_what_was_sent_ahead(
    new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(1)
    answers([pool.submit(tasks.note_or_hold, None, journal, "warm") for _ in range(200)])
    stuck = pool.submit(tasks.note_or_hold, gate.folder, journal, "stuck")
    behind = [pool.using(deadline=0.2).submit(tasks.note_or_hold, None, journal, "behind") for _ in range(20)]
    gate.arrive()
    for future in behind:
        with pytest.raises(TaskExpired):
            future.result(4)
    gate.let_pass()
    stuck.result(PATIENCE)
    assert "behind" not in tasks.lines(journal)


# --- async neighbours ----------------------------------------------------------------------------------
def test_the_slots_of_an_async_worker_really_interleave(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="async", concurrency=20)
    futures = []
    for number in range(20):  # one by one: each begins while all before it are still running
        futures.append(pool.submit(tasks.hold_async, gate.folder, number))
        gate.arrive()
    gate.open()
    assert answers(futures) == list(range(20))


def test_a_timeout_cancels_its_own_async_task_and_spares_the_neighbours(
    new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(1, kind="async", concurrency=5)
    neighbours = [pool.submit(tasks.hold_async, gate.folder, number) for number in range(3)]
    overrunning = pool.using(timeout=0.1).submit(tasks.sleep_async, 3600)
    gate.arrive(3)
    with pytest.raises(TaskTimeout):
        overrunning.result(PATIENCE)
    gate.open()
    assert answers(neighbours) == [0, 1, 2]


def test_a_crash_makes_suspects_of_all_async_tasks_that_had_begun(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="async", concurrency=3)
    begun = [pool.submit(tasks.crash_async, gate.folder)]
    begun += [pool.submit(tasks.hold_async, gate.folder) for _ in range(2)]
    gate.arrive(3)
    waiting = [pool.submit(tasks.square, number) for number in range(3)]
    os.kill(pool.statistics().workers[0].pid or 0, signal.SIGKILL)
    for future in begun:
        with pytest.raises(WorkerDied, match="3 tasks had begun") as caught:
            future.result(PATIENCE)
        assert caught.value.suspects == 3
        assert caught.value.signal == signal.SIGKILL
    assert answers(waiting) == [0, 1, 4]


def test_a_blocked_event_loop_is_killed_and_the_rest_runs_elsewhere(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="async", concurrency=2, timeout=0.3)
    before = pool.submit(tasks.pid_of).result(PATIENCE)
    blocking = pool.submit(tasks.block_the_loop, gate.folder)
    gate.arrive()
    others = [pool.submit(tasks.square_async, number) for number in range(10)]
    with pytest.raises(TaskTimeout):
        blocking.result(PATIENCE)
    assert [others[n].result(PATIENCE) for n in range(10)] == [n * n for n in range(10)]
    assert pool.submit(tasks.pid_of).result(PATIENCE) != before


@pytest.mark.parametrize("kind", PROCESSES)
def test_plain_and_async_functions_run_in_both_kinds_of_process(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    assert pool.submit(tasks.square, 5).result(PATIENCE) == 25
    assert pool.submit(tasks.square_async, 6).result(PATIENCE) == 36
    with pytest.raises(TypeError):
        pool.submit(tasks.square_async).result(PATIENCE)


def test_async_tasks_with_a_timeout_work_in_a_plain_process_too(new_pool: MakePool) -> None:
    pool = new_pool(1, timeout=PATIENCE)  # the first one has a loop to make
    assert pool.submit(tasks.square_async, 6).result(PATIENCE) == 36
    with pytest.raises(TaskTimeout):
        pool.using(timeout=0.2).submit(tasks.sleep_async, 3600).result(PATIENCE)


# --- kill ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_killing_a_task_in_the_line_cancels_it(
    kind: str, new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(**one_at_a_time(kind))
    running = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = pool.submit(tasks.note, journal, "ran")
    assert pool.kill(waiting)
    assert waiting.cancelled()
    gate.let_pass()
    assert running.result(PATIENCE) == "-"
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    assert not tasks.lines(journal)


@pytest.mark.parametrize("kind", PROCESSES)
def test_killing_a_running_task_stops_it_and_nothing_else(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(2, kind=kind)
    victim = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    other = pool.submit(holder(kind), gate.folder, "other")
    gate.arrive()
    assert pool.kill(victim)
    with pytest.raises(TaskKilled, match="was killed while it ran"):
        victim.result(PATIENCE)
    assert not other.done()
    gate.open()
    assert other.result(PATIENCE) == "other"


def test_killing_a_task_that_was_sent_ahead_spares_its_neighbours(
    new_pool: MakePool, gate: Gate, journal: Path
) -> None:
    pool = new_pool(1)
    answers([pool.submit(tasks.note_or_hold, None, journal, "warm") for _ in range(200)])
    stuck = pool.submit(tasks.note_or_hold, gate.folder, journal, "stuck")
    behind = [pool.submit(tasks.note_or_hold, None, journal, n) for n in range(10)]
    gate.arrive()
    assert pool.kill(behind[4])
    with pytest.raises((TaskKilled, CancelledError)):
        behind[4].result(PATIENCE)
    gate.let_pass()
    stuck.result(PATIENCE)
    assert [future.result(PATIENCE) for n, future in enumerate(behind) if n != 4] == [
        0, 1, 2, 3, 5, 6, 7, 8, 9,
    ]  # fmt: skip
    assert "4" not in tasks.lines(journal)


def test_a_running_thread_cannot_be_killed_and_the_error_says_so(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="thread")
    running = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    with pytest.raises(OptionError, match="kind='process'"):
        pool.kill(running)
    gate.let_pass()
    assert running.result(PATIENCE) == "-"


@pytest.mark.parametrize("kind", KINDS)
def test_killing_a_task_that_is_done_changes_nothing(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    done = pool.submit(tasks.square, 3)
    assert done.result(PATIENCE) == 9
    assert pool.kill(done) is False
    assert done.result(PATIENCE) == 9
    pool.shutdown()
    assert pool.kill(done) is False


@pytest.mark.parametrize("kind", KINDS)
def test_a_future_of_another_pool_is_not_killed(kind: str, new_pool: MakePool, gate: Gate) -> None:
    pool, other = new_pool(1, kind=kind), new_pool(**one_at_a_time(kind))
    running = other.submit(holder(kind), gate.folder)
    gate.arrive()
    waiting = other.submit(tasks.square, 3)
    foreign: Future[int] = Future()
    for future in (running, waiting, foreign):
        with pytest.raises(ValueError, match="another pool"):
            pool.kill(future)
    gate.let_pass()
    assert waiting.result(PATIENCE) == 9
    assert not foreign.cancelled()


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_callback_may_kill_another_task(kind: str, run_script: Callable[..., str]) -> None:
    printed = run_script(
        """
        import os, sys, threading, time
        from millpond import Pool, TaskKilled

        pool = Pool(2, kind=sys.argv[1]).__enter__()
        while pool.statistics().idle < 2:  # each in its own worker, or one would block the other's loop
            time.sleep(0.01)
        victim, told = pool.submit(time.sleep, 3600), threading.Event()
        brief = pool.submit(time.sleep, 0.2)

        def strike(_):
            print("killed", pool.kill(victim))
            told.set()

        brief.add_done_callback(strike)
        if not told.wait(6):
            print("the pool waits for itself", flush=True)
            os._exit(0)
        try:
            victim.result(6)
        except TaskKilled:
            print("stopped")
        pool.shutdown(timeout=1)
        """,
        kind,
    )
    assert printed.split("\n")[:2] == ["killed True", "stopped"]


# --- crashes -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_a_worker_that_exits_fails_its_task_with_the_code(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    with pytest.raises(WorkerDied, match=r"crash did not finish: worker \d+ exited with code 3") as caught:
        pool.submit(tasks.crash).result(PATIENCE)
    death = caught.value
    assert isinstance(death, BrokenProcessPool)
    assert (death.exitcode, death.signal, death.suspects, death.out_of_memory) == (3, None, 1, False)
    assert death.ran_for is not None
    assert 0 <= death.ran_for < PATIENCE
    assert death.pid > 0
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_worker_that_is_killed_fails_its_task_with_the_signal(
    kind: str, number: signal.Signals, new_pool: MakePool
) -> None:
    pool = new_pool(1, kind=kind)
    with pytest.raises(WorkerDied, match=f"was killed by {number.name}") as caught:
        pool.submit(tasks.crash_by_signal, number).result(PATIENCE)
    assert (caught.value.exitcode, caught.value.signal) == (None, number)


@pytest.mark.parametrize("bad", [0, 57, 199])
def test_in_a_batch_of_quick_tasks_only_the_one_that_crashes_fails(
    bad: int, new_pool: MakePool, journal: Path
) -> None:
    pool = new_pool(2)
    answers([pool.submit(tasks.crash_at, -1, journal, -2) for _ in range(50)])  # quick, and known to be
    futures = [pool.submit(tasks.crash_at, bad, journal, number) for number in range(200)]
    errors = {n: future.exception(PATIENCE) for n, future in enumerate(futures)}
    assert [n for n, error in errors.items() if error is not None] == [bad]
    assert isinstance(errors[bad], WorkerDied)
    assert [future.result() for n, future in enumerate(futures) if n != bad] == [
        n for n in range(200) if n != bad
    ]
    runs = Counter(int(line) for line in tasks.lines(journal))
    assert all(runs[n] == 1 for n in range(200)), runs


def test_every_crash_of_many_is_charged_to_its_own_task(new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(2)
    answers([pool.submit(tasks.crash_at, -1, journal, -2) for _ in range(50)])
    bad = {20, 21, 60, 99}
    futures = [pool.submit(tasks.crash_at, n if n in bad else -1, journal, n) for n in range(100)]
    assert {n for n, future in enumerate(futures) if future.exception(PATIENCE)} == bad
    runs = Counter(int(line) for line in tasks.lines(journal))
    assert all(runs[n] == 1 for n in range(100)), runs
    assert pool.statistics().crashed == 4


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_task_may_be_retried_after_a_crash(kind: str, new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(1, kind=kind, retries_on_crash=2)
    assert pool.submit(tasks.crash_until, journal, 2).result(PATIENCE) == 3
    assert len(set(tasks.lines(journal))) == 3  # each run in a worker of its own


@pytest.mark.parametrize("kind", PROCESSES)
def test_retries_after_crashes_are_counted(kind: str, new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(1, kind=kind)
    with pytest.raises(WorkerDied):
        pool.using(retries_on_crash=1).submit(tasks.crash_until, journal, 5).result(PATIENCE)
    assert len(tasks.lines(journal)) == 2


def test_what_raises_is_not_retried(new_pool: MakePool, journal: Path) -> None:
    pool = new_pool(1, retries_on_crash=3)
    with pytest.raises(FileExistsError):
        pool.submit(tasks.note_once, journal).result(PATIENCE)
    assert len(tasks.lines(journal)) == 1


def test_the_last_output_of_a_dead_worker_is_attached(new_pool: MakePool) -> None:
    pool = new_pool(1, capture_output=True)
    with pytest.raises(WorkerDied) as caught:
        pool.submit(tasks.print_and_crash, "these were my last words").result(PATIENCE)
    assert "these were my last words" in caught.value.output
    assert "and to stderr" in caught.value.output


def test_of_much_output_the_tail_is_kept(new_pool: MakePool) -> None:
    pool = new_pool(1, capture_output=True)
    with pytest.raises(WorkerDied) as caught:
        pool.submit(tasks.print_and_crash, "x" * 3_000_000 + "the end").result(PATIENCE)
    assert "the end" in caught.value.output
    assert len(caught.value.output) < 1_000_000


def test_without_asking_no_output_is_kept(new_pool: MakePool) -> None:
    pool = new_pool(1)
    with pytest.raises(WorkerDied) as caught:
        pool.submit(tasks.print_and_crash, "").result(PATIENCE)
    assert caught.value.output == ""


def test_a_task_may_be_cancelled_before_its_worker_has_read_of_it(new_pool: MakePool):
    """Both stand in one message of an async worker that is slow to read."""
    pool = new_pool(1, kind="async", concurrency=2)
    pool.submit(tasks.square_async, 1).result(PATIENCE)
    engine: Any = pool._engine
    [link] = engine.links.values()
    os.kill(link.pid, signal.SIGSTOP)
    unwanted, wanted = pool.submit(tasks.sleep_async, 10 * PATIENCE), pool.submit(tasks.square_async, 3)
    eventually(lambda: len(link.inflight) == 2)
    with engine.exclusive():
        link.send_cancel(min(link.inflight))
        engine.arm(link)
    os.kill(link.pid, signal.SIGCONT)
    assert isinstance(unwanted.exception(PATIENCE), asyncio.CancelledError)
    assert wanted.result(PATIENCE) == 9
