"""Jobs that are told to end: what they make of it is not their fault, and their neighbours are spared."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from millpond import App, Node, Retry
from millpond.job import Job, JobState
from millpond.node.observability.events import WorkerCrashed
from millpond.node.shutdown import Endings, nudge
from millpond.rules.node import shutdown
from millpond.rules.node.shutdown import ASK, ASK_SHARED
from tests.node.waiting import ended, until

pytestmark = pytest.mark.timeout(90)


# --- a node that stops -------------------------------------------------------------------------------------
def clean_up(folder: str, how: str) -> str:
    """Wait for SIGTERM, clean up, and end in one way or another."""
    told: list[int] = []

    def leave(*_: object) -> None:
        Path(folder, "cleaned up").touch()
        if how == "leaves":
            sys.exit(1)
        if how == "raises":
            raise OSError("the line was cut")
        told.append(1)

    signal.signal(signal.SIGTERM, leave)
    Path(folder, "begun").touch()
    while not told:
        time.sleep(0.005)
    return "as far as it came"


@pytest.fixture
def told(local: App, start: Callable[..., Node], tmp_path: Path) -> Callable[[str], Job]:
    """What becomes of a job with a process for itself that is told to end, by the way it ends then."""

    def tell(how: str) -> Job:
        local.pool("default", workers=1)
        handle = local.task(retry=Retry(attempts=1))(clean_up).enqueue(str(tmp_path), how)
        node = start(local)
        until((tmp_path / "begun").exists, "it runs")
        node.stop(4.0)
        assert (tmp_path / "cleaned up").exists()
        return handle.job()

    return tell


@pytest.mark.parametrize("how", ["leaves", "raises"])
def test_a_job_that_leaves_by_an_exception_when_its_node_stops_is_lost_and_pays_no_attempt(told, how):
    job = told(how)
    assert (job.state, job.errors, job.crashes, job.lost) == (JobState.QUEUED, 0, 0, 1)
    assert [attempt.ended for attempt in job.attempts] == ["lost"]


def test_a_job_that_returns_when_its_node_stops_has_completed(told):
    job = told("returns")
    assert (job.state, job.result) == (JobState.COMPLETED, b'"as far as it came"')


# --- a job whose end is wanted -----------------------------------------------------------------------------
def leave_mark(path: str) -> None:
    Path(path).touch()


def exists(path: str) -> bool:
    return Path(path).exists()


async def deaf(mark: str, go: str) -> str:
    """Ends when `go` exists, whatever it is told."""
    leave_mark(mark)
    while not exists(go):
        try:
            await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            continue
    return "done"


class Unwanted:
    """A coroutine alone in its worker, whose end is wanted since second 0 of a clock that the test moves."""

    def __init__(self, app: App, start: Callable[..., Node], folder: Path) -> None:
        app.pool("default", workers=1, kind="async", concurrency=3)
        self.folder, self.task = folder, app.task(deaf)
        self.node = start(app)
        self.handle = self.begin("unwanted")
        pool = self.node._state.pools["default"]
        self.held, self.killed = pool.held[self.handle.id], list[object]()
        self.pool: Any = SimpleNamespace(settings=pool.settings, kill=self.killed.append)
        state: Any = SimpleNamespace(cancelled={"it": self.held}, pool_of=lambda _: self.pool)
        self.look = Endings(state).look
        self.look(0.0)

    def begin(self, name: str) -> Any:
        """One more job that runs until `let_go`."""
        handle = self.task.enqueue(str(self.folder / name), str(self.folder / f"go {name}"))
        until((self.folder / name).exists, "it runs")
        return handle

    def let_go(self, name: str) -> None:
        (self.folder / f"go {name}").touch()


@pytest.fixture
def unwanted(local: App, start: Callable[..., Node], tmp_path: Path) -> Unwanted:
    return Unwanted(local, start, tmp_path)


def test_jobs_that_came_to_the_worker_of_an_unwanted_one_are_spared_as_long_as_its_first_neighbours(unwanted):
    innocent = unwanted.begin("innocent")
    unwanted.look(ASK)
    unwanted.look(ASK_SHARED - 1.0)
    assert unwanted.killed == []
    unwanted.let_go("innocent")
    job = ended(innocent)
    assert (job.state, len(job.attempts)) == (JobState.COMPLETED, 1)
    unwanted.look(ASK_SHARED)
    assert len(unwanted.killed) == 1


def test_a_job_that_comes_between_the_look_at_its_worker_and_the_signal_is_spared(unwanted):
    innocent = unwanted.begin("innocent")
    nudge(unwanted.pool, unwanted.held, "terminate")
    unwanted.let_go("innocent")
    job = ended(innocent)
    assert (job.state, len(job.attempts)) == (JobState.COMPLETED, 1)


def test_the_worker_of_an_unwanted_job_that_is_alone_is_terminated_soon(unwanted):
    unwanted.look(ASK)
    until(
        lambda: [attempt.ended for attempt in unwanted.handle.job().attempts] == ["crashed"],
        "its worker ends",
    )
    unwanted.let_go("unwanted")
    assert ended(unwanted.handle).state is JobState.COMPLETED


def test_a_cancelled_job_whose_worker_had_to_be_terminated_has_not_crashed(
    local, start, monkeypatch, tmp_path
):
    monkeypatch.setattr(shutdown, "ASK", 0.0)

    @local.task
    def stay(path: str) -> None:
        Path(path).touch()
        time.sleep(600)

    node = start(local)
    heard: list[WorkerCrashed] = []
    node.subscribe(heard.append, [WorkerCrashed])
    handle = stay.enqueue(str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    handle.cancel()
    assert ended(handle).state is JobState.CANCELLED
    node.stop()
    assert (heard, [pool.crashed for pool in node.report().pools]) == ([], [0])


def test_jobs_are_ended_while_old_ones_are_pruned(local, start, monkeypatch, tmp_path):
    """Of millions of them that takes minutes."""
    begun, over = threading.Event(), threading.Event()

    def prune(*_: object) -> int:
        begun.set()
        return 0 if over.wait(60.0) else 1

    @local.task
    def stay(path: str) -> None:
        Path(path).touch()
        time.sleep(600)

    monkeypatch.setattr(local.store, "prune", prune)
    node = start(local)
    handle = stay.enqueue(str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    node._upkeep._prune_at = 0.0
    assert begun.wait(30.0)
    handle.cancel()
    assert ended(handle).state is JobState.CANCELLED
    over.set()
