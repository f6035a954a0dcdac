"""Jobs that all take the same time, as long as the wait or longer: no part of one helps those in line."""

from __future__ import annotations

from array import array

import pytest

from millpond.rules.scaling.policies import ScaleForWait
from millpond.rules.scaling.records import Limits
from millpond.simulate import scenarios
from millpond.simulate.figures import bound, report
from millpond.simulate.records import Setting, Workload
from millpond.simulate.run_times import parse
from millpond.simulate.simulation import simulate


def bursts(number, service, times=10):
    """So many jobs at once, once a minute."""
    arrivals = array("d", (60.0 * (1 + time) for time in range(times) for _ in range(number)))
    services = array("d", [service] * len(arrivals))
    return Workload("bursts", arrivals, services)


def figures(workload, setting):
    run = simulate(workload, ScaleForWait(setting.max_wait), setting)
    return report("wait", run, setting, bound(workload, setting.limits.start_cost))


@pytest.mark.parametrize(
    ("number", "service", "wait", "most"), [(20, 2.0, 1.0, 25), (40, 3.0, 2.0, 100), (40, 30.0, 10.0, 100)]
)
def test_bursts_of_even_jobs_begin_in_time(number, service, wait, most):
    setting = Setting(Limits(1, most, start_cost=0.008), wait)
    assert figures(bursts(number, service), setting).p95_wait <= wait


@pytest.mark.parametrize("service", ["fixed:3s", "lognormal:3s:0.1", "exp:3s"])
def test_a_bursty_stream_begins_in_time_however_its_jobs_vary(service):
    scenario = scenarios.find("S15")
    found = figures(scenario.workload(parse(service)), scenario.setting(2.0, 0.01))
    assert found.p95_wait <= 2.0
    assert found.ratio_to_bound < 1.1
