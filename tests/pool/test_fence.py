"""The fence stops workers that hold a task for which it was set, and no worker that only held one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millpond import Pool, TaskKilled
from millpond.events import WorkerStarted
from millpond.pool.channel import shared_page as layout
from tests.pool.tasks import PATIENCE, Gate, hold_async

NEVER = 2**63
PASSED = 1  # ns since boot


@pytest.fixture
def other_gate(tmp_path: Path) -> Any:
    folder = tmp_path / "other"
    folder.mkdir()
    made = Gate(folder)
    yield made
    made.open()
    made.close()


@pytest.fixture
def fenced_pool(new_pool, listen) -> Any:
    """A pool of one async worker with a template that watches the fence, and what is heard of it."""
    pool = new_pool(1, min_workers=1, kind="async", concurrency=2)
    pool._engine.fence = NEVER
    heard = listen(pool)
    pool._engine.start()
    heard.wait_for(WorkerStarted)
    return pool, heard


def submit_fenced(pool: Pool, *call: Any) -> Any:
    """A task that must have stopped when the fence is reached."""
    engine: Any = pool._engine
    with engine.exclusive():  # it is sent when this is left
        future: Any = pool.submit(*call)
        future.fenced = True
    return future


def pass_the_fence(pool: Pool, heard: Any) -> None:
    """Returns when the template has looked at every worker since: it does before it starts another."""
    engine: Any = pool._engine
    engine.move_fence(PASSED)
    engine.resize(2, 2)
    heard.wait_for(WorkerStarted, 2)


def fence_of(pool: Pool) -> int:
    engine: Any = pool._engine
    [link] = engine.links.values()
    return int(link.page.words[layout.FENCE])


def test_a_worker_runs_on_when_only_the_neighbours_of_a_fenced_task_are_left(fenced_pool, gate, other_gate):
    pool, heard = fenced_pool
    fenced = submit_fenced(pool, hold_async, gate.folder, "fenced")
    plain = pool.submit(hold_async, other_gate.folder, "plain")
    [one], [two] = gate.arrive(), other_gate.arrive()
    assert (one.pid, fence_of(pool)) == (two.pid, NEVER)
    gate.let_pass()
    assert fenced.result(PATIENCE) == "fenced"
    pass_the_fence(pool, heard)
    other_gate.let_pass()
    assert plain.result(PATIENCE) == "plain"


def test_a_worker_that_still_holds_a_fenced_task_is_stopped_at_the_fence(fenced_pool, gate, other_gate):
    pool, heard = fenced_pool
    first = submit_fenced(pool, hold_async, gate.folder, "first")
    gate.arrive()
    second = submit_fenced(pool, hold_async, other_gate.folder, "second")
    other_gate.arrive()
    gate.let_pass()
    assert first.result(PATIENCE) == "first"
    assert fence_of(pool) == NEVER
    pass_the_fence(pool, heard)
    assert isinstance(second.exception(PATIENCE), TaskKilled)
