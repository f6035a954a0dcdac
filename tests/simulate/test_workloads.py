"""What can be simulated: scenarios, distributions and an app's own history. Traces: `test_traces.py`."""

from __future__ import annotations

import random
from array import array
from statistics import mean, pvariance

import pytest

from millpond.errors import OptionError
from millpond.rules.scaling.policies import ScaleForWait
from millpond.simulate import arrivals, history, scenarios
from millpond.simulate.figures import bound, report
from millpond.simulate.needs import budget, rationed
from millpond.simulate.records import Setting
from millpond.simulate.run_times import parse
from millpond.simulate.simulation import simulate
from millpond.store.protocol import Minute

EXP = parse("exp:3s")


def shortened(name, seconds, start=0.0, service=EXP):
    scenario = scenarios.find(name)
    whole = scenario.workload(service)
    chosen = [n for n, at in enumerate(whole.arrivals) if start <= at < start + seconds]
    first, last = chosen[0], chosen[-1] + 1
    return whole._replace(
        arrivals=array("d", (at - start for at in whole.arrivals[first:last])),
        services=whole.services[first:last],
        tasks=whole.tasks[first:last],
    )


# --- scenarios -----------------------------------------------------------------------------------------
def test_the_days_have_200_000_jobs_and_their_shapes():
    office = arrivals.scaled(arrivals.office_day(), 200_000)
    assert sum(office[600:840]) == pytest.approx(80_000)
    match = arrivals.match_day(random.Random(1))
    assert max(match) / mean(match) == pytest.approx(21.0)
    assert len(arrivals.nasa_day()) == 1440
    assert sum(arrivals.nasa_day()) == 134_204


@pytest.mark.parametrize("name", scenarios.ALL)
def test_every_scenario_can_be_made_and_is_the_same_every_time(name):
    scenario = scenarios.find(name.lower())
    if len(scenario.arrivals(random.Random(1))) > 60_000:
        return
    workload = scenario.workload(EXP)
    assert workload == scenario.workload(EXP)
    assert workload.arrivals != scenario.workload(EXP, seed=2).arrivals
    assert list(workload.arrivals) == sorted(workload.arrivals)


def test_a_name_that_is_no_scenario_is_refused_with_what_would_do():
    with pytest.raises(OptionError, match="S1 to S19"):
        scenarios.find("S99")
    with pytest.raises(OptionError, match="duration"):
        scenarios.find("S13:soon")
    with pytest.raises(OptionError, match="--start-cost"):
        scenarios.find("S5:3s")


def figures(name, law, wait=10.0, **more):
    scenario = scenarios.find(name)
    workload = shortened(name, **more) if more else scenario.workload(EXP)
    setting = scenario.setting(wait, 0.02)
    return report(name, simulate(workload, law, setting), setting, bound(workload, 0.02))


@pytest.mark.parametrize("service", ["exp:3s", "lognormal:3s:10", "pareto:3s:1.5"])
def test_the_wait_is_kept_at_little_more_than_the_bound(service):
    found = figures("S2", ScaleForWait(10.0), seconds=1200.0, start=46_000.0, service=parse(service))
    assert found.p95_wait <= 10.0
    assert found.ratio_to_bound < 1.1
    assert found.starts_share < 0.02
    assert found.work_lost == 0


def test_a_bottleneck_that_is_declared_gets_no_more_workers_than_it_serves():
    scenario = scenarios.find("S10")
    workload = rationed(shortened("S10", 3000.0), ["database=1"], [])
    setting = scenario.setting(10.0, 0.02)._replace(budget=budget("database=20"))
    found = report("S10", simulate(workload, ScaleForWait(10.0), setting), setting, bound(workload, 0.02))
    assert found.most_workers <= 21
    assert found.utilisation > 0.95


@pytest.mark.parametrize("wait", [2.0, 10.0])
@pytest.mark.parametrize("name", ["S16", "S17", "S18", "S19"])
def test_run_times_that_hang_together_keep_the_wait(name, wait):
    scenario, workload = scenarios.find(name), shortened(name, 1200.0, 600.0)
    setting = scenario.setting(wait, 0.02)
    found = report(name, simulate(workload, ScaleForWait(wait), setting), setting, bound(workload, 0.02))
    assert found.p95_wait <= wait
    assert found.most_workers < setting.limits.most


def test_jobs_behind_an_open_breaker_attract_nobody():
    found = figures("S11", ScaleForWait(10.0), seconds=3600.0)
    assert found.ratio_to_bound < 1.2


def test_when_nothing_can_be_measured_nobody_leaves():
    run = simulate(shortened("S12", 1800.0), ScaleForWait(10.0), scenarios.find("S12").setting(10.0, 0.02))
    assert run.held >= 290
    assert run.shrunk_in_outage == 0


def test_a_clock_that_is_stepped_costs_little_and_nobody_waits_longer():
    scenario = scenarios.find("S12")
    workload, setting = scenario.workload(EXP), scenario.setting(10.0, 0.02)
    assert workload.arrivals[-1] > max(when for when, _ in setting.faults.steps) + 300.0
    steady = setting._replace(faults=setting.faults._replace(steps=()))
    stepped, calm = (simulate(workload, ScaleForWait(10.0), one) for one in (setting, steady))
    assert max(stepped.waits) <= 10.0
    assert stepped.shrunk_in_outage == 0
    assert stepped.most_workers <= calm.most_workers + 2
    assert stepped.worker_seconds == pytest.approx(calm.worker_seconds, rel=0.05)
    assert stepped != calm  # it was noticed


def test_slow_poison_does_not_drive_the_size():
    found = figures("S7", ScaleForWait(10.0), seconds=1800.0)
    assert found.p95_wait <= 10.0
    assert found.ratio_to_bound < 1.1


# --- run times -----------------------------------------------------------------------------------------
def test_distributions_have_the_mean_they_say():
    drawn = {
        text: parse(text).draw(40_000, random.Random(2)) for text in ("exp:3s", "lognormal:3s:2", "fixed:3s")
    }
    for values in drawn.values():
        assert mean(values) == pytest.approx(3.0, rel=0.05)
    assert pvariance(drawn["exp:3s"]) / 9 == pytest.approx(1.0, rel=0.1)
    assert pvariance(drawn["lognormal:3s:2"]) / 9 == pytest.approx(2.0, rel=0.3)
    assert min(parse("pareto:3s:1.5").draw(1000, random.Random(2))) >= 1.0


@pytest.mark.parametrize(
    "text", ["", "exp", "exp:x", "exp:0s", "normal:3s", "pareto:3s:1", "lognormal:3s:x", "fixed:3s:1"]
)
def test_a_distribution_that_is_none_is_refused(text):
    with pytest.raises(OptionError):
        parse(text)


# --- history -------------------------------------------------------------------------------------------
def test_a_history_gives_back_its_arrivals_and_run_times():
    rows = [
        Minute("q", 100, {"enqueued": 30}, {}, {40: 10}),  # 2**20 microseconds: about a second
        Minute("q", 102, {"enqueued": 5}, {}, {}),
    ]
    found = history.workload(rows, "q")
    assert [sum(minute * 60 <= at < minute * 60 + 60 for at in found.arrivals) for minute in range(3)] == [
        30,
        0,
        5,
    ]
    assert all(1.0 < seconds < 1.5 for seconds in found.services)


def test_without_history_there_is_nothing_to_simulate():
    with pytest.raises(OptionError, match="no history"):
        history.workload([], "q")
    with pytest.raises(OptionError, match="--service"):
        history.workload([Minute("q", 1, {"enqueued": 1}, {}, {})], "q")


def test_a_setting_is_a_value():
    assert scenarios.find("S13").setting(5.0, 0.02).limits.start_cost == 3.0
    for text, cost in (("S13:0.05", 0.05), ("s13:300ms", 0.3), ("S13:3", 3.0), ("S13:1m", 60.0)):
        assert scenarios.is_scenario(text)
        assert scenarios.find(text).setting(5.0, 0.02).limits.start_cost == cost
        assert f"{cost:g} s" in scenarios.find(text).title
    assert isinstance(scenarios.find("S1").setting(5.0, 0.02, (2, 9)), Setting)
