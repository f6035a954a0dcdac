"""Where as many workers are allowed as run at once with nobody waiting, the wait that is asked for is kept.

Whatever the jobs are like: in batches, alike, with heavy tails, longer from one moment on, of several tasks.
The law may not trade the wait for a guess about any of this.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import pytest

from millpond.rules.scaling.policies import ScaleForWait
from millpond.simulate.figures import bound, report
from millpond.simulate.simulation import simulate
from tests.simulate.loads import LARGE, SMALL, Size, drawn, most_at_once

SOME, MANY, LONGER = 300, 5000, 600


class Outcome(NamedTuple):
    """What became of a load."""

    number: int
    asked: float
    p95: float
    worker_hours: float
    bound_hours: float
    story: str

    @property
    def is_broken(self) -> bool:
        return self.p95 > self.asked


def outcome(number: int, size: Size = LARGE) -> Outcome:
    load = drawn(number, size)
    setting = load.setting
    assert setting.limits.most >= most_at_once(load.workload)  # so the bound keeps any wait
    run = simulate(load.workload, ScaleForWait(setting.max_wait), setting)
    found = report("wait", run, setting, bound(load.workload, setting.limits.start_cost))
    return Outcome(
        number, setting.max_wait, found.p95_wait, found.worker_hours, found.bound_hours, load.story
    )


def test_short_loads_keep_the_wait_that_is_asked_for():
    found = [outcome(number, SMALL) for number in range(SOME)]
    assert [one for one in found if one.is_broken] == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("number", "size"), [(MANY, SMALL), (LONGER, LARGE)])
def test_thousands_of_short_loads_keep_the_wait_that_is_asked_for(number: int, size: Size):
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as processes:
        found = list(processes.map(outcome, range(number), [size] * number, chunksize=25))
    broken = [one for one in found if one.is_broken]
    hours, least = sum(one.worker_hours for one in found), sum(one.bound_hours for one in found)
    print(
        f"\n{len(broken)} of {len(found)} broken; {hours:.1f} worker-hours, {hours / least:.3f} of the bound"
    )
    assert broken == []
