"""Planning: every due instant gets one verdict, by misfire, deadline and overlap; what planners got wrong."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.job import MICROSECONDS
from millpond.rules.recurring.cadence import between, count, cron, every, next_after, spread
from millpond.rules.recurring.due_ticks import (
    REASONS,
    Activity,
    Due,
    Plan,
    Planned,
    Policy,
    all_missed,
    expires_after,
    plan,
    policy,
    reason_text,
    wait_until,
)

calm = settings(deadline=None)
S = MICROSECONDS
MINUTE, DAY = 60 * S, 86_400 * S
START = round(datetime(2026, 5, 4, tzinfo=UTC).timestamp()) * S
IDLE = Activity()


def due(cadence=None, after=START, offset=0, **options):
    return Due(cadence or every("60s"), policy(**options), offset, after)


def verdicts(made: Plan):
    return [((tick.at - START) // S, tick.reason or "run") for tick in made.ticks]


# --- what is due ----------------------------------------------------------------------------------------
def test_nothing_is_due_before_its_instant():
    assert plan(due(), START + MINUTE - 1, IDLE) == Plan((), START, START + MINUTE)


def test_an_instant_is_due_when_it_comes():
    made = plan(due(), START + MINUTE, IDLE)
    assert made.ticks == (Planned(START + MINUTE, START + MINUTE, True),)
    assert (made.cursor, made.next_due_at) == (START + MINUTE, START + 2 * MINUTE)


def test_jitter_moves_when_a_tick_is_due_and_not_its_name():
    late = due(offset=7 * S)
    assert plan(late, START + MINUTE + 6 * S, IDLE).ticks == ()
    made = plan(late, START + MINUTE + 7 * S, IDLE)
    assert made.ticks == (Planned(START + MINUTE, START + MINUTE + 7 * S, True),)
    assert made.cursor == START + MINUTE
    assert made.next_due_at == START + 2 * MINUTE + 7 * S


# --- misfire --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("misfire", "late", "expected"),
    [
        ("latest", 0, [(60, "missed"), (120, "missed"), (180, "run")]),
        ("latest", 59, [(60, "missed"), (120, "missed"), (180, "run")]),
        ("skip", 59, [(60, "missed"), (120, "missed"), (180, "run")]),
        (all_missed(2), 0, [(60, "missed"), (120, "run"), (180, "run")]),
        (all_missed(9), 30, [(60, "run"), (120, "run"), (180, "run")]),
    ],
)
def test_what_misfire_makes_of_instants_that_nobody_planned(misfire, late, expected):
    overlap = "allow" if not isinstance(misfire, str) else "skip"
    made = plan(due(misfire=misfire, overlap=overlap), START + 180 * S + late * S, IDLE)
    assert verdicts(made) == expected


@pytest.mark.parametrize(
    ("misfire", "deadline", "late", "expected"),
    [
        ("latest", None, 3600, "run"),
        ("latest", None, 3601, "late"),
        ("latest", 10, 10, "run"),
        ("latest", 10, 11, "late"),
        ("latest", "12h", 43_200, "run"),
        ("skip", None, 60, "run"),
        ("skip", None, 61, "late"),
        ("skip", "5m", 300, "run"),
    ],
)
def test_how_late_a_daily_tick_may_be(misfire, deadline, late, expected):
    made = plan(due(every("1d"), misfire=misfire, start_deadline=deadline), START + DAY + late * S, IDLE)
    assert verdicts(made) == [(86_400, expected)]


def test_the_deadline_bounds_how_far_back_missed_ticks_are_made_up_for():
    made = plan(due(misfire=all_missed(10), overlap="queue", start_deadline="150s"), START + 300 * S, IDLE)
    assert verdicts(made) == [(60, "late"), (120, "late"), (180, "run"), (240, "run"), (300, "run")]


# --- overlap --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("overlap", "activity", "expected"),
    [
        ("skip", Activity(), "run"),
        ("skip", Activity(running=1), "overlap"),
        ("skip", Activity(waiting=1), "overlap"),
        ("queue", Activity(running=1, waiting=9), "run"),
        ("queue", Activity(running=1, waiting=10), "waiting"),
        ("allow", Activity(running=500), "run"),
        ("allow", Activity(waiting=10), "waiting"),
    ],
)
def test_what_overlap_makes_of_a_tick_while_others_have_not_ended(overlap, activity, expected):
    assert verdicts(plan(due(overlap=overlap), START + MINUTE, activity)) == [(60, expected)]


def test_as_many_may_wait_as_missed_ones_may_be_made_up_for():
    made = plan(due(misfire=all_missed(30), overlap="queue"), START + 60 * MINUTE, IDLE)
    assert sum(tick.is_run for tick in made.ticks) == 30


def test_ticks_of_one_round_count_against_each_other():
    made = plan(due(misfire=all_missed(5), overlap="queue", max_waiting=2), START + 300 * S, IDLE)
    assert verdicts(made) == [(60, "run"), (120, "run"), (180, "waiting"), (240, "waiting"), (300, "waiting")]


def test_a_closed_task_runs_nothing_and_says_why():
    made = plan(due(), START + 120 * S, IDLE, closed="disabled")
    assert verdicts(made) == [(60, "disabled"), (120, "disabled")]
    assert made.cursor == START + 120 * S


# --- bounds ---------------------------------------------------------------------------------------------
def test_ten_years_away_make_a_hundred_rows_and_one_of_them_tells_of_the_millions():
    made = plan(due(every("1s")), START + 3650 * DAY, IDLE)
    assert len(made.ticks) == 101
    told = made.ticks[0]
    assert (told.reason, told.since) == ("missed", START + S)
    assert told.folded + len(made.ticks) == 3650 * 86_400
    assert made.ticks[-1].is_run


def test_one_row_is_enough_for_a_task_that_rested_for_a_year():
    cadence = cron("*/5 * * * *", "Europe/Berlin")
    made = plan(due(cadence), START + 365 * DAY, IDLE, closed="breaker", rows=1)
    assert len(made.ticks) == 1
    assert made.ticks[0].folded == count(cadence, START, START + 365 * DAY) - 1
    assert made.cursor == made.ticks[0].at


CADENCES = [every("60s"), every("7s"), cron("*/3 * * * *"), cron("*/10 2 * * *", "Europe/Berlin")]
AUTUMN = START + 174 * DAY  # with a fold in the days that follow
misfires = st.sampled_from(["skip", "latest", all_missed(3), all_missed(40)])
policies = st.builds(policy, misfires, overlap=st.just("queue"))
dues = st.builds(Due, st.sampled_from(CADENCES), policies, st.integers(0, MINUTE), st.just(AUTUMN))
activities = st.builds(Activity, st.integers(0, 2), st.integers(0, 11))


@calm
@given(dues, st.integers(0, 3 * DAY), activities, st.sampled_from([None, "disabled"]), st.integers(0, 30))
def test_every_instant_is_accounted_for_exactly_once(asked, away, activity, closed, rows):
    cadence, _, offset, after = asked
    now = AUTUMN + away
    made = plan(asked, now, activity, closed, rows)
    instants = between(cadence, after, now - offset, 100_000)
    assert [tick.at for tick in made.ticks] == sorted({tick.at for tick in made.ticks})
    assert {tick.at for tick in made.ticks} <= set(instants)
    assert sum(1 + tick.folded for tick in made.ticks) == len(instants)
    assert made.cursor == (instants[-1] if instants else after)
    skipped = [tick for tick in made.ticks if not tick.is_run]
    assert len(skipped) <= max(rows, 1)
    assert all(tick.reason in REASONS for tick in skipped)
    assert sum(tick.is_run for tick in made.ticks) <= (0 if closed else max(40, 1))
    bearers = [tick for tick in made.ticks if tick.folded]
    assert [tick.since for tick in bearers] == [instants[0] for _ in bearers]
    assert made.next_due_at == next_after(cadence, made.cursor) + offset


@calm
@given(steps=st.lists(st.integers(0, 10 * MINUTE), max_size=60), offset=st.integers(0, 90 * S))
def test_looking_often_or_seldom_plans_the_same_instants(steps, offset):
    """Each once and in order, however the rounds fall; jitter or not."""
    cursor, seen, now = START, [], START
    for step in steps:
        now += step
        made = plan(due(after=cursor, offset=offset), now, IDLE)
        seen += [tick.at for tick in made.ticks]
        cursor = made.cursor
    assert seen == between(every("60s"), START, now - offset, 10_000)


# --- what planners got wrong ----------------------------------------------------------------------------
def test_thousands_of_launches_by_evaluating_the_same_instant_again():
    now, cursor, launched = START + MINUTE, START, 0
    for _ in range(1000):
        made = plan(due(after=cursor), now, IDLE)
        cursor, launched = made.cursor, launched + len(made.ticks)
    assert launched == 1


def test_early_by_a_hair_and_again_on_time():
    """A clock that drifted back after a tick saw the same minute again."""
    made = plan(due(), START + MINUTE, IDLE)
    for drifted in range(-5, 6):
        assert plan(due(after=made.cursor), START + MINUTE + drifted, IDLE).ticks == ()


def test_near_zero_delay_lost_or_doubled_the_tick():
    before = plan(due(), START + MINUTE - 1, IDLE)
    assert before.ticks == ()
    assert before.next_due_at == START + MINUTE
    exactly = plan(due(after=before.cursor), START + MINUTE, IDLE)
    assert len(exactly.ticks) == 1
    assert plan(due(after=exactly.cursor), START + MINUTE + 1, IDLE).ticks == ()


def test_changing_the_schedule_ran_what_had_run():
    made = plan(due(every("60s")), START + 2 * MINUTE, IDLE)
    changed = plan(due(every("30s"), after=made.cursor), START + 2 * MINUTE, IDLE)
    assert changed.ticks == ()
    assert changed.next_due_at == START + 2 * MINUTE + 30 * S


def test_interval_longer_than_any_uptime_never_fired():
    """Nodes live an hour, the task is due every day: the cursor counts, not the start of the process."""
    cursor, ran = START, []
    for hour in range(1, 24 * 3):
        made = plan(due(every("1d"), after=cursor), START + hour * 3600 * S, IDLE)
        cursor = made.cursor
        ran += verdicts(made)
    assert ran == [(86_400, "run"), (2 * 86_400, "run")]


def test_yearly_task_that_never_ran_was_never_due():
    registered = round(datetime(2026, 12, 31, 23, tzinfo=UTC).timestamp()) * S
    made = plan(due(cron("@yearly"), after=registered), registered + 2 * 3600 * S, IDLE)
    assert [tick.is_run for tick in made.ticks] == [True]


def test_newly_registered_task_ran_for_the_time_before_it_existed():
    assert plan(due(every("1d")), START + 3600 * S, IDLE).ticks == ()


def test_instant_lost_between_two_leaders():
    """The old one planned until 00:59, the new one looks for the first time at 01:03."""
    old = plan(due(), START + 59 * S, IDLE)
    assert verdicts(plan(due(after=old.cursor), START + 63 * S, IDLE)) == [(60, "run")]


def test_instant_lost_because_it_fell_into_the_start_of_the_node():
    cursor = START + 60 * MINUTE - 1
    made = plan(due(cron("0 * * * *"), after=cursor), START + 60 * MINUTE + 40 * S, IDLE)
    assert verdicts(made) == [(3600, "run")]


def test_grace_of_one_second_dropped_ticks_on_a_busy_machine():
    assert verdicts(plan(due(misfire="skip"), START + MINUTE + 5 * S, IDLE)) == [(60, "run")]


def test_too_many_missed_instants_stopped_the_schedule_for_good():
    made = plan(due(), START + 1000 * MINUTE, IDLE)
    assert made.ticks[-1].is_run
    assert made.next_due_at == START + 1001 * MINUTE


def test_what_came_due_while_disabled_ran_at_once_when_enabled():
    asleep = plan(due(), START + 10 * MINUTE, IDLE, closed="disabled")
    assert plan(due(after=asleep.cursor), START + 10 * MINUTE + S, IDLE).ticks == ()


def test_wrong_clock_fired_days_too_early_and_again_when_it_was_right():
    ahead = plan(due(every("1d")), START + 9 * DAY, IDLE)
    assert ahead.cursor == START + 9 * DAY
    for day in range(9):
        assert plan(due(every("1d"), after=ahead.cursor), START + day * DAY, IDLE).ticks == ()
    assert plan(due(every("1d"), after=ahead.cursor), START, IDLE).next_due_at == START + 10 * DAY


def test_random_delay_counted_from_each_start_put_the_tick_off_for_ever():
    offset = spread("report", 3600.0)
    day = due(every("1d"), offset=offset)
    dues = {plan(day, START + restart * 60 * S, IDLE).next_due_at for restart in range(100)}
    assert dues == {START + DAY + offset}


# --- the policy -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"misfire": "last"}, "misfire must be one of .*did you mean 'latest'"),
        ({"misfire": None}, "misfire must be one of"),
        ({"overlap": "queue_one"}, "overlap must be one of .*did you mean 'queue'"),
        ({"start_deadline": "soon"}, "start_deadline must be a duration"),
        ({"max_waiting": 0}, "max_waiting"),
        ({"max_waiting": True}, "max_waiting"),
        ({"misfire": "all"}, "add overlap='queue'"),
    ],
)
def test_a_bad_policy_is_refused_with_the_good_choices(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        policy(**options)


@pytest.mark.parametrize("limit", [0, -1, 1001, 2.5, "3", True, None])
def test_missed_ticks_are_made_up_for_in_bounds(limit):
    with pytest.raises(OptionError, match="from 1 to 1000"):
        all_missed(limit)


def test_a_tick_expires_in_line_only_by_an_explicit_deadline():
    assert expires_after(Policy()) is None
    assert expires_after(policy(start_deadline="90s")) == 90.0


def test_a_tick_waits_for_others_until_the_next_one_is_due():
    assert wait_until(due(offset=5 * S), START) == START + MINUTE + 5 * S
    assert wait_until(due(), START, wait=10.0) == START + 10 * S


def test_every_reason_reads_as_a_sentence():
    for reason, instants in itertools.product(REASONS, (1, 20)):
        assert reason_text(reason, instants).endswith(f"kipped: {REASONS[reason]}.")
