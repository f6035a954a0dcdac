"""What could bring down a pool's dispatcher does not; and if it fails all the same, everybody is told."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from millpond import Pool, PoolClosed, PoolError, TaskKilled
from millpond.events import WorkerFailedToStart, WorkerStarted, WorkerStopped
from millpond.pool.process import stop_tasks, supervisor
from millpond.pool.process.starters import Hub
from tests.pool.tasks import PATIENCE, block_the_loop, eventually, hold, identity


def engine_of(pool: Pool) -> Any:
    return pool._engine


@contextmanager
def silent_template(pool: Pool) -> Iterator[None]:
    """Nothing is started and no end is reported meanwhile."""
    pid = engine_of(pool).upkeep.starter.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_a_cancel_that_falls_due_after_shutdown_has_killed_its_worker_breaks_nothing(
    new_pool, gate, listen, monkeypatch, caplog
):
    monkeypatch.setattr(stop_tasks, "SOFT_CANCEL_WAIT", 0.5)
    monkeypatch.setattr(supervisor, "EXIT_CODE_WAIT", 1.0)
    pool = new_pool(1, kind="async", concurrency=2)
    heard = listen(pool)
    future = pool.submit(block_the_loop, gate.folder)
    gate.arrive()
    with silent_template(pool):  # so that the worker is not buried before the cancel falls due
        assert pool.kill(future)
        pool.shutdown(wait=False, timeout=0)
        assert isinstance(future.exception(PATIENCE), TaskKilled)
        heard.wait_for(WorkerStopped)
    assert "failed" not in caplog.text


def test_a_shutdown_without_time_waits_for_no_exit_code_that_nobody_tells(
    new_pool, gate, listen, monkeypatch
):
    """A worker is being started, so its template is let go: nobody is left who knows how the other ended."""
    monkeypatch.setattr(supervisor, "EXIT_CODE_WAIT", 10 * PATIENCE)
    pool = new_pool(2, min_workers=1)
    heard = listen(pool)
    running = pool.submit(hold, gate.folder)
    gate.arrive()
    with silent_template(pool):
        pool.submit(identity, 1)
        eventually(lambda: len(engine_of(pool).links) == 2)
        pool.shutdown(wait=False, timeout=0)
        assert isinstance(running.exception(PATIENCE), TaskKilled)
        assert engine_of(pool).finished.wait(PATIENCE)
    assert not heard.of(WorkerFailedToStart)  # nobody wanted it any more


def test_a_shutdown_without_time_does_not_wait_for_a_template_that_others_use(new_pool):
    """It may be importing for long; nothing tells of workers that it has not even begun to start."""
    hub = Hub(())
    orders, template = hub.attach()
    os.kill(template, signal.SIGSTOP)
    pool = new_pool(1)
    engine = engine_of(pool)
    engine.hub = hub
    try:
        unbegun = pool.submit(identity, 1)
        eventually(lambda: [link._theirs.fileno() for link in engine.links.values()] == [-1])  # ordered
        pool.shutdown(wait=False, timeout=0)
        assert engine.finished.wait(PATIENCE)
        assert unbegun.cancelled()
    finally:
        os.kill(template, signal.SIGCONT)
        orders.close()
        hub.close()


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """What is open stays so, and nothing else can be opened or received."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_worker_whose_descriptor_was_lost_is_a_failed_start_and_the_pool_lives_on(new_pool, gate, listen):
    pool = new_pool(2, min_workers=1)
    heard = listen(pool)
    running = pool.submit(hold, gate.folder, "first")
    gate.arrive()
    with silent_template(pool):
        second = pool.submit(hold, gate.folder, "second")
        engine = engine_of(pool)
        eventually(lambda: [link._theirs.fileno() for link in engine.links.values()] == [-1, -1])  # ordered
        with no_free_descriptor():
            os.kill(engine.upkeep.starter.pid, signal.SIGCONT)
            [failed, *_] = heard.wait_for(WorkerFailedToStart)
    assert "raise the limit of open files" in failed.cause
    heard.wait_for(WorkerStarted, 2)
    gate.arrive()
    gate.let_pass(2)
    assert {running.result(PATIENCE), second.result(PATIENCE)} == {"first", "second"}


def test_a_worker_is_given_nothing_before_it_can_be_watched(new_pool, gate, listen, monkeypatch):
    pool = new_pool(2, min_workers=1)
    heard = listen(pool)
    pool.submit(hold, gate.folder, "first")
    gate.arrive()
    engine, may_hear = engine_of(pool), threading.Event()
    starter = engine.upkeep.starter
    reports = starter.reports
    monkeypatch.setattr(starter, "reports", lambda: reports() if may_hear.is_set() else [])
    second = pool.submit(hold, gate.folder, "second")
    eventually(lambda: [link.greeted for link in list(engine.links.values())] == [True, True])
    with no_free_descriptor():
        may_hear.set()
        heard.wait_for(WorkerFailedToStart)
    gate.arrive()
    assert gate.nobody_else()
    gate.open()
    assert second.result(PATIENCE) == "second"


def test_when_the_dispatcher_fails_what_had_begun_is_told_apart_from_what_had_not(new_pool, gate, caplog):
    pool = new_pool(1)
    begun = pool.submit(hold, gate.folder)
    gate.arrive()
    waiting = pool.submit(identity, 1)
    engine = engine_of(pool)

    def fail() -> None:
        raise ZeroDivisionError("on purpose")

    engine.call_soon(fail)
    assert type(begun.exception(PATIENCE)) is PoolError
    assert type(waiting.exception(PATIENCE)) is PoolClosed
    assert isinstance(waiting.exception().__cause__, ZeroDivisionError)
    assert engine.finished.wait(PATIENCE)
    assert pool.health() == ("failed", ("the pool's dispatcher failed: ZeroDivisionError: on purpose",))
    with pytest.raises(PoolClosed):
        pool.submit(identity, 2)


def test_a_thread_that_cannot_be_started_leaves_the_lock_to_the_next_submit(new_pool, monkeypatch):
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("no more threads")

    pool = new_pool(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="no more threads"):
            pool.submit(identity, 8)
    assert engine_of(pool).holder == 0
    assert pool.submit(identity, 8).result(PATIENCE) == 8
