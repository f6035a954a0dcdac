"""The simulator: jobs, workers and time as a node has them, and the same answer every time."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.rules.scaling.policies import Fixed, ScaleByDepth, ScaleForWait
from millpond.rules.scaling.records import Decision, Limits
from millpond.simulate import bounds
from millpond.simulate.figures import quantile
from millpond.simulate.records import Faults, Setting, Span, Workload
from millpond.simulate.simulation import simulate


def jobs(*pairs, tasks=()):
    return Workload("jobs", array("d", (at for at, _ in pairs)), array("d", (s for _, s in pairs)), tasks)


def pool(least=0, most=10, start_cost=0.5, faults=Faults(), idle=None):  # noqa: B008 - frozen
    return Setting(Limits(least, most, start_cost=start_cost, idle_timeout=idle), 10.0, faults)


class Always:
    """A law that keeps so many, and lets them go after a while."""

    def __init__(self, wanted, keep=0, idle=2.0):
        self.answer = (wanted, keep, idle)

    def decide(self, observation, memory, now):
        wanted, keep, idle = self.answer
        return Decision(wanted, keep, idle, observation.alive, eager=0.0), memory


def test_a_job_waits_for_a_worker_to_start_and_the_worker_for_its_idle_time():
    run = simulate(jobs((10.25, 3.0), (30.0, 1.0)), ScaleForWait(10.0), pool(idle=2.0))
    assert list(run.waits) == pytest.approx([0.5, 0.5])
    assert run.starts == 2
    assert run.worker_seconds == pytest.approx(0.5 + 3.0 + 2.0 + 0.5 + 1.0)


def test_jobs_wait_for_each_other_in_the_order_of_their_arrival():
    run = simulate(jobs((0.0, 4.0), (1.0, 4.0), (2.0, 4.0)), Fixed(1), pool(least=1, most=1))
    assert list(run.waits) == pytest.approx([0.0, 3.0, 6.0])
    assert run.last_end == pytest.approx(12.0)


def test_the_most_recently_used_worker_gets_the_job_so_that_the_others_may_leave():
    many = [(at, 0.5) for at in (1.0, 1.0, *range(2, 12))]
    run = simulate(jobs(*many), Always(0, idle=3.0), pool(least=2, most=2))
    assert run.worker_seconds < 2 * 11.5 - 5


def test_workers_that_a_law_takes_away_finish_their_job():
    class Shrinking(Always):
        def decide(self, observation, memory, now):
            wanted = 4 if now < 5 else 1
            leave = max(0, observation.alive - wanted)
            return Decision(wanted, wanted, 1e9, observation.alive, leave=leave, eager=0.0), memory

    run = simulate(jobs(*[(1.0, 20.0)] * 4), Shrinking(0), pool())
    assert run.lost_seconds == 0
    assert run.busy_seconds == pytest.approx(80.0)
    assert len(run.waits) == 4


def test_jobs_of_a_lost_worker_begin_anew_and_their_time_is_counted_as_lost():
    faults = Faults(losses=((5.0, 1.0),))
    run = simulate(jobs((0.0, 10.0)), ScaleForWait(10.0), pool(least=1, faults=faults))
    assert run.lost_seconds == pytest.approx(5.0)
    assert len(run.waits) == 2
    assert run.last_end == pytest.approx(15.5)


def test_jobs_that_may_not_run_attract_nobody_and_wait_from_when_they_may():
    faults = Faults(blocked=(Span(0.0, 100.0, "shut"),))
    many = jobs(*[(1.0 + at, 1.0) for at in range(50)], tasks=["shut"] * 50)
    run = simulate(many, ScaleForWait(10.0), pool(faults=faults))
    assert sum(minute.workers for minute in run.minutes[:1]) == 0
    assert max(run.waits) < 10.0
    assert len(run.waits) == 50


def test_jobs_that_share_something_slow_each_other_down():
    faults = Faults(contended="", places=2.0)
    run = simulate(jobs(*[(0.0, 3.0)] * 4), Fixed(4), pool(least=4, most=4, faults=faults))
    assert run.last_end == pytest.approx(6.0)


def test_nobody_leaves_while_nothing_can_be_measured():
    faults = Faults(outages=(Span(15.0, 320.0),))
    many = [(at / 10, 1.0) for at in range(190)] + [(400.0, 1.0)]
    run = simulate(jobs(*many), ScaleForWait(2.0), pool(most=20, start_cost=0.02, faults=faults))
    assert run.held >= 300
    assert run.shrunk_in_outage == 0


@pytest.mark.parametrize("law", [Fixed(0), ScaleByDepth(20, 2), Always(0)])
def test_work_is_never_left_alone_whatever_the_law_wants(law):
    run = simulate(jobs(*[(at * 10.0, 2.0) for at in range(5)]), law, pool(least=0, most=8))
    assert len(run.waits) == 5
    assert max(run.waits) <= 2.5  # of a second to the next look, and a start
    assert run.most_workers == 1


# --- long gaps -----------------------------------------------------------------------------------------
MONTHS = 200 * 86_400.0


@pytest.mark.parametrize("law", [ScaleForWait(2.0), Fixed(3), Always(0)])
def test_a_gap_of_months_costs_no_time_and_changes_nothing(law):
    rush = [(at / 10, 1.0) for at in range(600)]
    workload = jobs(*rush, *((at + MONTHS, seconds) for at, seconds in rush))
    run = simulate(workload, law, pool(most=20, start_cost=0.02))
    alone = simulate(jobs(*rush), law, pool(most=20, start_cost=0.02))
    assert run.decisions < 2 * alone.decisions + 5000
    half = len(run.waits) // 2
    assert list(run.waits[:half]) == list(alone.waits)
    assert quantile(sorted(run.waits[half:]), 0.95) <= quantile(sorted(alone.waits), 0.95) + 0.5


def test_a_minimum_is_paid_for_through_a_gap():
    run = simulate(jobs((0.0, 1.0), (MONTHS, 1.0)), ScaleForWait(2.0), pool(least=2))
    assert run.worker_seconds == pytest.approx(2 * (MONTHS + 1.0))
    assert list(run.waits) == [0.0, 0.0]


def test_rates_fade_over_a_gap_and_the_size_with_them():
    """Where workers are dear they are kept for the load that comes: after a gap none is expected."""
    seen: list[tuple[float, float]] = []

    class Listening(NamedTuple):
        law: ScaleForWait

        def decide(self, observation, memory, now):
            seen.append((now, sum(load.rate for load in observation.tasks)))
            return self.law.decide(observation, memory, now)

    rush = [(at / 10, 1.0) for at in range(600)]
    run = simulate(jobs(*rush, (MONTHS, 1.0)), Listening(ScaleForWait(2.0)), pool(start_cost=20.0, most=50))
    assert max(rate for at, rate in seen if at < 60.0) > 5.0
    assert max(rate for at, rate in seen if 100_000.0 < at < MONTHS) < 1e-6
    assert run.held == 0  # no clock has jumped: a node decides every second of it
    assert run.minutes[-2].workers == 0.0


def test_what_would_take_for_ever_is_refused_with_what_to_look_for():
    with pytest.raises(OptionError, match="another unit than seconds"):
        simulate(jobs((0.0, 1.0), (1.7e9, 1.0)), Fixed(1), pool())
    with pytest.raises(OptionError, match="another unit than seconds"):
        simulate(jobs((0.0, 1e12)), Fixed(1), pool())
    with pytest.raises(OptionError, match="let there be more of them"):
        simulate(jobs(*[(0.0, 1e7)] * 100), Fixed(1), pool(most=1))


def test_the_same_jobs_give_the_same_answer():
    many = jobs(*[(at / 3, 2.0) for at in range(300)])
    assert simulate(many, ScaleForWait(3.0), pool()) == simulate(many, ScaleForWait(3.0), pool())


some_jobs = st.lists(st.tuples(st.floats(0, 200), st.floats(0.001, 50)), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(some_jobs, st.floats(0.1, 60), st.integers(1, 20))
def test_every_job_runs_once_and_nobody_spends_less_than_the_work(pairs, wait, most):
    workload = jobs(*sorted(pairs))
    run = simulate(workload, ScaleForWait(wait), pool(most=most, start_cost=0.1))
    assert len(run.waits) == len(pairs)
    assert min(run.waits) >= 0
    assert run.most_workers <= most
    assert run.worker_seconds >= bounds.work(workload) - 1e-6
    assert sum(minute.arrivals for minute in run.minutes) == len(pairs)
    assert sum(minute.workers for minute in run.minutes) * 60 == pytest.approx(run.worker_seconds)


# --- the bounds ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pairs", "cost", "spent"),
    [
        ([(0, 3)], 0.5, 3.5),
        ([(0, 3), (10, 3)], 0.5, 7.0),  # starting again is cheaper than idling for 7 s
        ([(0, 3), (3.2, 3)], 0.5, 6.7),  # idling for 0.2 s is cheaper
        ([(0, 3), (1, 3)], 0.5, 7.0),  # two at once
        ([(0, 5), (1, 1), (2.25, 1)], 1.0, 5 + 1 + 1 + 1.0 + 1.0 + 0.25),
    ],
)
def test_the_clairvoyant_bound(pairs, cost, spent):
    assert bounds.zero_wait(jobs(*pairs), cost) == pytest.approx(spent)


@settings(max_examples=25, deadline=None)
@given(some_jobs, st.floats(0, 5))
def test_the_bound_is_that_of_gaps_on_every_level(pairs, cost):
    """Level by level: the n-th worker is needed while at least n jobs run."""
    workload = jobs(*sorted(pairs))
    moments = sorted([(at, 1) for at, _ in pairs] + [(at + s, -1) for at, s in pairs])
    total, level = 0.0, 0
    needed_since: dict[int, float] = {}
    last_end: dict[int, float] = {}
    for at, change in moments:
        if change > 0:
            level += 1
            total += min(cost, at - last_end[level]) if level in last_end else cost
            needed_since[level] = at
        else:
            total += at - needed_since[level]
            last_end[level] = at
            level -= 1
    assert bounds.zero_wait(workload, cost) == pytest.approx(total)
