"""What ``Pool`` promises where CPython's tests demand the opposite or look at private attributes.

Each test here replaces cases of the table in ``cases``, through the public interface only: one crash
leaves the pool whole, a failing initializer can be survived, and what the standard library's tests
read off ``_processes`` or ``_threads`` is asked of the tasks themselves.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import threading
import time
import traceback
import weakref
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from pathlib import Path
from typing import Literal

import pytest

from millpond import Pool, WorkerDied

Kind = Literal["process", "thread", "async"]
PATIENCE = 20.0
PROCESS_KINDS = ["process", "async"]
EVERY_KIND = [*PROCESS_KINDS, "thread"]


class Gate:
    """Holds tasks, in whatever process, until it is opened, and tells which have arrived."""

    def __init__(self, folder: Path) -> None:
        self._entrance, self._exit = folder / "entrance", folder / "exit"
        os.mkfifo(self._entrance)
        os.mkfifo(self._exit)
        self._held = [os.open(self._entrance, os.O_RDWR)]

    def pass_through(self) -> int:
        """Run by the tasks: say where it runs, then wait until the gate is open."""
        with self._entrance.open("wb", buffering=0) as entrance:
            entrance.write(b"%08d" % os.getpid())
        self._exit.open("rb").close()  # blocks while nobody has it open for writing
        return os.getpid()

    def arrived(self, count: int) -> list[int]:
        """The processes of the next tasks to arrive."""
        found: list[int] = []
        while len(found) < count:
            assert select.select([self._held[0]], [], [], PATIENCE)[0], "no task arrives"
            found.append(int(os.read(self._held[0], 8)))
        return found

    def open(self) -> None:
        """Let everybody through from now on."""
        self._held.append(os.open(self._exit, os.O_RDWR))

    def close(self) -> None:
        """Let go of the descriptors; to be called after the tasks are done."""
        for descriptor in self._held:
            os.close(descriptor)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    yield made
    made.close()


def wait_until_ended(pids: set[int]) -> None:
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([descriptor], [], [], PATIENCE)[0], f"process {pid} lives on"
        finally:
            os.close(descriptor)


def wait_until_threads_ended(names: set[str]) -> None:
    for thread in threading.enumerate():
        if thread.name in names:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"{thread.name} lives on"


def succeed_if_present(path: Path) -> None:
    if not path.exists():
        raise ValueError("error in initializer")


def fail_on_purpose() -> None:
    raise RuntimeError(123)  # a line to be found


def thread_name() -> str:
    return threading.current_thread().name


class Argument:
    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self) -> None:
        succeed_if_present(self._path)


class Unpicklable:
    def __reduce__(self) -> str:
        raise pickle.PicklingError("error in pickle")


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_a_worker_killed_from_outside_fails_its_own_task_and_nothing_else(kind: Kind, gate: Gate) -> None:
    with Pool(2, kind=kind, concurrency=1 if kind == "async" else None) as pool:
        tasks = [pool.submit(gate.pass_through) for _ in range(2)]
        first, second = gate.arrived(2)
        waiting = [pool.submit(pow, 2, n) for n in range(5)]
        os.kill(first, signal.SIGTERM)
        done, _ = wait(tasks, PATIENCE, return_when=FIRST_COMPLETED)
        victim = done.pop()
        gate.open()
        death = victim.exception()
        assert isinstance(death, WorkerDied)
        assert death.pid == first
        survivor = next(task for task in tasks if task is not victim)
        assert survivor.result(PATIENCE) == second
        assert [task.result(PATIENCE) for task in waiting] == [1, 2, 4, 8, 16]
        assert pool.submit(pow, 2, 8).result(PATIENCE) == 256


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_failing_initializer_is_named_and_the_pool_recovers_when_it_succeeds(
    kind: Kind, tmp_path: Path
) -> None:
    cure = tmp_path / "cure"
    with Pool(2, kind=kind, initializer=succeed_if_present, initargs=(cure,)) as pool:
        with pytest.raises(BrokenExecutor, match="error in initializer"):
            pool.submit(pow, 2, 8).result(PATIENCE)
        assert pool.health().status != "ok"
        cure.touch()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            outcome = pool.submit(pow, 2, 8)
            if outcome.exception(PATIENCE) is None:
                break
            assert isinstance(outcome.exception(), BrokenExecutor)
            threading.Event().wait(0.02)  # pacing only: the pool recovers at its own time
        assert outcome.result(PATIENCE) == 256
        assert pool.submit(pow, 2, 9).result(PATIENCE) == 512


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("cured", [True, False], ids=["initialized", "failed"])
def test_a_pool_that_was_shut_down_lets_go_of_its_initializer_and_arguments(
    kind: Kind, cured: bool, tmp_path: Path
) -> None:
    argument = Argument(tmp_path if cured else tmp_path / "missing")
    seen = weakref.ref(argument)
    with Pool(2, kind=kind, initializer=Argument.check, initargs=(argument,)) as pool:
        assert (pool.submit(pow, 2, 8).exception(PATIENCE) is None) == cured
    del argument, pool
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_leaving_the_with_block_ends_every_worker(kind: Kind) -> None:
    with Pool(5, kind=kind) as pool:
        assert list(pool.map(abs, range(-5, 5))) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]
        pids = {row.pid for row in pool.statistics().workers if row.pid is not None}
    assert pids
    wait_until_ended(pids)


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_a_forgotten_pool_finishes_its_work_and_ends_its_workers(kind: Kind) -> None:
    pool = Pool(3, kind=kind)
    results = pool.map(abs, range(-5, 5))
    where = [pool.submit(os.getpid) for _ in range(5)]
    del pool
    gc.collect()
    assert list(results) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]
    wait_until_ended({task.result(PATIENCE) for task in where})


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_shutdown_without_waiting_finishes_the_work_and_ends_the_workers(kind: Kind) -> None:
    pool = Pool(3, kind=kind)
    results = pool.map(abs, range(-5, 5))
    where = [pool.submit(os.getpid) for _ in range(5)]
    pool.shutdown(wait=False)
    assert list(results) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]
    wait_until_ended({task.result(PATIENCE) for task in where})


def test_a_flooded_pool_has_exactly_its_size_in_workers(gate: Gate) -> None:
    with Pool(3) as pool:
        tasks = [pool.submit(gate.pass_through) for _ in range(45)]
        first = gate.arrived(3)
        assert pool.statistics().size == 3
        gate.open()
        assert {task.result(PATIENCE) for task in tasks} == set(first)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_tasks_one_after_another_reuse_one_worker(kind: Kind) -> None:
    with Pool(4, min_workers=1, kind=kind) as pool:
        pids = {pool.submit(os.getpid).result(PATIENCE) for _ in range(5)}
        assert len(pids) == 1
        assert pool.statistics().size == 1


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_a_worker_is_replaced_after_its_budget_of_tasks(kind: Kind) -> None:
    with Pool(1, kind=kind, max_tasks_per_child=3) as pool:
        pids = [pool.submit(os.getpid).result(PATIENCE) for _ in range(9)]
    runs = [pids.count(pid) for pid in dict.fromkeys(pids)]
    assert len(runs) >= 3
    assert max(runs) <= 3


def test_an_error_shows_the_line_that_raised_it_in_the_worker() -> None:
    with Pool(1) as pool:
        error = pool.submit(fail_on_purpose).exception(PATIENCE)
    assert type(error) is RuntimeError
    assert error.args == (123,)
    shown = "".join(traceback.format_exception(error))
    assert "raise RuntimeError(123)  # a line to be found" in shown


@pytest.mark.parametrize("kind", PROCESS_KINDS)
def test_an_argument_that_cannot_be_pickled_before_shutdown_fails_only_its_future(kind: Kind) -> None:
    with Pool(2, kind=kind) as pool:
        before = pool.submit(pow, 2, 3)
        broken = pool.submit(id, Unpicklable())
        after = pool.submit(pow, 2, 4)
        pool.shutdown(wait=False)
        with pytest.raises(pickle.PicklingError):
            broken.result(PATIENCE)
        assert (before.result(PATIENCE), after.result(PATIENCE)) == (8, 16)


def test_a_pool_that_cannot_start_a_thread_says_so_instead_of_hanging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't create new thread"):
            Pool(2).submit(pow, 2, 8).result(PATIENCE)
    gc.collect()


def test_leaving_the_with_block_ends_every_thread() -> None:
    with Pool(3, kind="thread") as pool:
        names = set(pool.map(lambda _: thread_name(), range(20)))
    assert not names & {thread.name for thread in threading.enumerate()}


def test_a_forgotten_thread_pool_finishes_its_work_and_ends_its_threads() -> None:
    pool = Pool(3, kind="thread")
    names = [pool.submit(thread_name) for _ in range(10)]
    del pool
    gc.collect()
    wait_until_threads_ended({task.result(PATIENCE) for task in names})


def test_shutdown_of_threads_without_waiting_finishes_the_work() -> None:
    pool = Pool(3, kind="thread")
    names = [pool.submit(thread_name) for _ in range(10)]
    pool.shutdown(wait=False)
    wait_until_threads_ended({task.result(PATIENCE) for task in names})


def test_threads_carry_the_name_of_their_pool() -> None:
    with Pool(3, kind="thread", name="special") as pool:
        names = {task.result(PATIENCE) for task in [pool.submit(thread_name) for _ in range(10)]}
    assert all("special" in name for name in names), names


def test_a_pool_without_a_size_still_works() -> None:
    with Pool(kind="thread") as pool:
        assert list(pool.map(abs, range(-5, 5))) == [5, 4, 3, 2, 1, 0, 1, 2, 3, 4]
        assert pool.statistics().size >= 1


def test_a_flooded_thread_pool_has_exactly_its_size_in_threads() -> None:
    release, arrivals = threading.Event(), threading.Semaphore(0)

    def hold() -> str:
        arrivals.release()
        release.wait(PATIENCE)
        return thread_name()

    with Pool(3, kind="thread") as pool:
        tasks = [pool.submit(hold) for _ in range(45)]
        assert all(arrivals.acquire(timeout=PATIENCE) for _ in range(3))
        assert not arrivals.acquire(blocking=False)
        assert pool.statistics().size == 3
        release.set()
        assert len({task.result(PATIENCE) for task in tasks}) <= 3
