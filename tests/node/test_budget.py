"""The budget by itself: which claims it asks for, whom it admits, what it says. No worker is started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millpond import App, Resources
from millpond.job import Crashed, Failure, Job, JobState, OutOfMemory, Released, Unsatisfiable
from millpond.node.jobs.queue_pool import QueuePool
from millpond.node.jobs.settle_queue import End
from millpond.node.resources.budget import Measured, NodeBudget
from millpond.node.resources.cgroup import KernelKills, Level
from millpond.node.resources.needs import Means
from millpond.node.worker.app_loading import source_of
from millpond.pool_settings import pool_settings
from millpond.rules.resources.fit import Budget
from millpond.store.protocol import Claim

MB = 1_000_000


class Desk:
    """An app, a pool that is not started, and a budget."""

    def __init__(self, given: Resources, **tasks: Resources) -> None:
        self.app = App("memory://")
        for name, resources in tasks.items():
            self.app.task(name=name, resources=resources)(_nothing)
        self.budget = NodeBudget(given)
        self.budget.measured = Measured(Level(self.budget.means.memory, 0), strangers=0)
        self.budget.expect(self.app.tasks.values(), ())
        self.pool = QueuePool(pool_settings("default", {"workers": 4}), source_of(self.app), lambda *_: None)
        self.app.store.renew("node", "host")
        self._sequence = 0

    def jobs(self, *names: str) -> Sequence[Job]:
        for name in names:
            self.app.get_task(name).enqueue()
        self._sequence += 1
        return self.app.store.exchange("node", self._sequence, claims=[Claim("default", 100)]).claimed

    def take(self, *names: str) -> tuple[Sequence[Job], list[tuple[Job, Any]]]:
        return self.budget.sift(self.pool, self.jobs(*names))

    def admitted(self, now: float = 1e9) -> list[str]:
        return [task.job.task for task, _ in self.budget.admit(now)]

    def claims(self, limit: int = 10) -> list[tuple[int, tuple[str, ...]]]:
        return [(one.limit, one.without) for one in self.budget.shape([Claim("default", limit)])]


def _nothing() -> None:
    """A task."""


def desk(given: Resources | None = None, **tasks: Resources) -> Desk:
    return Desk(given or Resources(memory="1GB", cpu=2, gpu=1), **tasks)


def test_jobs_that_need_nothing_go_straight_to_their_pool():
    here = desk(free=Resources())
    straight, refused = here.take("free", "free")
    assert (len(straight), refused, here.budget.waiting, here.budget.active) == (2, [], {}, False)


def test_no_more_are_claimed_than_there_is_room_for_and_the_rest_without_them():
    here = desk(large=Resources(memory="300MB"), free=Resources())
    assert here.claims() == [(3, ()), (7, ("large",))]
    assert here.claims(2) == [(2, ())]


def test_a_task_of_which_one_waits_is_left_out_of_the_claim():
    here = desk(large=Resources(memory="600MB"))
    here.take("large", "large")
    assert here.admitted() == ["large"]
    assert here.pool.kept == 1
    assert here.claims() == [(10, ("large",))]


def test_one_that_does_not_fit_is_claimed_so_that_room_is_made_for_it():
    here = desk(large=Resources(memory="900MB"), small=Resources(memory="400MB"))
    here.take("small", "small")
    assert here.admitted() == ["small", "small"]
    assert here.claims() == [(1, ()), (9, ("large", "small"))]


def test_while_memory_is_short_nothing_that_needs_any_is_claimed_or_started():
    here = desk(large=Resources(memory="100MB"))
    here.take("large")
    here.budget.measured = here.budget.measured._replace(step="hold")
    assert here.admitted() == []
    assert here.claims() == [(10, ("large",))]


def test_for_want_of_cores_one_job_of_an_idle_pool_starts_and_not_all_of_them():
    here = desk(Resources(cpu=1), heavy=Resources(cpu=3))
    here.take("heavy", "heavy", "heavy")
    assert here.admitted() == ["heavy"]
    assert here.admitted() == []


def test_what_has_ended_makes_room():
    here = desk(gpu=Resources(gpu=1))
    here.take("gpu", "gpu")
    ((task, _),) = here.budget.admit(0.0)
    assert here.admitted() == []
    here.budget.ended(task, 1.0)
    assert here.admitted() == ["gpu"]


def test_the_cap_of_a_pool_is_how_many_of_its_jobs_have_room():
    here = desk(large=Resources(memory="300MB"))
    assert here.budget.cap(here.pool) is None
    here.take("large")
    assert here.admitted() == ["large"]
    assert here.budget.cap(here.pool) == (3, "memory")
    here.take("large", "large", "large")
    assert here.admitted() == ["large", "large"]
    assert here.budget.cap(here.pool) == (3, "memory")


def test_a_pool_with_tasks_that_need_nothing_has_no_cap():
    here = desk(large=Resources(memory="300MB"), free=Resources())
    here.take("large", "large", "large", "large")
    here.admitted()
    assert here.budget.cap(here.pool) is None


def test_what_can_never_run_is_left_alone_then_dead():
    here = desk(vast=Resources(memory="2GB"), odd=Resources(tpu=1))
    _, refused = here.take("vast", "odd")
    assert [outcome for _, outcome in refused] == [Released(), Released()]
    assert here.claims() == [(10, ("vast", "odd"))]
    assert "more than any node" in here.budget.facts()["short"]["vast"]  # type: ignore[index]
    here.budget.patience = 0.0
    _, refused = here.take("vast", "odd")
    assert {type(outcome) for _, outcome in refused} == {Unsatisfiable}
    assert "1 'tpu'" in refused[1][1].failure.message


def test_what_another_node_can_run_is_left_to_it():
    here = desk(vast=Resources(memory="2GB"))
    here.budget.patience = 0.0
    here.budget.fleet = [(frozenset({"default"}), Budget(8000 * MB))]
    _, refused = here.take("vast")
    assert refused[0][1] == Released()
    here.budget.fleet = [(frozenset({"mail"}), Budget(8000 * MB))]
    _, refused = here.take("vast")
    assert isinstance(refused[0][1], Unsatisfiable)


def test_a_task_that_is_seen_to_use_much_is_weighed_from_then_on():
    here = desk(quiet=Resources())
    (job,), _ = here.take("quiet")
    task = here.pool.keep(job)
    task.peak = 400 * MB
    here.budget.saw_end(task, None)
    straight, _ = here.take("quiet", "quiet", "quiet")
    assert straight == []
    assert here.admitted() == ["quiet", "quiet"]


def test_what_is_learned_is_never_more_than_could_be_had():
    here = desk(quiet=Resources())
    (job,), _ = here.take("quiet")
    task = here.pool.keep(job)
    task.peak = 5000 * MB
    here.budget.saw_end(task, None)
    here.take("quiet")
    assert here.admitted() == ["quiet"]


def test_a_job_says_what_it_waits_for_and_how_much_of_it_is_free():
    here = desk(large=Resources(memory="600MB"))
    here.take("large", "large")
    here.budget.admit(0.0)
    assert here.budget.facts()["short"] == {"large": "600 MB of memory, of which 400 MB is free"}


def test_a_death_counts_as_the_kernels_only_if_it_has_killed_in_our_own_group():
    here = desk(quiet=Resources())
    jobs, _ = here.take("quiet", "quiet", "quiet")
    kills = 7
    here.budget.kills = KernelKills(lambda: kills)
    failure = Failure("WorkerDied", "killed by SIGKILL")
    ends = [End(here.pool.keep(job), OutOfMemory(failure), None, 0) for job in jobs]
    assert here.budget.judged(ends[0]).outcome == Crashed(failure)
    kills = 9
    judged = [here.budget.judged(end).outcome for end in ends]
    assert [type(outcome) for outcome in judged] == [OutOfMemory, OutOfMemory, Crashed]


def test_jobs_that_wait_go_back_when_the_node_drains():
    ends: list[tuple[Any, ...]] = []
    here = desk(large=Resources(memory="600MB"))
    here.pool._ended = lambda *end: ends.append(end)
    here.take("large")
    here.budget.withdraw()
    ((task, _, error),) = ends
    assert (task.job.state, type(error).__name__) == (JobState.RUNNING, "Withdrawn")


@pytest.mark.parametrize("given", [None, Resources(), Resources(cpu=1)])
def test_without_memory_given_it_is_what_the_machine_has(given):
    budget = NodeBudget(given)
    assert budget.given_memory is None
    assert isinstance(budget.means, Means)
