"""Jobs that do what they should not among others that do not: each ends as it should, the others unharmed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from millpond.job import Job
from tests.history import Rules
from tests.node.mischief import MEGABYTES, RETURNED, End, is_gone, print_a_hundred_megabytes
from tests.proof_node import jobs
from tests.proof_node.fleet import ONE_AT_FIRST, fleet_on
from tests.proof_node.load import fill

LOUD = print_a_hundred_megabytes.__name__


@pytest.mark.parametrize("rounds", [1, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ONE_AT_FIRST)
def test_jobs_that_misbehave_are_contained_and_the_others_do_not_notice(
    name: str, rounds: int, tmp_path: Path
):
    """They share workers with the others, one after another; what they leave running goes in the end."""
    with fleet_on(name, tmp_path, pools={"default": {"workers": 3}}) as fleet:
        wanted = {job: end for _ in range(rounds) for job, end in a_round().items()}
        loud = jobs.misbehave.using(timeout=120).enqueue(LOUD)  # however slow the disk is
        wanted[loud.id] = RETURNED
        node = fleet.start()
        done = fleet.drained(3600)
        assert {job: end_of(done[job]) for job in wanted} == wanted, fleet.said()
        assert not any(job.crashes for job in done.values() if job.id not in wanted)
        fleet.judge(Rules(ends={job: [end.state] for job, end in wanted.items()}))
        assert node.log.stat().st_size < MEGABYTES * 1_000_000 / 2  # the node cuts it short
        assert fleet.terminate(node) == 0, fleet.said()
        strays = [int(job.result or b"") for job in done.values() if has_left_something(job)]
        assert len(strays) == 3 * rounds
        fleet.until(lambda: all(is_gone(stray) for stray in strays), "the end of what they left running")


def a_round() -> dict[str, End]:
    """Everything that a job should not do, in any order, with work in between; the ends by job."""
    wanted = {}
    for act in random.sample(sorted(set(jobs.HOSTILE) - {LOUD}), len(jobs.HOSTILE) - 1):
        wanted[jobs.misbehave.enqueue(act).id] = jobs.HOSTILE[act][1]
        fill(10, 0.01)
    return wanted


def end_of(job: Job) -> End:
    (attempt,) = job.attempts
    return End(str(job.state), job.reason, attempt.ended)


def has_left_something(job: Job) -> bool:
    return job.task == jobs.misbehave.name and job.result not in (None, b"null", str(MEGABYTES).encode())
