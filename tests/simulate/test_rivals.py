"""Other autoscalers' laws as tables: what each sees, when it looks, what it wants; and policies by name."""

from __future__ import annotations

from array import array

import pytest

from millpond.errors import OptionError
from millpond.rules.scaling.policies import Fixed, ScaleByDepth, ScaleForWait
from millpond.rules.scaling.records import Limits, Memory, Observation, TaskLoad
from millpond.simulate import policies, scenarios
from millpond.simulate.other_autoscalers import (
    KNOBS,
    CeleryStyle,
    HpaStyle,
    KedaStyle,
    KnativeStyle,
    LatencyThreshold,
)
from millpond.simulate.records import Setting, Workload
from millpond.simulate.run_times import parse
from millpond.simulate.simulation import simulate


def seen(*, busy=0, waiting=0, idle=0, oldest=0.0, least=1, most=1000):
    limits = Limits(least, most)
    return Observation(limits, (TaskLoad("", waiting=waiting),), oldest=oldest, busy=busy, idle=idle)


def wanted(law, *looks, before=0):
    """What the law wants at each look: pairs of a moment and what is seen then. `before` was wanted first."""
    memory, answers = Memory(), []
    if before:
        _, memory = law.decide(seen(), memory, -1e6)
        memory = memory._replace(own=memory.own._replace(wanted=before, recommended=(), samples=()))
    for now, observation in looks:
        decision, memory = law.decide(observation, memory, now)
        answers.append(decision.wanted)
    return answers


# --- KEDA ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("length", "before", "after"),
    [
        (50, 10, 10),  # exactly what ten are for
        (54, 10, 10),  # less than a tenth more: within the tolerance
        (56, 10, 12),  # beyond it
        (45, 10, 10),  # a tenth fewer: within it, too
        (1000, 10, 20),  # at most twice as many in a period,
        (1000, 2, 6),  # or four more, whichever is more
    ],
)
def test_keda_wants_a_replica_for_so_many_jobs_beyond_a_tolerance(length, before, after):
    law = KedaStyle(5.0)
    assert wanted(law, (0.0, seen(busy=before, waiting=length - before)), before=before) == [after]


def test_keda_counts_running_jobs_and_looks_every_fifteen_seconds():
    looks = [(0.0, seen(busy=5)), (14.0, seen(busy=5, waiting=45)), (15.0, seen(busy=5, waiting=45))]
    assert wanted(KedaStyle(5.0), *looks) == [1, 1, 5]


def test_keda_goes_down_to_the_highest_wish_of_five_minutes():
    looks = [(0.0, 100), (15.0, 20), (30.0, 60), (285.0, 20), (300.0, 20), (315.0, 20), (330.0, 20)]
    found = wanted(KedaStyle(5.0), *((at, seen(waiting=length)) for at, length in looks), before=20)
    # 20 at 0, 12 at 30: each is forgotten five minutes after it was wished
    assert found == [20, 20, 20, 20, 12, 12, 4]


# --- the Kubernetes autoscaler -------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("busy", "idle", "after"),
    [
        (7, 3, 10),  # on target
        (76, 24, 100),  # 1.09 of it: within the tolerance
        (8, 2, 12),  # 1.14 of it
        (10, 0, 15),
        (5, 5, 10),  # less is wished, but was not for five minutes
    ],
)
def test_an_hpa_brings_the_busy_share_to_its_target_beyond_a_tolerance(busy, idle, after):
    alive = busy + idle
    looks = [(-15.0, seen(busy=round(0.7 * alive), idle=alive - round(0.7 * alive)))]
    found = wanted(HpaStyle(0.7), *looks, (0.0, seen(busy=busy, idle=idle)), before=alive)
    assert found[-1] == after


def test_an_hpa_averages_over_its_period_and_at_most_doubles():
    looks = [
        (0.0, seen(busy=7, idle=3)),
        (5.0, seen(busy=10)),
        (10.0, seen(busy=10)),
        (15.0, seen(busy=4, idle=6)),
    ]
    assert wanted(HpaStyle(0.7), *looks, before=10) == [10, 10, 10, 12]  # 0.8 of the last fifteen seconds
    assert wanted(HpaStyle(0.1), (0.0, seen(busy=10)), before=10) == [20]
    assert wanted(HpaStyle(0.1), (0.0, seen(busy=1)), before=1) == [5]


def test_an_hpa_that_aims_beyond_its_knobs_loose_end_never_grows():
    law, loose = KNOBS["hpa"].law, KNOBS["hpa"].loose
    assert wanted(law(loose), (0.0, seen(busy=10)), before=10) == [12]
    assert wanted(law(loose + 0.02), (0.0, seen(busy=10)), before=10) == [10]


# --- Celery --------------------------------------------------------------------------------------------
def test_celery_grows_with_its_tasks_and_shrinks_so_long_after_the_last_growth():
    looks = [(0.0, 3), (1.0, 8), (20.0, 2), (31.0, 2), (31.1, 2), (31.2, 5), (40.0, 1), (61.3, 1)]
    found = wanted(CeleryStyle(30.0), *((at, seen(waiting=tasks)) for at, tasks in looks))
    assert found == [3, 8, 8, 8, 2, 5, 5, 1]


def test_celery_counts_running_and_waiting_tasks_within_the_bounds():
    assert wanted(CeleryStyle(), (0.0, seen(busy=3, waiting=4))) == [7]
    assert wanted(CeleryStyle(), (0.0, seen(busy=3, waiting=40, most=9))) == [9]
    assert wanted(CeleryStyle(), (0.0, seen(least=2))) == [2]


@pytest.mark.parametrize("keepalive", [0.2, 1.0, 30.0])
def test_celery_looks_when_a_job_comes_and_once_in_each_keepalive(keepalive):
    looked = []

    class Watched(CeleryStyle):
        def decide(self, observation, memory, now):
            looked.append(now)
            return CeleryStyle.decide(self, observation, memory, now)

    workload = Workload("two", array("d", (0.05, 3.3 * keepalive)), array("d", (0.1, 0.1)))
    simulate(workload, Watched(keepalive), Setting(Limits(1, 9, start_cost=0.01)))
    comes = [0.05, 3.3 * keepalive]
    assert set(comes) <= set(looked)
    ticks = [at for at in looked if at not in comes]
    assert ticks == pytest.approx([n * keepalive for n in range(len(ticks))])
    assert len(ticks) >= 4


# --- latency thresholds --------------------------------------------------------------------------------
def test_a_latency_threshold_adds_one_worker_at_a_look_while_the_oldest_waits_too_long():
    looks = [(0.0, 6.0), (5.0, 9.0), (10.0, 9.0), (20.0, 5.0)]  # the second comes before its next look
    assert wanted(LatencyThreshold(5.0), *((at, seen(oldest=age)) for at, age in looks)) == [2, 2, 3, 3]


def test_a_latency_threshold_takes_one_away_at_a_look_after_a_calm_below_a_fifth_of_it():
    ages = {0: 6.0, 10: 0.9, 20: 0.9, 30: 0.0, 40: 1.1, 50: 0.9, 60: 1.0, 70: 0.0, 80: 0.0, 90: 4.0, 100: 0.0}
    found = wanted(LatencyThreshold(5.0), *((at, seen(oldest=age)) for at, age in ages.items()), before=9)
    assert found == [10, 10, 10, 9, 9, 9, 9, 8, 7, 7, 7]


# --- Knative -------------------------------------------------------------------------------------------
def test_knative_wants_its_concurrency_averaged_over_a_minute():
    looks = [(at, seen(busy=7, idle=3)) for at in range(0, 60, 2)]
    assert set(wanted(KnativeStyle(0.7), *looks, before=10)) == {10}
    more = [(60.0 + at, seen(busy=10, waiting=4)) for at in range(0, 60, 2)]
    found = wanted(KnativeStyle(0.7), *looks, *more, before=10)
    assert found[30] == 11  # one sample of thirty
    assert found[-1] == 20
    assert found == sorted(found)


def test_knative_panics_at_twice_what_is_there_and_does_not_go_down_for_a_minute():
    calm = [(at, seen(busy=7, idle=3)) for at in range(2, 60, 2)]
    rush = [
        (60.0, seen(busy=10, waiting=90)),
        (62.0, seen(busy=10, waiting=90)),
        (64.0, seen(busy=10, waiting=90)),
    ]
    found = wanted(KnativeStyle(0.7), *calm, *rush, before=10)
    assert found[-1] == 143  # a hundred at once over six seconds, not a minute
    after = [(66.0 + at, seen(busy=7, idle=136)) for at in range(0, 70, 2)]
    found = wanted(KnativeStyle(0.7), *calm, *rush, *after, before=10)[len(calm) + len(rush) :]
    assert found[:28] == [143] * 28  # until a minute after the panic
    assert found[-1] < 143


def test_knative_goes_down_by_at_most_a_half_at_a_look():
    looks = [(at, seen()) for at in (2.0, 3.0, 4.0, 6.0, 8.0)]
    assert wanted(KnativeStyle(0.7), *looks, before=80) == [40, 40, 20, 10, 5]


# --- all of them ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KNOBS)
def test_other_laws_run_every_job(name):
    scenario = scenarios.find("S5")
    whole = scenario.workload(parse("exp:3s"))
    some = slice(*(sum(at < second for at in whole.arrivals) for second in (900, 2700)))
    arrivals = array("d", (at - 900 for at in whole.arrivals[some]))
    workload = whole._replace(arrivals=arrivals, services=whole.services[some])
    run = simulate(workload, KNOBS[name].law(KNOBS[name].swept[-1]), scenario.setting(10.0, 0.02))
    assert len(run.waits) == len(workload.arrivals)
    assert run.lost_seconds == 0


@pytest.mark.parametrize("name", KNOBS)
def test_what_the_benchmark_sweeps_lies_between_the_ends_of_the_knob(name):
    knob = KNOBS[name]
    assert all(
        min(knob.strict, knob.loose) <= setting <= max(knob.strict, knob.loose) for setting in knob.swept
    )


# --- by name -------------------------------------------------------------------------------------------
def test_policies_have_names():
    assert policies.parse("wait", 7.0) == ScaleForWait(7.0)
    assert policies.parse("wait:500ms", 7.0) == ScaleForWait(0.5)
    assert policies.parse("depth:20:2", 7.0) == ScaleByDepth(20, 2)
    assert policies.parse("depth:20", 7.0) == ScaleByDepth(20, 1)
    assert policies.parse("fixed:9", 7.0) == Fixed(9)
    for name, knob in KNOBS.items():
        assert policies.parse(f"{name}:2", 7.0) == knob.law(2.0)
        assert policies.parse(name, 7.0) == knob.law()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no policy ''"),
        ("best", "there is no policy 'best'"),
        ("depth", "takes 1 or 2 numbers"),
        ("depth:1:2:3", "takes 1 or 2 numbers"),
        ("depth:0", "at least 1"),
        ("depth:5:-1", "'-1' is no whole number"),
        ("depth:x", "'x' is no whole number"),
        ("fixed", "takes one number"),
        ("fixed:-5", "'-5' is no whole number"),
        ("fixed:0", "runs nothing"),
        ("fixed:1:2", "takes one number"),
        ("wait:0s", "above zero"),
        ("wait:soon", "must be a duration"),
        ("wait:1s:2s", "takes 0 or 1 numbers"),
        ("keda:-1", "from 0.01 to 1,000,000"),
        ("keda:inf", "from 0.01 to 1,000,000"),
        ("keda:x", "'x' is no number"),
        ("keda:5:6", "takes 0 or 1 numbers"),
        ("hpa:nan", "from 0.01 to 1,000,000"),
        ("celery:0", "from 0.01 to 1,000,000"),
    ],
)
def test_a_policy_that_is_none_is_refused_with_what_is_wrong(text, told):
    with pytest.raises(OptionError, match=rf"{told}.*choose one of wait, "):
        policies.parse(text, 7.0)
