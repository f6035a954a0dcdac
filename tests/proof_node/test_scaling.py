"""Pools that shrink and renew their workers interrupt nothing; the supervisor's memory stays flat."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from millpond.job import JobState, NewJob
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.history import Rules, read
from tests.history.entries import Began
from tests.proof_node import jobs
from tests.proof_node.fleet import ONE_AT_FIRST, Fleet, Member, fleet_on, resident

MIB = 1 << 20
RESTLESS: dict[str, Any] = {
    "shrinks": {"workers": [0, 3], "idle_timeout": 0.02},
    "renews": {"workers": [1, 2], "max_tasks_per_child": 2},
    "ages": {"workers": [1, 2], "max_age": 0.1, "idle_timeout": 0.05},
    "shares": {"workers": [0, 2], "kind": "thread", "max_tasks_per_child": 3, "idle_timeout": 0.02},
}


@pytest.mark.parametrize("waves", [5, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_shrinking_and_renewing_interrupt_no_job(name: str, waves: int, tmp_path: Path):
    """No fault was injected: a job that ran twice, or whose worker was ended under it, is a violation."""
    with fleet_on(name, tmp_path, pools=RESTLESS) as fleet:
        fleet.start()
        for _ in range(waves):
            for queue in RESTLESS:
                some = [(random.choice([0.0, 0.01, 0.1]),) for _ in range(12)]
                jobs.work.using(queue=queue).enqueue_many(some)
            fleet.until(lambda: fleet.in_state(ended=False) <= random.choice([0, 10]), "a wave is over")
        done = fleet.drained()
        assert {(job.state, job.attempt) for job in done.values()} == {(JobState.COMPLETED, 1)}
        fleet.judge()
        workers = {line.worker for line in read(fleet.folder) if isinstance(line, Began)}
        assert len(workers) > 4 * waves  # they did come and go


@pytest.mark.parametrize("number", [600, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_failing_jobs_leave_nothing_behind_in_the_supervisor(name: str, number: int, tmp_path: Path):
    with fleet_on(name, tmp_path) as fleet:
        node = fleet.start()
        fail(fleet, number // 3)  # until its caches are as large as they get
        before = resident(node.pid)
        fail(fleet, number)
        print(f"\n{name}: {before / MIB:.1f} MiB, after {number} failures {resident(node.pid) / MIB:.1f} MiB")
        assert resident(node.pid) < before + 12 * MIB
        assert states(fleet) == {JobState.DEAD: number // 3 + number}
        fleet.judge(Rules(also=["dead(failed)"]))
        began = Counter(line.job for line in read(fleet.folder) if isinstance(line, Began))
        assert (len(began), set(began.values())) == (number // 3 + number, {1})


def states(fleet: Fleet) -> dict[JobState, int]:
    """How many jobs are in each state."""
    (queue,) = fleet.store.counts().queues
    return {state: number for state, number in queue.states.items() if number}


def fail(fleet: Fleet, number: int) -> None:
    for first in range(0, number, 1000):
        jobs.failing.enqueue_many([(n,) for n in range(first, min(first + 1000, number))])
    fleet.until(lambda: fleet.in_state(ended=False) == 0, "all have failed", 3600)


@pytest.mark.parametrize("number", [5_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_jobs_of_the_future_take_no_memory_in_the_supervisor(name: str, number: int, tmp_path: Path):
    with fleet_on(name, tmp_path) as fleet:
        node = fleet.start()
        ten_more(fleet, node)
        before = resident(node.pid)
        silent = open_store(fleet.url)  # of what does not run there is nothing to see but its number
        for first in range(0, number, 1000):
            silent.enqueue([future(first + n) for n in range(1000)])
            if first % 50_000 == 0:
                ten_more(fleet, node)
        silent.close()
        ten_more(fleet, node)
        print(f"\n{name}: {before / MIB:.1f} MiB, with {number} to come {resident(node.pid) / MIB:.1f} MiB")
        assert resident(node.pid) < before + 12 * MIB
        assert states(fleet)[JobState.SCHEDULED] == number
        fleet.judge(Rules(drained=False), Filter(states=tuple(set(JobState) - {JobState.SCHEDULED})))


def future(number: int) -> NewJob:
    return NewJob(
        id=f"00000000-0000-4000-8000-{number:012}",
        task=jobs.work.name,
        payload=b"{}",
        delay=86_400.0,
        fresh=True,
    )


def ten_more(fleet: Fleet, node: Member) -> None:
    """It still works."""
    before = fleet.in_state(ended=True)
    jobs.work.enqueue_many([()] * 10)
    fleet.until(lambda: fleet.in_state(ended=True) == before + 10, "ten more jobs end")
    assert node.process.poll() is None
