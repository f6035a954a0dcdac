"""What no node can run has a whole minute in which a larger one may come, each job of its own. No worker is
started, and time passes because the test says so."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from millpond import Resources
from millpond.job import Job, Released, Unsatisfiable
from millpond.node.resources import budget
from millpond.node.resources.budget import PATIENCE
from millpond.node.resources.needs import Means
from tests.node.test_budget import MB, Desk, desk

EPOCH = 1_700_000_000.0  # what the store's clock says when ours says 0


class Clock:
    """Both clocks: ours, and the store's in the jobs that come."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def due(self, job: Job, ago: float = 0.0) -> Job:
        """The job as if it had become due so many seconds ago."""
        return replace(job, run_at=round((EPOCH + self.now - ago) * 1e6))


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(budget, "time", found)
    return found


@pytest.fixture
def here() -> Desk:
    return desk(vast=Resources(memory="2GB"))


def asked(here: Desk, *jobs: Job) -> list[Any]:
    """What becomes of jobs that are claimed, once again or for the first time."""
    _, refused = here.budget.sift(here.pool, jobs)
    return [type(outcome) for _, outcome in refused]


def test_a_job_that_no_node_can_run_is_dead_after_the_whole_patience_and_not_before(here, clock):
    job = clock.due(here.jobs("vast")[0])
    assert asked(here, job) == [Released]
    clock.now += PATIENCE - 1
    assert asked(here, job) == [Released]
    clock.now += 1
    assert asked(here, job) == [Unsatisfiable]


def test_after_it_fitted_for_a_while_the_patience_begins_anew(here, clock):
    first = clock.due(here.jobs("vast")[0])
    assert asked(here, first) == [Released]
    small, here.budget.means = here.budget.means, Means(4000 * MB, 2.0, 4000 * MB)
    clock.now += PATIENCE
    assert asked(here, first) == []  # there is room for it
    here.budget.means = small
    second = clock.due(here.jobs("vast")[0], ago=PATIENCE)
    assert asked(here, second) == [Released]
    clock.now += PATIENCE
    assert asked(here, second) == [Unsatisfiable]


def test_a_job_that_comes_after_another_was_given_up_has_the_whole_patience(here, clock):
    first = clock.due(here.jobs("vast")[0])
    asked(here, first)
    clock.now += PATIENCE
    assert asked(here, first) == [Unsatisfiable]
    clock.now += 1
    second = clock.due(here.jobs("vast")[0])
    assert asked(here, second) == [Released]
    clock.now += PATIENCE
    assert asked(here, second) == [Unsatisfiable]


def test_a_job_that_comes_while_another_is_waited_for_has_the_whole_patience(here, clock):
    asked(here, clock.due(here.jobs("vast")[0]))
    clock.now += PATIENCE - 1
    second = clock.due(here.jobs("vast")[0])
    clock.now += 1
    assert asked(here, second) == [Released]
    assert "ends dead in 59 s" in here.budget.facts()["short"]["vast"]
    clock.now += PATIENCE - 1
    assert asked(here, second) == [Unsatisfiable]


def test_those_that_came_together_are_given_up_as_they_are_looked_at(here, clock):
    jobs = [clock.due(job) for job in here.jobs("vast", "vast", "vast")]
    assert asked(here, jobs[0]) == [Released]  # one is claimed, to see
    clock.now += PATIENCE
    assert asked(here, jobs[0]) == [Unsatisfiable]
    clock.now += 0.75 * PATIENCE  # it takes its time to look at all of them
    assert asked(here, jobs[1]) == [Unsatisfiable]
    clock.now += 0.75 * PATIENCE
    assert asked(here, jobs[2]) == [Unsatisfiable]


def test_when_nobody_has_looked_for_longer_than_the_patience_it_begins_anew(here, clock):
    job = clock.due(here.jobs("vast")[0])
    asked(here, job)
    clock.now += 3 * PATIENCE  # its queue was paused, say
    assert asked(here, job) == [Released]
    clock.now += PATIENCE
    assert asked(here, job) == [Unsatisfiable]
