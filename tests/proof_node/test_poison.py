"""Jobs that kill their worker, and jobs that keep it to themselves for long: contained, counted exactly."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from millpond.job import JobState
from millpond.task import Task
from tests.history import Rules
from tests.proof_node import jobs
from tests.proof_node.fleet import ONE_AT_FIRST, STORES, Fleet, fleet_on

LEASE = 1.5
DEAD = "dead(crashed)"
KEPT = 0.9  # of its throughput, by a pool beside one in which every job kills its worker


def test_a_job_ten_times_longer_than_the_lease_that_lets_no_other_thread_run_runs_once(tmp_path: Path):
    """On every store at the same time; each has a second node that would rescue."""
    with ExitStack() as stack:
        fleets = [stack.enter_context(fleet_on(name, tmp_path, lease=LEASE)) for name in STORES]
        for fleet in fleets:
            jobs.app.store = fleet.store
            jobs.in_c.enqueue(10 * LEASE)
            fleet.start()
        for fleet in fleets:
            fleet.start()
        for fleet in fleets:
            (job,) = fleet.drained().values()
            assert (job.state, job.attempt, job.token) == (JobState.COMPLETED, 1, 1), fleet.said()
            fleet.judge()


@pytest.mark.parametrize("number", [30, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_jobs_that_kill_their_worker_end_dead_after_exactly_so_many_times(
    name: str, number: int, tmp_path: Path
):
    with fleet_on(name, tmp_path, pools={"storm": {"workers": 3}, "default": {"workers": 1}}) as fleet:
        handles = jobs.poison.enqueue_many([()] * number)
        jobs.work.enqueue_many([(0.01,)] * number)
        fleet.start()
        fleet.start()
        done = fleet.drained(3600)
        for handle in handles:
            job = done[handle.id]
            assert (job.state, job.reason, job.crashes, job.attempt) == (JobState.DEAD, "crashed", 2, 2)
            assert "SIGKILL" in (job.attempts[-1].message or "")
        fleet.judge(Rules(ends={handle.id: [DEAD] for handle in handles}))


@pytest.mark.parametrize("others", [6, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_the_neighbours_of_a_job_that_kills_its_worker_run_again_alone_and_pay_nothing(
    name: str, others: int, tmp_path: Path
):
    pools = {"loops": {"workers": 1, "kind": "async", "concurrency": 100}, "default": {"workers": 1}}
    with fleet_on(name, tmp_path, pools=pools) as fleet:
        handles = jobs.neighbour.enqueue_many([()] * others)
        killer = jobs.apoison.enqueue(others)
        fleet.start()
        done = fleet.drained()
        for handle in handles:
            job = done[handle.id]
            assert (job.state, job.crashes) == (JobState.COMPLETED, 0)
            assert [line.ended for line in job.attempts] == ["crashed", "returned"]
        assert (done[killer.id].reason, done[killer.id].crashes) == ("crashed", 2)
        fleet.judge(Rules(ends={killer.id: [DEAD]}))


@pytest.mark.parametrize("name", ONE_AT_FIRST)
@pytest.mark.parametrize(
    ("number", "crashes", "rounds"),
    [
        pytest.param(150, 1, 1, marks=pytest.mark.timeout(300)),
        pytest.param(10_000, 2, 3, marks=pytest.mark.slow),
    ],
)
def test_a_storm_in_one_pool_does_not_stop_another(
    name: str, number: int, crashes: int, rounds: int, tmp_path: Path
):
    """The other pool keeps its throughput, compared with its own beside a pool that runs healthy jobs. A
    storm lasts longer than the others need: they come again and again while it rages. One short round is
    over in a third of a second and says little: it is printed, and only the long form is held to it."""
    pools = {"storm": {"workers": 2}, "default": {"workers": 2}}
    deadly = jobs.poison_once if crashes == 1 else jobs.poison
    with fleet_on(name, tmp_path, pools=pools) as fleet:
        fleet.start()
        beside(fleet, jobs.healthy, 10, 10)  # all is warm
        calm = [beside(fleet, jobs.healthy, number, number) for _ in range(rounds)]
        storm = [beside(fleet, deadly, 0 if later else number, number) for later in range(rounds)]
        assert fleet.in_state(ended=False, queue="storm") > 0  # it raged all the time
        fast, slow = (rounds * number / sum(seconds) for seconds in (calm, storm))
        print(
            f"\n{name}: {fast:.0f} jobs/s beside healthy jobs, {slow:.0f} beside a storm of {number}: "
            f"{slow / fast:.0%}; seconds {calm} and {storm}{'' if rounds > 1 else ', too few to say much'}"
        )
        done = fleet.drained(3600)
        dead = [job for job in done.values() if job.task == deadly.name]
        assert len(dead) == number
        wrong = [job for job in dead if (job.crashes, job.reason) != (crashes, "crashed")]
        assert not wrong, wrong[:2]
        fleet.judge(Rules(ends={job.id: [DEAD] for job in dead}))
        assert rounds == 1 or slow >= KEPT * fast, f"{slow / fast:.0%} of its throughput was left"


def beside(fleet: Fleet, task: Task[[], None], neighbours: int, number: int) -> float:
    """The seconds in which the other pool ends so many jobs. They wait behind a pause until all are there,
    and so do those of the storm's pool: the clock sees all of the work, and no enqueueing."""
    before = fleet.in_state(ended=True, queue="default")
    fleet.store.configure(queue="default", paused=True)
    if neighbours:
        fleet.store.configure(queue="storm", paused=True)
        task.enqueue_many([()] * neighbours)
    jobs.work.enqueue_many([(0.0,)] * number)
    began = time.monotonic()
    fleet.store.configure(queue="storm", paused=False)
    fleet.store.configure(queue="default", paused=False)
    fleet.until(
        lambda: fleet.in_state(ended=True, queue="default") >= before + number, "the others end", 3600
    )
    seconds = time.monotonic() - began
    if task is jobs.healthy:
        fleet.until(lambda: fleet.in_state(ended=False) == 0, "nothing is left of this round")
    return round(seconds, 2)
