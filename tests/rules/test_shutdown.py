"""The way down: one rung for each signal, no way back, all over and stored within grace."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.node.shutdown import (
    ASK,
    ASK_SHARED,
    ECHO,
    HURRY,
    LAST_WORD,
    LEAST,
    OVERDUE,
    Ladder,
    Phase,
    drain,
    end_step,
    ending,
    exit_code,
    gives_up_at,
    hurry,
    kill,
    phase,
    speaks_until,
    step_for,
)

calm = settings(deadline=None)
instants = st.floats(0, 1e6)
graces = st.floats(0, 1e5)
pushes = st.lists(
    st.tuples(st.sampled_from(["drain", "hurry", "kill"]), graces, st.floats(0, 100)), max_size=6
)

UP = Ladder()
DRAINING = drain(UP, 25.0, 0.0)
HURRYING = hurry(DRAINING, 10.0)
KILLING = kill(HURRYING, 10.5)


def push(ladder, how, grace, now):
    return {
        "drain": lambda: drain(ladder, grace, now),
        "hurry": lambda: hurry(ladder, now),
        "kill": lambda: kill(ladder, now),
    }[how]()


def climb(steps):
    """Every ladder on the way, with the time of its push."""
    ladder, now, seen = UP, 0.0, [(UP, 0.0)]
    for how, grace, later in steps:
        now += later
        ladder = push(ladder, how, grace, now)
        seen.append((ladder, now))
    return seen


# --- deadlines -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (0.0, Phase.DRAINING),
        (21.9, Phase.DRAINING),
        (22.0, Phase.TERMINATING),
        (23.9, Phase.TERMINATING),
        (24.0, Phase.KILLING),
        (1e9, Phase.KILLING),
    ],
)
def test_the_default_grace_of_25_seconds(now, expected):
    assert phase(DRAINING, now) is expected


def test_a_node_that_nobody_stops_accepts_for_ever():
    assert phase(UP, 1e12) is Phase.ACCEPTING
    assert gives_up_at(UP) == float("inf")


def test_no_grace_kills_at_once():
    assert phase(drain(UP, 0.0, 7.0), 7.0) is Phase.KILLING


def test_a_hurried_job_is_told_at_once_and_killed_a_second_later():
    assert phase(HURRYING, 10.0) is Phase.TERMINATING
    assert phase(HURRYING, 10.0 + HURRY) is Phase.KILLING


def test_a_second_drain_does_not_prolong_the_first():
    assert drain(DRAINING, 1000.0, 5.0)[2:] == DRAINING[2:]
    assert drain(DRAINING, 1.0, 5.0).kill_at < 6.0


@calm
@given(grace=graces, now=instants)
def test_all_is_over_within_grace(grace, now):
    ladder = drain(UP, grace, now)
    assert now <= ladder.terminate_at <= ladder.kill_at <= now + grace
    assert ladder.kill_at <= speaks_until(ladder) <= ladder.over_at == now + max(grace, LEAST)
    assert ladder.kill_at - ladder.terminate_at <= LAST_WORD + 1e-6
    assert ladder.terminate_at - now >= grace * 0.7 - 1e-6, "most of grace is for finishing"


@calm
@given(steps=pushes, later=st.lists(st.floats(0, 1e6), min_size=2, max_size=2))
def test_no_push_ever_leads_back(steps, later):
    seen = climb(steps)
    for (before, _), (after, _) in itertools.pairwise(seen):
        assert after.rung >= before.rung
        assert after.kill_at <= before.kill_at
        assert after.terminate_at <= before.terminate_at
        assert after.over_at <= before.over_at
        assert after.kill_at <= speaks_until(after) <= after.over_at
    ladder, now = seen[-1]
    first, second = sorted(now + wait for wait in later)
    assert phase(ladder, first) <= phase(ladder, second)


def test_whoever_hurries_or_kills_does_not_wait_for_a_store_that_is_away():
    assert (DRAINING.over_at, HURRYING.over_at, KILLING.over_at) == (25.0, 12.0, 12.0)
    assert (speaks_until(DRAINING), speaks_until(HURRYING), speaks_until(KILLING)) == (24.5, 11.5, 11.25)


def test_a_node_that_does_not_end_is_left_some_seconds_after_its_last_deadline():
    assert gives_up_at(DRAINING) == DRAINING.kill_at + OVERDUE
    assert gives_up_at(KILLING) == 10.5 + OVERDUE


# --- signals ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("signal", "steps"),
    [
        ("SIGTERM", ["drain", "hurry", "kill", "kill"]),
        ("SIGINT", ["drain", "hurry", "kill", "kill"]),
        ("SIGQUIT", ["kill", "kill", "kill", "kill"]),
        ("SIGHUP", ["reload", None, None, None]),
        ("SIGTSTP", ["hold", None, None, None]),
        ("SIGUSR1", ["hold", None, None, None]),
        ("SIGCONT", ["go on", None, None, None]),
        ("SIGWINCH", [None, None, None, None]),
    ],
)
def test_what_each_signal_leads_to_on_each_rung(signal, steps):
    assert [step_for(signal, ladder, 20.0) for ladder in (UP, DRAINING, HURRYING, KILLING)] == steps


@pytest.mark.parametrize("signal", ["SIGTERM", "SIGINT"])
def test_one_ctrl_c_that_arrives_twice_is_one(signal):
    assert step_for(signal, DRAINING, ECHO / 2) is None
    assert step_for(signal, DRAINING, ECHO) == "hurry"
    assert step_for("SIGQUIT", DRAINING, ECHO / 2) == "kill"


def test_a_node_drained_by_its_program_is_hurried_by_the_first_signal():
    assert step_for("SIGTERM", drain(UP, 25.0, 0.0), 3.0) == "hurry"


@pytest.mark.parametrize(
    ("ladder", "signal", "code"),
    [
        (DRAINING, 15, 0),
        (HURRYING, 2, 130),
        (KILLING, 15, 143),
        (KILLING, 3, 131),
        (KILLING, None, 0),
        (UP, None, 1),
    ],
)
def test_the_exit_code_tells_a_drain_from_a_cut(ladder, signal, code):
    assert exit_code(ladder, signal) == code


# --- one running job -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("elapsed", "step"),
    [(0.0, "ask"), (ASK - 0.1, "ask"), (ASK, "terminate"), (ASK + LAST_WORD, "kill"), (1e9, "kill")],
)
def test_a_cancelled_job_is_asked_then_terminated_then_killed(elapsed, step):
    assert end_step(ending(0, 100.0), 100.0 + elapsed) == step


@pytest.mark.parametrize(("elapsed", "step"), [(0.0, "ask"), (ASK + LAST_WORD, "ask"), (ASK_SHARED, "kill")])
def test_neighbours_in_the_worker_buy_a_cancelled_job_time(elapsed, step):
    assert end_step(ending(3, 100.0), 100.0 + elapsed) == step


def test_a_job_is_not_touched_before_it_is_to_be_asked():
    assert end_step(ending(0, 100.0), 99.0) == "wait"
