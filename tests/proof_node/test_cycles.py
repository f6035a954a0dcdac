"""Nodes are asked to leave and started again under load: nothing is lost, and nothing unstarted pays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from millpond.job import Job, JobState
from tests.history import Kind, read
from tests.history.entries import Began
from tests.proof_node import jobs
from tests.proof_node.fleet import ONE_AT_FIRST, Fleet, fleet_on


@pytest.mark.parametrize(("number", "cycles"), [(200, 3), pytest.param(10_000, 200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_nodes_come_and_go_under_load(name: str, number: int, cycles: int, tmp_path: Path):
    """At any moment one node serves and another comes or goes; the jobs are due over the whole run."""
    with fleet_on(name, tmp_path, pools={"default": {"workers": [1, 3]}}) as fleet:
        for first in range(0, number, 100):
            some = min(100, number - first)
            delay = random.uniform(0, cycles)
            jobs.work.using(delay=delay).enqueue_many([(random.uniform(0, 0.1),) for _ in range(some)])
        leaving = fleet.start()
        for _ in range(cycles):
            coming = fleet.start()
            jobs.work.enqueue_many([(0.05,)] * 10)  # so that it leaves with something in hand
            assert fleet.terminate(leaving) == 0, fleet.said()
            leaving = coming
        jobs_of_all = fleet.drained(3600)
        assert fleet.terminate(leaving) == 0
        assert len(jobs_of_all) == number + 10 * cycles
        fleet.judge()
        scathed = [job for job in jobs_of_all.values() if not is_unscathed(job)]
        assert not scathed, f"{scathed[:3]}\n{fleet.said()}"


def is_unscathed(job: Job) -> bool:
    """Grace was long enough for every job: each ran once, and paid once."""
    return (job.state, job.attempt, len(job.attempts)) == (JobState.COMPLETED, 1, 1)


@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_what_runs_longer_than_the_grace_is_broken_off_and_runs_elsewhere(name: str, tmp_path: Path):
    with fleet_on(name, tmp_path, grace=3.0, pools={"default": {"workers": 2}}) as fleet:
        jobs.work.enqueue_many([(12.0,)] * 2)  # longer than it takes to notice them, start another and leave
        jobs.work.enqueue_many([(0.0,)] * 20)
        first = fleet.start()
        fleet.until(lambda: began(fleet.folder) == 2, "two at work")
        fleet.start()
        assert fleet.terminate(first) == 0, fleet.said()
        done = fleet.drained()
        assert sorted(job.attempt for job in done.values()) == [1] * 20 + [2] * 2
        fleet.judge()


def test_a_node_that_leaves_after_its_grace_is_not_let_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Exit code 0 alone is not what is promised."""
    monkeypatch.setattr(Fleet, "member", "tests.proof_node.late")
    with fleet_on("sqlite", tmp_path, grace=0.1) as fleet:
        late = fleet.start()
        with pytest.raises(AssertionError, match=r"its grace was 0\.1 s"):
            fleet.terminate(late)
        assert late.process.returncode == 0


def began(folder: Path) -> int:
    return sum(isinstance(line, Began) for line in read(folder))


@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_a_node_is_killed_while_it_drains(name: str, tmp_path: Path):
    with fleet_on(name, tmp_path, lease=3.0, pools={"default": {"workers": 2}}) as fleet:
        jobs.work.enqueue_many([(0.3,)] * 40)
        first = fleet.start()
        fleet.until(lambda: began(fleet.folder) >= 4, "it works")
        with fleet.evidence.fault(Kind.TERMINATED, pid=first.pid, node=first.label):
            first.process.terminate()
            fleet.until(lambda: "draining" in first.log.read_text(), "it drains")
            fleet.evidence.kill(first.pid, node=first.label)
            first.process.wait()
        fleet.start()
        fleet.drained()
        fleet.judge()
