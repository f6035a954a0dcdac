"""What can be simulated: scenarios, distributions, traces and an app's own history."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from statistics import mean, pvariance

import pytest

from millpond.errors import OptionError
from millpond.rules.scale import Fixed, ScaleByDepth, ScaleForWait
from millpond.simulate import arrivals, history, policies, scenarios, traces
from millpond.simulate.engine import simulate
from millpond.simulate.measure import bound, report
from millpond.simulate.records import Setting
from millpond.simulate.rivals import KNOBS
from millpond.simulate.services import parse
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
    with pytest.raises(OptionError, match="S1 to S15"):
        scenarios.find("S99")


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


def test_growth_that_does_not_help_is_taken_back():
    found = figures("S10", ScaleForWait(10.0), seconds=3000.0)
    assert found.gain_capped > 1000
    assert found.utilisation > 0.6  # 0.2 without the guard: a hundred workers for twenty places


def test_jobs_behind_an_open_breaker_attract_nobody():
    found = figures("S11", ScaleForWait(10.0), seconds=3600.0)
    assert found.ratio_to_bound < 1.2


def test_when_nothing_can_be_measured_nobody_leaves():
    run = simulate(shortened("S12", 1800.0), ScaleForWait(10.0), scenarios.find("S12").setting(10.0, 0.02))
    assert run.held >= 290
    assert run.shrunk_in_outage == 0


def test_slow_poison_does_not_drive_the_size():
    found = figures("S7", ScaleForWait(10.0), seconds=1800.0)
    assert found.p95_wait <= 10.0
    assert found.ratio_to_bound < 1.1


# --- other laws ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KNOBS)
def test_other_laws_run_every_job(name):
    made, knobs = KNOBS[name]
    workload = shortened("S5", 1800.0, start=900.0)
    run = simulate(workload, made(knobs[-1]), scenarios.find("S5").setting(10.0, 0.02))
    assert len(run.waits) == len(workload.arrivals)
    assert run.lost_seconds == 0


def test_policies_have_names():
    assert policies.parse("wait", 7.0) == ScaleForWait(7.0)
    assert policies.parse("wait:500ms", 7.0) == ScaleForWait(0.5)
    assert policies.parse("depth:20:2", 7.0) == ScaleByDepth(20, 2)
    assert policies.parse("fixed:9", 7.0) == Fixed(9)
    for name, (made, _) in KNOBS.items():
        assert policies.parse(f"{name}:2", 7.0) == made(2.0)


@pytest.mark.parametrize("text", ["", "best", "depth", "depth:0", "depth:x", "fixed", "keda:-1", "hpa:nan"])
def test_a_policy_that_is_none_is_refused(text):
    with pytest.raises(OptionError, match="choose one of"):
        policies.parse(text, 7.0)


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


# --- traces --------------------------------------------------------------------------------------------
def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_a_trace_of_counts_has_exactly_that_many_jobs_in_each_minute(tmp_path):
    found = traces.read(written(tmp_path, "# a comment\nminute,count\n10,3\n12,2\n"), EXP)
    assert [int(at // 60) for at in found.arrivals] == [0, 0, 0, 2, 2]
    assert traces.read(written(tmp_path, "second,count\n0,5\n"), EXP).arrivals[-1] < 1.0


def test_a_trace_of_counts_can_be_scaled(tmp_path):
    path = written(tmp_path, "minute,count\n" + "".join(f"{n},100\n" for n in range(60)))
    assert 11_000 < len(traces.read(path, EXP, scale=2.0).arrivals) < 13_000


def test_a_trace_of_jobs_keeps_their_order_tasks_and_times(tmp_path):
    found = traces.read(written(tmp_path, "task,arrival,service\nb,7.5,2\na,5,1\n"), None)
    assert list(found.arrivals) == [0.0, 2.5]
    assert list(found.services) == [1.0, 2.0]
    assert list(found.tasks) == ["a", "b"]


def test_a_trace_of_timestamps_takes_run_times_from_a_distribution(tmp_path):
    text = "TIMESTAMP,tokens\n2023-11-16 18:17:03.9799600,4808\n2023-11-16 18:17:05.9799600,10\n"
    found = traces.read(written(tmp_path, text), parse("fixed:4s"))
    assert list(found.arrivals) == pytest.approx([0.0, 2.0])
    assert list(found.services) == [4.0, 4.0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no rows"),
        ("a,b\n1,2\n", "second,count"),
        ("minute,count\n1,x\n", "line 2"),
        ("minute,count\n1,-4\n", "negative"),
        ("arrival\n1\n", "--service"),
        ("arrival,service\nsoon,1\n", "line 2"),
    ],
)
def test_a_trace_that_cannot_be_read_says_why(tmp_path, text, told):
    with pytest.raises(OptionError, match=told):
        traces.read(written(tmp_path, text), None if told == "--service" else EXP)


def test_a_trace_that_is_not_there_says_so(tmp_path):
    with pytest.raises(OptionError, match="cannot read the trace"):
        traces.read(tmp_path / "none.csv", EXP)


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
    assert isinstance(scenarios.find("S1").setting(5.0, 0.02, (2, 9)), Setting)
