"""How many workers: plans stay within the bounds, follow the work, and come to rest."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from millpond.rules.pool.size import (
    ASK_AGAIN,
    LEAVE_WAIT,
    SOFT_SHARE,
    Bounds,
    Crew,
    Plan,
    age_budget,
    leave_used,
    leave_wait,
    memory_soft_limit,
    plan,
    task_budget,
)

calm = settings(deadline=None)
IDLE = 10.0


@st.composite
def moments(draw):
    """A crew, its bounds and the time; whole seconds, so that sums are exact."""
    now = 10_000
    ages = sorted(draw(st.lists(st.integers(0, 100), max_size=8)), reverse=True)
    idle = [(worker, float(now - age)) for worker, age in enumerate(ages, 1)]
    crew = Crew(idle, draw(st.integers(0, 8)), draw(st.integers(0, 4)), draw(st.integers(0, 20)))
    most = draw(st.integers(1, 12))
    bounds = Bounds(draw(st.integers(0, most)), most, float(draw(st.integers(0, 50))))
    return crew, bounds, float(now)


def live(crew):
    return len(crew.idle) + crew.busy + crew.starting


PLANS = {
    "an empty pool starts its least": (Crew([], 0, 0, 0), Bounds(2, 4, IDLE), Plan(2, (), None)),
    "work that waits starts workers": (Crew([], 1, 0, 2), Bounds(1, 8, IDLE), Plan(2, (), None)),
    "but not beyond the most": (Crew([], 1, 0, 99), Bounds(1, 4, IDLE), Plan(3, (), None)),
    "those that are starting count": (Crew([], 0, 2, 2), Bounds(0, 4, IDLE), Plan(0, (), None)),
    "idle ones take what waits": (Crew([(1, 0.0), (2, 0.0)], 0, 0, 2), Bounds(0, 4, IDLE), Plan(0, (), None)),
    "a fixed size rests": (Crew([(1, 0.0), (2, 0.0)], 0, 0, 0), Bounds(2, 2, IDLE), Plan(0, (), None)),
    "the longest idle goes": (
        Crew([(7, 80.0), (3, 95.0)], 0, 0, 0),
        Bounds(0, 4, IDLE),
        Plan(0, (7,), 105.0),
    ),
    "a size that was decided is had, whatever waits": (
        Crew([], 1, 0, 99),
        Bounds(1, 8, IDLE, 3),
        Plan(2, (), None),
    ),
    "within the bounds": (Crew([], 1, 0, 99), Bounds(1, 8, IDLE, 30), Plan(7, (), None)),
    "and not below the least": (Crew([], 0, 0, 0), Bounds(2, 8, IDLE, 0), Plan(2, (), None)),
    "work is never left with nobody": (Crew([], 0, 0, 9), Bounds(0, 8, IDLE, 0), Plan(1, (), None)),
    "also then the longest idle goes, down to the least": (
        Crew([(7, 80.0), (3, 85.0)], 0, 0, 0),
        Bounds(1, 4, IDLE, 1),
        Plan(0, (7,), None),
    ),
    "and nobody sooner": (
        Crew([(7, 95.0)], 1, 0, 0),
        Bounds(0, 4, IDLE, 1),
        Plan(0, (), 105.0),
    ),
    "who is idle since nobody knows of work stays": (
        Crew([(7, 80.0), (3, 85.0)], 0, 0, 0),
        Bounds(0, 4, IDLE, known_at=82.0),
        Plan(0, (7,), 100.0 + ASK_AGAIN),
    ),
    "all idle too long go": (
        Crew([(7, 80.0), (3, 90.0)], 0, 0, 0),
        Bounds(0, 4, IDLE),
        Plan(0, (7, 3), None),
    ),
    "down to the least": (Crew([(7, 80.0), (3, 85.0)], 0, 0, 0), Bounds(1, 4, IDLE), Plan(0, (7,), None)),
    "busy ones count towards the least": (
        Crew([(7, 80.0), (3, 85.0)], 1, 0, 0),
        Bounds(1, 4, IDLE),
        Plan(0, (7, 3), None),
    ),
    "after a resize the surplus goes at once": (
        Crew([(7, 99.0), (3, 99.0)], 2, 0, 5),
        Bounds(1, 3, IDLE),
        Plan(0, (7,), None),
    ),
    "a busy surplus cannot go yet": (Crew([], 5, 0, 0), Bounds(1, 3, IDLE), Plan(0, (), None)),
}


@pytest.mark.parametrize(("crew", "bounds", "expected"), PLANS.values(), ids=PLANS)
def test_a_plan(crew, bounds, expected):
    assert plan(crew, bounds, 100.0) == expected


@calm
@given(moments())
def test_a_plan_never_starts_beyond_the_most_nor_retires_below_the_least(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    assert made.start == 0 or live(crew) + made.start <= bounds.most
    after = live(crew) - len(made.retire) + made.start
    assert after >= min(live(crew), bounds.least)
    assert made.start >= 0
    assert not (made.start and made.retire)


@calm
@given(moments())
def test_a_plan_starts_enough_for_what_waits(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    hands = len(crew.idle) - len(made.retire) + crew.starting + made.start
    assert hands >= crew.waiting or live(crew) - len(made.retire) + made.start >= bounds.most
    assert live(crew) + made.start >= bounds.least


@calm
@given(moments())
def test_a_plan_starts_nobody_without_need(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    if made.start:
        assert live(crew) + made.start == max(bounds.least, min(bounds.most, crew.busy + crew.waiting))


@calm
@given(moments())
def test_nobody_is_retired_while_work_waits_unless_the_pool_is_too_large(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    surplus = max(0, live(crew) - bounds.most)
    if crew.waiting:
        assert len(made.retire) <= surplus
    assert len(made.retire) >= min(surplus, len(crew.idle))


@calm
@given(moments())
def test_the_retired_are_the_longest_idle_each_once_and_beyond_the_surplus_only_after_the_timeout(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    workers = [worker for worker, _ in crew.idle]
    assert list(made.retire) == workers[: len(made.retire)]
    since = dict(crew.idle)
    surplus = max(0, live(crew) - bounds.most)
    assert all(now - since[worker] >= bounds.idle_timeout for worker in made.retire[surplus:])


@calm
@given(moments())
def test_the_time_to_look_again_is_when_the_next_one_may_go(moment):
    crew, bounds, now = moment
    made = plan(crew, bounds, now)
    if made.look_again_at is None:
        return
    assert made.look_again_at > now
    left = crew._replace(idle=crew.idle[len(made.retire) :])
    assert not plan(left, bounds, made.look_again_at - 0.5).retire
    assert plan(left, bounds, made.look_again_at).retire


@calm
@given(st.floats(0, 1e6), st.floats(1e-3, 1e5))
def test_looking_again_at_the_time_given_always_finds_the_worker_due(since, idle_timeout):
    crew, bounds = Crew([(1, since)], 0, 0, 0), Bounds(0, 1, idle_timeout)
    assume(since + idle_timeout > since)
    first = plan(crew, bounds, since)
    assert first.look_again_at is not None
    assert plan(crew, bounds, first.look_again_at).retire == (1,)


@calm
@given(moments(), st.integers(0, 15))
def test_a_steady_demand_leads_to_a_steady_size(moment, demand):
    """`demand` tasks that never end: the crew must reach the right size and stay there."""
    crew, bounds, now = moment
    ids = iter(range(1000, 10_000))
    idle, busy = list(crew.idle), min(demand, crew.busy)
    idle += [(next(ids), now) for _ in range(crew.busy - busy + crew.starting)]
    for _ in range(6):
        while idle and busy < demand and busy < bounds.most:
            idle.pop()
            busy += 1
        made = plan(Crew(idle, busy, 0, demand - busy), bounds, now)
        idle = [entry for entry in idle if entry[0] not in made.retire]
        idle += [(next(ids), now) for _ in range(made.start)]
        now += bounds.idle_timeout
    settled = plan(Crew(idle, busy, 0, demand - busy), bounds, now)
    assert (settled.start, settled.retire, settled.look_again_at) == (0, (), None)
    assert len(idle) + busy == max(busy, min(bounds.most, max(bounds.least, demand)))
    assert busy >= min(demand, bounds.most)


# --- wear ---------------------------------------------------------------------------------------
@calm
@given(limit=st.integers(1, 10**9), worker=st.integers(1, 10**6))
def test_a_task_budget_is_at_least_one_never_above_the_limit_and_at_most_a_tenth_below(limit, worker):
    budget = task_budget(limit, worker)
    assert budget is not None
    assert 1 <= budget <= limit
    assert budget >= limit - limit / 10


def test_small_task_budgets_are_exact_and_large_ones_differ_between_workers():
    assert task_budget(None, 3) is None
    assert {task_budget(19, worker) for worker in range(50)} == {19}
    assert task_budget(1, 7) == 1
    assert len({task_budget(100, worker) for worker in range(50)}) == 11


@calm
@given(limit=st.floats(1e-3, 1e9), worker=st.integers(1, 10**6))
def test_an_age_budget_is_above_zero_never_above_the_limit_and_at_most_a_tenth_below(limit, worker):
    budget = age_budget(limit, worker)
    assert budget is not None
    assert limit * 0.9 * (1 - 1e-12) <= budget <= limit


def test_no_age_limit_is_no_age_budget_and_workers_age_apart():
    assert age_budget(None, 3) is None
    assert len({age_budget(100.0, worker) for worker in range(50)}) == 11


@calm
@given(st.integers(1, 2**62))
def test_the_soft_memory_limit_leaves_room_below_the_hard_one(limit):
    soft = memory_soft_limit(limit)
    assert soft is not None
    assert soft < limit
    assert soft == pytest.approx(limit * SOFT_SHARE, abs=1)


def test_no_memory_limit_is_no_soft_limit():
    assert memory_soft_limit(None) is None


# --- workers that take their time to leave -----------------------------------------------------------
def test_successors_of_slow_leavers_start_until_as_many_leave_as_may_work():
    bounds = Bounds(4, 4, IDLE)
    assert plan(Crew([], 0, 0, 4, leaving=4), bounds, 0.0).start == 4
    assert plan(Crew([], 2, 0, 2, leaving=5), bounds, 0.0).start == 1
    assert plan(Crew([], 2, 0, 2, leaving=6), bounds, 0.0).start == 0


def test_a_pool_without_a_worker_gets_one_however_many_leave():
    assert plan(Crew([], 0, 0, 9, leaving=99), Bounds(0, 4, IDLE), 0.0).start == 1


def test_the_time_to_leave_runs_out():
    assert leave_wait(0.0) == LEAVE_WAIT
    assert leave_wait(LEAVE_WAIT / 2) == LEAVE_WAIT / 2
    assert leave_wait(1.0 + LEAVE_WAIT) == 0.0


def test_time_in_which_nobody_looked_counts_for_two_looks_at_most():
    assert leave_used(1.0, looked_at=10.0, now=10.25) == 1.25
    assert leave_used(1.0, looked_at=10.0, now=3610.0) == 1.5  # the container was paused for an hour
