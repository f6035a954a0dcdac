"""Planners are killed and stopped, and their clocks are set: every instant keeps its one tick."""

from __future__ import annotations

import itertools
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.proof_node.fleet import STORES
from tests.proof_recurring import jobs
from tests.proof_recurring.herd import Herd, herd_on

HOUR = 3600.0
TASKS = (jobs.quick, jobs.steady, jobs.after, jobs.alone, *jobs.DOCK)


def ticked(herd: Herd, more: int) -> None:
    """Let time pass: so many more ticks of the quickest task."""
    enough = len(herd.ticks(jobs.quick)) + more
    herd.until(lambda: len(herd.ticks(jobs.quick)) >= enough, f"{more} more ticks")


def settled(herd: Herd) -> None:
    """Nothing more is to begin; all nodes leave, and one serves until nothing is left to run."""
    for task in TASKS:
        jobs.app.orchestrator.disable(task)
    last = herd.start_on(herd.here)
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


def goes_on(herd: Herd) -> None:
    """Whatever was done: every task runs again, and soon."""
    before = herd.ends()
    herd.until(lambda: all(herd.ends()[task.name] > before[task.name] for task in TASKS), "all run again")


def set_clocks(herd: Herd, hours: float) -> None:
    """From now on the machines show a wrong time, the one too late and the other too early."""
    if herd.there is not herd.here:
        herd.there.set(-hours * HOUR)
    herd.here.set(hours * HOUR)


class Way(NamedTuple):
    """What is done to the nodes."""

    cycles: int  # one is killed in each, and another begins
    stop: float  # seconds; of the first that is stopped
    settings: dict[int, float]  # in which cycle the clocks are set, to how many hours


def trouble(herd: Herd, way: Way) -> None:
    """Kill, stop, and set clocks: where one is stopped, while it is."""
    usurper = herd.start_on(herd.here, "usurper", wait=False)
    leader, third = (herd.start_on(herd.there, wait=False) for _ in range(2))
    for member in (usurper, leader, third):
        herd.until(member.ready.exists, "it serves")
    ticked(herd, 2)
    for cycle in range(way.cycles):
        herd.kill(leader)
        leader, third = third, herd.start_on(herd.there)
        with herd.stopped(third) if cycle % 10 == 0 else nullcontext():
            if cycle in way.settings:
                set_clocks(herd, way.settings[cycle])
            if cycle % 10 == 0:
                wait(herd, way.stop if cycle == 0 else 3.0)
        if cycle % 5 == 4:
            herd.kill(usurper)
            usurper = herd.start_on(herd.here, "usurper")
        goes_on(herd) if cycle in way.settings else ticked(herd, 2)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(Way(2, 1.6, {0: 2.0, 1: 0.0}), id="short"),
        pytest.param(Way(50, 180.0, {6: 2.0, 20: 0.0, 33: -2.0, 40: 0.0}), id="long", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", STORES)
def test_each_instant_has_one_tick_whoever_plans_and_dies_and_whatever_the_clocks_show(
    name: str, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Three nodes, one of which always believes that it leads. They are killed, and one is stopped for longer
    than every lease. Meanwhile the clocks of their machines are set two hours forward, back, two hours back,
    and right again. Where the time is a server's, that changes nothing; that of a file is its machine's, and
    neither goes back nor stands still."""
    with herd_on(name, tmp_path, lease=1.5, grace=10.0) as herd:
        if name == "sqlite":  # then we are on that machine, too
            monkeypatch.setattr("millpond.store.clock._wall_clock", herd.here.microseconds)
        herd.store.counts()  # a clock is compared with the server's when that is asked for something
        before = herd.store.clock.now()
        trouble(herd, way)
        settled(herd)
        for task in TASKS:
            herd.judge_ticks(task)
        assert not herd.unfounded(jobs.after, jobs.quick)
        assert not overlaps(herd)
        assert crowd(herd) <= 2
        herd.store.counts()
        after = herd.store.clock.now()
        assert all(before < row.at <= after for row in herd.rows())
