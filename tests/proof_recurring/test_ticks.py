"""Planners are killed, stopped and lied to: every instant keeps its one tick."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from tests.proof_node.fleet import STORES
from tests.proof_recurring import jobs
from tests.proof_recurring.herd import Herd, herd_on

TASKS = (jobs.quick, jobs.steady, jobs.after, jobs.alone, *jobs.DOCK)


def ticked(herd: Herd, more: int) -> None:
    """Let time pass: so many more ticks of the quickest task."""
    enough = len(herd.ticks(jobs.quick)) + more
    herd.until(lambda: len(herd.ticks(jobs.quick)) >= enough, f"{more} more ticks")


def settled(herd: Herd) -> None:
    """Nothing more is to begin; all nodes leave, and one serves until nothing is left to run."""
    for task in TASKS:
        jobs.app.orchestrator.disable(task)
    last = herd.start()
    for member in herd.living:
        if member is not last:
            assert herd.terminate(member) == 0, herd.said()
    herd.until(lambda: herd.in_state(ended=False) == 0, "nothing left", 60)
    assert herd.terminate(last) == 0, herd.said()


def overlaps(herd: Herd) -> list[tuple[object, object]]:
    """Pairs of runs that excluded each other and ran at the same time."""
    spans = sorted(herd.spans(), key=lambda span: span[1])
    mine = jobs.alone.name
    return [
        (one, other)
        for one, other in itertools.combinations(spans, 2)
        if (one[0] == mine) != (other[0] == mine)
        and {one[0], other[0]} & {jobs.quick.name, jobs.steady.name}
        and other[1] < one[2]
    ]


def crowd(herd: Herd) -> int:
    """How many were at the dock at the same time, at most."""
    names = {task.name for task in jobs.DOCK}
    spans = [(begin, end) for name, begin, end in herd.spans() if name in names]
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def wait(herd: Herd, seconds: float) -> None:
    """So long, whatever happens."""
    until = time.monotonic() + seconds
    herd.until(lambda: time.monotonic() >= until, f"{seconds} s", seconds + 100)


@pytest.mark.parametrize(("cycles", "stop"), [(1, 1.6), pytest.param(50, 180.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STORES)
def test_each_instant_has_one_tick_whoever_plans_and_dies(
    name: str, cycles: int, stop: float, tmp_path: Path
):
    """Three nodes, one of which always believes that it leads. They are killed, and one is stopped for
    longer than every lease. Where the time is a server's, the clocks of two nodes are two hours off."""
    early, late = ([], []) if name == "sqlite" else (["clock=-7200"], ["clock=7200"])
    with herd_on(name, tmp_path, lease=1.5, grace=10.0) as herd:
        herd.store.counts()  # a clock is compared with the server's when that is asked for something
        before = herd.store.clock.now()
        usurper, leader, third = (herd.start(*words, wait=False) for words in (["usurper", *late], early, []))
        for member in (usurper, leader, third):
            herd.until(member.ready.exists, "it serves")
        ticked(herd, 2)
        for cycle in range(cycles):
            herd.kill(leader)
            leader, third = third, herd.start(*early)
            if cycle % 10 == 0:
                with herd.stopped(third):
                    wait(herd, stop if cycle == 0 else 3.0)
            if cycle % 5 == 4:
                herd.kill(usurper)
                usurper = herd.start("usurper", *late)
            ticked(herd, 2)
        settled(herd)
        for task in TASKS:
            herd.judge_ticks(task)
        assert not overlaps(herd)
        assert crowd(herd) <= 2
        after = herd.store.clock.now()
        assert all(before < row.at <= after for row in herd.rows())
