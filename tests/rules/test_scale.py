"""How many workers a pool should have: terms, guards, bounds, and the sentence that explains them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from millpond.rules.scaling import bounds
from millpond.rules.scaling.fair_share import recapped
from millpond.rules.scaling.policies import (
    Fixed,
    ScaleByDepth,
    ScaleForWait,
    desired,
    policy_for,
    sentence,
    urgency,
)
from millpond.rules.scaling.records import Limits, Memory, Observation, TaskLoad

TEN = ScaleForWait(10.0)
TWENTY = Limits(1, 20)


def seen(waiting=0, *, busy=0, idle=0, starting=0, limits=TWENTY, service=3.0, **more):
    tasks = (TaskLoad("task", rate=more.pop("rate", 0.0), service=service, waiting=waiting),)
    remaining = (service,) * (busy * limits.concurrency)
    told = {"measured_at": 100.0, "remaining": remaining, **more}
    return Observation(limits, tasks, busy=busy, idle=idle, starting=starting, **told)


def decided(observation, policy=TEN):
    return policy.decide(observation, Memory(), 100.0)[0]


# --- the law ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("waiting", "busy", "oldest", "wanted"),
    [
        (0, 0, 0.0, 1),  # nothing to do: the minimum
        (1, 0, 0.0, 1),
        (3, 0, 0.0, 1),  # one worker begins three jobs of 3 s within 8 s
        (4, 0, 0.0, 2),
        (100, 0, 0.0, 20),  # more than 20 are not allowed
        (8, 4, 0.0, 4),  # four that run begin ten more in time
        (20, 4, 0.0, 7),
        (8, 4, 7.9, 11),  # all came at once and it is nearly too late: what runs will not be done in time
    ],
)
def test_enough_workers_that_the_line_begins_in_time(waiting, busy, oldest, wanted):
    assert decided(seen(waiting, busy=busy, oldest=oldest)).wanted == wanted


def test_who_came_after_the_oldest_has_more_time_left():
    assert decided(seen(8, busy=4, oldest=7.9, rate=1.1)).wanted == 5  # a place for the oldest
    assert decided(seen(8, busy=4, oldest=4.0, rate=2.0)).wanted == 4
    assert decided(seen(8, busy=4, oldest=4.0, rate=0.1)).wanted == 5  # nearly all are as old


@pytest.mark.parametrize("starts", [None, 0.0])  # also when very many were started lately
def test_who_has_waited_for_as_long_as_is_planned_gets_a_place_whatever_is_expected(starts):
    soon = (0.01,) * 4  # by all that is known four places are about to be free, again and again
    came = seen(6, busy=4, remaining=soon, service=0.01, rate=50.0, arrived=106)
    decision, memory = TEN.decide(came, Memory(starts=starts), 100.0)
    assert decision.wanted == 4
    memory = TEN.decide(came._replace(oldest=4.0, measured_at=104.0), memory, 104.0)[1]._replace(
        starts=starts
    )
    later = came._replace(
        oldest=8.1, measured_at=108.1, tasks=(came.tasks[0]._replace(waiting=8),), arrived=108
    )
    decision, _ = TEN.decide(later, memory._replace(decided_at=107.6), 108.1)
    assert decision.wanted == 10  # two of the eight have come since
    assert TEN.decide(later._replace(arrived=None), memory._replace(decided_at=107.6), 108.1)[0].wanted < 10


def test_where_nothing_may_wait_every_job_gets_its_worker():
    assert decided(seen(6, busy=4), ScaleForWait(0.01)).wanted == 10


def test_workers_on_their_way_are_not_started_again():
    first = decided(seen(40))
    assert first.start > 0
    assert decided(seen(40, starting=first.wanted)).start == 0


def test_a_long_running_job_is_not_expected_to_make_room():
    quick = decided(seen(8, busy=4))
    slow = decided(seen(8, busy=4, remaining=(3600.0,) * 4))
    assert slow.wanted > quick.wanted


def test_places_of_workers_with_many_jobs_at_once_count_as_places():
    limits = Limits(0, 10, concurrency=100)
    assert decided(seen(250, limits=limits, service=20.0)).wanted == 2
    assert decided(seen(1, limits=limits)).wanted == 1


def test_spares_stand_by_where_starting_takes_longer_than_waiting_may():
    slow = Limits(0, 50, start_cost=60.0)
    decision = decided(seen(0, limits=slow, rate=5.0, busy=15))
    assert decision.binding == "base"
    assert decision.wanted > 15
    assert decision.keep > 15
    assert decided(seen(0, limits=Limits(0, 50), rate=5.0, busy=15)).keep == 0


def test_a_pool_without_a_wait_gets_one_second():
    assert policy_for(None) == ScaleForWait(1.0)
    assert policy_for(2.0) == ScaleForWait(2.0)


# --- who stays ----------------------------------------------------------------------------------------------
def test_with_no_minimum_everybody_may_leave():
    decision = decided(seen(idle=3, limits=Limits(0, 8)))
    assert (decision.wanted, decision.keep, decision.leave) == (0, 0, 0)


def test_nobody_leaves_where_there_are_too_few_for_what_waits():
    short = decided(seen(5000, busy=12, idle=4, limits=Limits(1, 16)))
    assert (short.wanted, short.keep, short.leave) == (16, 16, 0)
    enough = decided(seen(2, busy=12, idle=4, limits=Limits(1, 16)))
    assert (enough.wanted, enough.keep) == (16, 1)


def test_warm_spares_are_kept_beyond_the_busy_ones():
    decision = decided(seen(busy=4, limits=Limits(1, 8, warm=2)))
    assert (decision.wanted, decision.keep) == (6, 6)
    assert decided(seen(busy=8, limits=Limits(1, 8, warm=2))).wanted == 8


def test_warm_spares_that_a_cap_would_send_away_again_are_not_started():
    capped = decided(seen(busy=4, cap=4, limits=Limits(1, 8, warm=2)))
    assert (capped.wanted, capped.leave) == (4, 0)
    beyond = decided(seen(busy=4, idle=2, cap=4, limits=Limits(1, 8, warm=2)))
    assert (beyond.start, beyond.leave) == (0, 2)
    flapping = Memory(decided_at=100.0, starts=0.0)
    assert TEN.decide(seen(busy=4, limits=Limits(1, 8, warm=2)), flapping, 100.0)[0].wanted == 4


@pytest.mark.parametrize(
    ("observation", "wish"),
    [
        (seen(busy=2, limits=Limits(5, 20)), 2),  # a minimum is no wish
        (seen(1000, busy=20), 279),  # nor is a maximum
        (seen(100, busy=4, cap=4), 29),  # nor what this machine has room for
        (seen(20, busy=4), 7),
        (seen(busy=4, limits=Limits(1, 20, warm=9)), 4),
        (seen(busy=4, trouble="the store is away"), None),  # nobody knows
    ],
)
def test_what_would_be_wanted_without_bounds(observation, wish):
    assert desired(decided(observation)) == wish


@given(st.integers(0, 200), st.integers(0, 30), st.integers(0, 30), st.integers(0, 20), st.integers(0, 40))
def test_a_bound_never_changes_what_is_wished_for(waiting, busy, cap, least, most):
    bounded = seen(waiting, busy=busy, cap=cap, limits=Limits(least, max(1, most)))
    free = seen(waiting, busy=busy, limits=Limits(0, 1000))
    wishes = {desired(decided(one)) for one in (bounded, free)}
    assert len(wishes) == 1


@pytest.mark.parametrize(
    ("cost", "asked", "idle"),
    [(0.01, None, 0.05), (0.3, None, 0.3), (3.0, None, 3.0), (900.0, None, 300.0), (3.0, 60.0, 60.0)],
)
def test_a_worker_idles_as_long_as_starting_another_would_cost(cost, asked, idle):
    assert bounds.idle_timeout(Limits(start_cost=cost, idle_timeout=asked)) == idle


def test_workers_beyond_what_the_machine_has_room_for_leave():
    decision = decided(seen(50, busy=10, cap=6, cap_reason="memory"))
    assert (decision.wanted, decision.leave, decision.binding) == (6, 4, "memory")


def test_the_minimum_is_guaranteed_whatever_the_machine_says():
    assert decided(seen(50, cap=0, limits=Limits(2, 8))).wanted == 2


# --- guards -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("more", "decided_at"),
    [
        ({"trouble": "the store does not answer"}, 99.0),
        ({"measured_at": 90.0}, 99.0),
        ({"measured_at": 103.0}, 99.0),
        ({"oldest": float("nan")}, 99.0),
        ({}, 101.0),  # the clock went back
        ({}, 60.0),  # the machine slept
    ],
)
def test_doubtful_data_change_nothing(more, decided_at):
    memory = Memory(decided_at=decided_at)
    for policy in (TEN, ScaleByDepth(5)):
        decision, after = policy.decide(seen(50, busy=2, idle=3, **more), memory, 100.0)
        assert (decision.binding, decision.wanted, decision.keep, decision.leave) == ("hold", 5, 5, 0)
        assert after.decided_at == 100.0


def test_an_age_below_zero_lets_nobody_leave_but_work_is_still_seen():
    decision = decided(seen(50, busy=2, idle=3, oldest=-30.0))
    assert decision.keep == 5
    assert decision.wanted > 5


def test_starts_that_cost_too_much_run_out():
    limits = Limits(0, 10, start_cost=3.0)
    memory, started = Memory(), 0
    for second in range(60):  # workers that vanish at once
        decision, memory = TEN.decide(
            seen(40, limits=limits, measured_at=float(second)), memory, float(second)
        )
        started += decision.start
    assert 20 <= started <= 30
    assert decision.binding == "budget"


def test_jobs_that_take_absurdly_long_are_replaced_in_the_base():
    slow = Limits(0, 50, start_cost=60.0)
    plain = decided(seen(limits=slow, rate=5.0, busy=15))
    poisoned = decided(seen(limits=slow, rate=5.0, busy=15, poison=4))
    assert poisoned.base == plain.base + 4


# --- the others ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("waiting", "busy", "idle", "wanted"),
    [(0, 1, 2, 2), (4, 3, 0, 3), (5, 3, 0, 3), (6, 3, 0, 5), (10, 3, 0, 5), (11, 3, 0, 6), (500, 3, 0, 20)],
)
def test_by_depth_one_more_for_every_so_many(waiting, busy, idle, wanted):
    assert decided(seen(waiting, busy=busy, idle=idle), ScaleByDepth(5, 1)).wanted == wanted


def test_by_depth_does_not_count_those_on_their_way_twice():
    assert decided(seen(10, busy=3, starting=2), ScaleByDepth(5)).start == 0


def test_a_fixed_number_stays_within_its_bounds():
    assert decided(seen(), Fixed(7)).wanted == 7
    assert decided(seen(), Fixed(70)).wanted == 20
    assert decided(seen(cap=3), Fixed(7)).wanted == 3
    assert decided(seen(limits=Limits(4, 8)), Fixed(1)).wanted == 4


# --- for programs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", [TEN, ScaleByDepth(5), Fixed(7)])
@pytest.mark.parametrize("trouble", ["", "the store does not answer"])
def test_every_decision_tells_what_it_saw_and_what_becomes_of_the_pool(policy, trouble):
    decision = decided(seen(80, busy=3, idle=1, trouble=trouble), policy)
    assert (decision.current, decision.queue_depth, decision.busy_workers) == (4, 80, 3)
    assert decision.target == decision.wanted
    assert decision.action == ("stay" if trouble and not isinstance(policy, Fixed) else "grow")


def test_what_is_beyond_a_cap_shrinks_the_pool_and_what_is_enough_stays():
    shrinking = decided(seen(80, busy=9, cap=5, cap_reason="memory"))
    assert (shrinking.current, shrinking.target, shrinking.action) == (9, 5, "shrink")
    assert decided(seen(2, busy=9)).action == "stay"


# --- in words -----------------------------------------------------------------------------------------------
def test_a_decision_reads_as_a_sentence():
    grown = decided(seen(60, busy=4, oldest=3.1, cap=6, cap_reason="memory"))
    assert sentence("images", grown) == "images 4 -> 6: oldest wait 3.1 s of 10 s; capped by memory"
    assert sentence("images", decided(seen(busy=2))) == "images 2: nothing that may begin waits"
    waits = decided(seen(1, busy=2, oldest=1.0))
    assert (
        sentence("images", waits)
        == "images 2: oldest wait 1.0 s of 10 s; these workers begin what waits in time"
    )
    just_came = decided(seen(1, starting=1, oldest=0.03))
    assert sentence("images", just_came) == "images 1: these workers begin what waits in time"
    first = decided(seen(1, limits=Limits(0, 2)))
    assert sentence("images", first) == "images 0 -> 1: 1 job waits"
    assert (
        sentence("images", decided(seen(busy=2, trouble="the store is away")))
        == "images 2: held, the store is away"
    )


def test_a_decision_can_be_stored():
    assert json.loads(json.dumps(asdict(decided(seen(5, busy=1)))))["wanted"] >= 1


def test_a_pool_that_breaks_its_promise_is_the_more_urgent():
    late = decided(seen(30, busy=2, oldest=12.0, limits=Limits(1, 2)))
    calm = decided(seen(1, busy=2))
    assert urgency(late) > urgency(calm)


# --- properties ---------------------------------------------------------------------------------------------
numbers = st.integers(0, 200)
policies = st.one_of(
    st.builds(ScaleForWait, st.floats(0.001, 1e4)),
    st.builds(ScaleByDepth, st.integers(1, 100), st.integers(0, 10)),
    st.builds(Fixed, st.integers(0, 100)),
)


@st.composite
def observations(draw):
    least = draw(st.integers(0, 50))
    limits = Limits(
        least,
        draw(st.integers(max(1, least), 100)),
        draw(st.sampled_from([1, 8])),
        draw(st.integers(0, 3)),
        draw(st.floats(0, 100)),
    )
    tasks = tuple(
        TaskLoad(
            f"t{n}",
            draw(st.floats(0, 1e3)),
            draw(st.floats(1e-6, 1e5)),
            draw(numbers),
            draw(st.floats(0, 10)),
        )
        for n in range(draw(st.integers(0, 3)))
    )
    busy = draw(st.integers(0, 20))
    remaining = tuple(draw(st.lists(st.floats(1e-6, 1e5), min_size=busy, max_size=busy)))
    waiting = any(task.waiting for task in tasks)
    return Observation(
        limits,
        tasks,
        oldest=draw(st.floats(0, 1e6)) if waiting else 0.0,
        busy=busy,
        idle=draw(st.integers(0, 20)),
        starting=draw(st.integers(0, 20)),
        remaining=remaining,
        cap=draw(st.none() | st.integers(0, 100)),
        measured_at=100.0,
    )


@given(policies, observations())
def test_never_below_the_minimum_and_never_above_the_maximum(policy, observation):
    decision, _ = policy.decide(observation, Memory(), 100.0)
    limits = observation.limits
    assert limits.least <= decision.wanted <= limits.most
    assert decision.keep >= limits.least


@given(policies, observations(), st.integers(0, 100))
def test_nobody_is_started_only_to_stay(policy, observation, part):
    answer = policy.decide(observation, Memory(), 100.0)
    for decision, _ in (answer, recapped(answer, observation.limits, part, "part")):
        assert decision.keep <= max(decision.wanted, decision.alive - decision.leave)


@given(policies, observations())
def test_nobody_is_asked_to_leave_but_beyond_a_cap(policy, observation):
    decision, _ = policy.decide(observation, Memory(), 100.0)
    limits = observation.limits
    room = limits.most if observation.cap is None else min(observation.cap, limits.most)
    if isinstance(policy, Fixed):
        room = min(room, policy.workers)
    assert decision.leave == max(0, observation.alive - max(limits.least, room))


@given(st.builds(ScaleForWait, st.floats(0.001, 1e4)), observations(), st.integers(1, 1000))
def test_more_in_line_never_means_fewer_workers(policy, observation, more):
    if not observation.tasks:
        return
    before, _ = policy.decide(observation, Memory(), 100.0)
    first = observation.tasks[0]
    longer = observation._replace(
        tasks=(first._replace(waiting=first.waiting + more), *observation.tasks[1:])
    )
    after, _ = policy.decide(longer, Memory(), 100.0)
    assert after.wanted >= before.wanted


@given(policies, observations())
def test_the_same_values_give_the_same_answer(policy, observation):
    assert policy.decide(observation, Memory(), 100.0) == policy.decide(observation, Memory(), 100.0)


@given(policies, observations(), st.integers(0, 100), st.floats(0, 50))
def test_an_answer_under_another_cap_is_what_would_be_answered_to_it(policy, observation, part, starts):
    memory = Memory(decided_at=99.9, starts=starts if isinstance(policy, ScaleForWait) else None)
    late, known = recapped(policy.decide(observation, memory, 100.0), observation.limits, part, "part")
    cap = part if observation.cap is None else min(part, observation.cap)
    asked, remembered = policy.decide(observation._replace(cap=cap, cap_reason="part"), memory, 100.0)
    assert (late.wanted, late.leave, late.need) == (asked.wanted, asked.leave, asked.need)
    if late.leave or isinstance(policy, ScaleForWait):
        assert late.keep == asked.keep
    assert known.decided_at == remembered.decided_at
    assert known.starts == pytest.approx(remembered.starts)


def test_who_gets_less_than_it_wants_is_told_why():
    observation = seen(60, busy=4, oldest=3.1)
    answer = TEN.decide(observation, Memory(), 100.0)
    decision, _ = recapped(answer, observation.limits, 6, "the node's max_workers")
    assert sentence("images", decision).endswith(
        "4 -> 6: oldest wait 3.1 s of 10 s; capped by the node's max_workers"
    )
    assert recapped(answer, observation.limits, 20, "nothing")[0] == answer[0]
    assert recapped(answer, observation.limits, 0, "the node's max_workers")[0].binding == "min"
