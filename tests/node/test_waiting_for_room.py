"""Jobs that wait for memory, cores or tokens do not wait for workers, whatever else their pool has to do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from millpond import Resources
from millpond.job import JobState
from millpond.node.observability.events import WorkerUp
from tests.node.waiting import all_ended, until

pytestmark = pytest.mark.timeout(60)


def hold(path: str) -> None:
    """Until the gate is open."""
    while not Path(path).exists():
        time.sleep(0.005)


def plain() -> None:
    """Needs nothing."""


@pytest.mark.parametrize("needs", [{"memory": "400MB"}, {"licence": 1}])
def test_jobs_that_wait_for_memory_bring_in_no_workers(local, start, tmp_path, needs: dict[str, Any]):
    local.pool("default", workers=(1, 8), max_wait="1s")
    large = local.task(name="large", resources=Resources(**needs))(hold)
    small = local.task(name="small")(plain)
    node = start(local, budget=Resources(memory="1GB", licence=2))
    handles = large.enqueue_many([(str(tmp_path / "open"),)] * 12)
    until(lambda: len(node._state.budget.holding) == 2, "two run")
    up: list[Any] = []
    observed = node._scaling._pools["default"].watch
    until(lambda: observed._held_back, "a claim has found nothing that has room")
    pool = node._state.pools["default"]
    until(lambda: pool.crew() == (2, 0, 0), "the others, who came before that, have left")
    there = {
        row.pid for engine in pool.engines() for row in engine.statistics().workers
    }  # their coming may be announced late
    node.subscribe(up.append, [WorkerUp])
    counts = set[float]()

    def five_counts() -> bool:
        counts.add(node._scaling.counting.counted_at)
        return len(counts) > 5

    until(five_counts, "what waits is counted again and again")
    assert {event.worker for event in up} <= there
    done = small.enqueue_many([()] * 3)  # those who need nothing find a worker all the same
    assert {job.state for job in all_ended(done)} == {JobState.COMPLETED}
    (tmp_path / "open").touch()
    assert {job.state for job in all_ended(handles)} == {JobState.COMPLETED}
