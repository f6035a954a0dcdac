"""Many ends in one exchange: every one of them is seen, whichever way the store is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from millpond.job import JobState
from millpond.node.jobs.claim_loop import WORTH
from tests.history import read
from tests.history.entries import Settled
from tests.proof_node import jobs
from tests.proof_node.fleet import STORES, Fleet, fleet_on


@pytest.mark.parametrize("number", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STORES)
def test_what_is_settled_in_large_rounds_is_seen_and_right(name: str, number: int, tmp_path: Path):
    """Rounds of so many ends are told while the node goes on with its own work."""
    with fleet_on(name, tmp_path, pools={"default": {"workers": 2}}) as fleet:
        enqueue(number)
        fleet.start()
        done = fleet.drained(3600)
        while max(rounds(fleet)) < WORTH:  # how many gather is the machine's to say
            enqueue(1000)
            done = fleet.drained()
        assert {(job.state, job.attempt) for job in done.values()} == {(JobState.COMPLETED, 1)}
        fleet.judge()
        assert sum(rounds(fleet)) == len(done)


def enqueue(number: int) -> None:
    for _ in range(0, number, 1000):
        jobs.work.enqueue_many([(0.0,)] * 1000)


def rounds(fleet: Fleet) -> list[int]:
    """How many ends each exchange told."""
    lines = [line for line in read(fleet.folder) if isinstance(line, Settled)]
    return list(Counter((line.node, line.asked_at) for line in lines).values())
