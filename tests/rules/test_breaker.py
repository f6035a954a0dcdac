"""The breaker of a recurring task: opens on failed ticks in a row, probes once at a time, obeys people."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import MICROSECONDS, JobState
from millpond.rules.recurring.breaker import (
    LONGEST_REST,
    SPREAD,
    Breaker,
    BreakerRule,
    TickEnd,
    after_tick,
    begin_probe,
    disable,
    enable,
    gate,
    phase,
    result_of,
)

calm = settings(deadline=None)
S = MICROSECONDS
PLAIN = BreakerRule()
PROBED = BreakerRule(probe_after=60.0)


def end(result, at=0, started_at=None, error="ValueError: no"):
    return TickEnd(at, at if started_at is None else started_at, result, error if result == "failure" else "")


def after(results, rule=PLAIN, breaker=None, now=0):
    breaker = breaker or Breaker()
    for result in results:
        breaker = after_tick(breaker, rule, end(result), "task", now)
    return breaker


def opened(rule=PROBED, now=0):
    return after(["failure"] * rule.max_failures, rule, now=now)


@pytest.mark.parametrize(
    ("state", "reason", "result"),
    [
        (JobState.COMPLETED, None, "success"),
        (JobState.DEAD, "failed", "failure"),
        (JobState.DEAD, "timeout", "failure"),
        (JobState.DEAD, "crashed", "failure"),
        (JobState.DEAD, "result", "failure"),
        (JobState.DEAD, "lost", "neutral"),
        (JobState.DEAD, "preempted", "neutral"),
        (JobState.DEAD, "infrastructure", "neutral"),
        (JobState.DEAD, "resources", "neutral"),
        (JobState.DEAD, "damaged", "neutral"),
        (JobState.CANCELLED, "cancelled", "neutral"),
        (JobState.CANCELLED, "expired", "neutral"),
        (JobState.CANCELLED, "dependency", "neutral"),
    ],
)
def test_what_the_end_of_a_tick_says_about_the_task(state, reason, result):
    assert result_of(state, reason) == result


# --- opening --------------------------------------------------------------------------------------------
def test_five_failed_ticks_in_a_row_open_it():
    assert phase(after(["failure"] * 4), 0) == "closed"
    breaker = after(["failure"] * 5)
    assert phase(breaker, 0) == "open"
    assert gate(breaker, 0) == "breaker"
    assert breaker.error == "ValueError: no"


def test_one_success_in_between_begins_the_count_anew():
    assert phase(after(["failure"] * 4 + ["success"] + ["failure"] * 4), 0) == "closed"


def test_what_says_nothing_about_the_task_neither_counts_nor_forgives():
    assert after(["neutral"] * 100) == Breaker()
    assert phase(after(["failure", "neutral"] * 5), 0) == "open"


def test_the_number_of_failures_is_the_users_choice():
    assert phase(after(["failure"], BreakerRule(max_failures=1)), 0) == "open"
    assert phase(after(["failure"] * 1000, BreakerRule(max_failures=0)), 0) == "closed"


def test_without_probing_it_rests_until_somebody_enables_it():
    breaker = opened(PLAIN)
    assert gate(breaker, 10**18) == "breaker"
    assert enable() == Breaker()
    assert gate(enable(), 0) == "run"


# --- probing --------------------------------------------------------------------------------------------
def test_after_its_rest_one_tick_is_the_probe_and_others_are_turned_away():
    breaker = opened()
    assert breaker.probe_at is not None
    assert gate(breaker, breaker.probe_at - 1) == "breaker"
    assert gate(breaker, breaker.probe_at) == "probe"
    probing = begin_probe(breaker, 70 * S)
    assert phase(probing, 70 * S) == "half-open"
    assert gate(probing, 10**18) == "breaker"


def test_a_probe_that_succeeds_closes_it_and_forgets():
    probing = begin_probe(opened(), 70 * S)
    assert after_tick(probing, PROBED, end("success", at=70 * S), "task", 71 * S) == Breaker()


def test_a_probe_that_fails_makes_the_next_rest_longer():
    breaker, rests = opened(), []
    now = 0
    for _ in range(14):
        assert breaker.probe_at is not None
        rests.append((breaker.probe_at - now) / S)
        now = breaker.probe_at
        breaker = after_tick(begin_probe(breaker, now), PROBED, end("failure", at=now), "task", now)
    nominal = [min(60.0 * 2**round_, LONGEST_REST) for round_ in range(14)]
    assert all(least <= rest <= least * (1 + SPREAD) for least, rest in zip(nominal, rests, strict=True))
    assert phase(breaker, now) == "open"
    assert breaker.opened_at == 0, "since when it does not work"


def test_rests_are_spread_by_name_and_always_the_same():
    def rest(name):
        return after_tick(after(["failure"] * 4, PROBED), PROBED, end("failure"), name, 0).probe_at

    assert rest("a") == rest("a")
    assert len({rest(f"task-{number}") for number in range(50)}) == 50


def test_a_rest_asked_to_be_longer_than_a_day_is():
    weekly = BreakerRule(probe_after=7 * LONGEST_REST)
    breaker = opened(weekly)
    assert breaker.probe_at is not None
    assert breaker.probe_at >= 7 * LONGEST_REST * S


def test_a_probe_that_was_lost_says_nothing_and_the_next_tick_probes():
    breaker = opened()
    probing = begin_probe(breaker, 70 * S)
    again = after_tick(probing, PROBED, end("neutral", at=70 * S), "task", 80 * S)
    assert again == breaker
    assert gate(again, 80 * S) == "probe"


def test_more_than_one_success_may_be_asked_for():
    careful = BreakerRule(probe_after=60.0, successes=2)
    now = 70 * S
    once = after_tick(begin_probe(opened(careful), now), careful, end("success", at=now), "task", now)
    assert gate(once, now) == "probe"
    failed = after_tick(begin_probe(once, now), careful, end("failure", at=now), "task", now)
    assert (failed.successes, phase(failed, now)) == (0, "open")
    twice = after_tick(begin_probe(once, now + 1), careful, end("success", at=now + 1), "task", now)
    assert twice == Breaker()


# --- ticks that are not the probe -----------------------------------------------------------------------
def test_a_success_that_began_before_it_opened_does_not_close_it():
    breaker = opened(now=100 * S)
    assert after_tick(breaker, PROBED, end("success", at=1, started_at=50 * S), "task", 101 * S) == breaker


def test_a_run_by_hand_that_succeeds_closes_it():
    breaker = opened(PLAIN, now=100 * S)
    assert after_tick(breaker, PLAIN, end("success", at=1, started_at=150 * S), "task", 151 * S) == Breaker()


def test_a_run_by_hand_that_fails_does_not_make_the_rest_longer():
    breaker = opened()
    failed = after_tick(breaker, PROBED, end("failure", at=5), "task", 5)
    assert (failed.probe_at, failed.rounds) == (breaker.probe_at, breaker.rounds)


# --- people ---------------------------------------------------------------------------------------------
def test_a_task_disabled_by_hand_does_not_run():
    breaker = disable(Breaker(), 7, "ada")
    assert gate(breaker, 10**18) == "disabled"
    assert disable(breaker, 99, "bob") == breaker, "twice is once"


@calm
@given(results=st.lists(st.sampled_from(["success", "failure", "neutral"]), max_size=40), probe=st.booleans())
def test_no_outcome_ever_undoes_what_a_person_decided(results, probe):
    rule = PROBED if probe else PLAIN
    breaker, now = disable(Breaker(), 0, "ada"), 0
    for result in results:
        now += 100_000 * S
        if phase(breaker, now) == "half-open" and breaker.probing is None:
            breaker = begin_probe(breaker, now)
        breaker = after_tick(breaker, rule, end(result, at=now), "task", now)
        assert gate(breaker, now + 10**15) == "disabled"
        assert (breaker.disabled_at, breaker.disabled_by) == (0, "ada")


@calm
@given(results=st.lists(st.sampled_from(["success", "failure", "neutral"]), max_size=60))
def test_the_state_survives_json_and_opens_exactly_after_five_in_a_row(results):
    breaker, in_a_row = Breaker(), 0
    for number, result in enumerate(results):
        breaker = after_tick(breaker, PLAIN, end(result, at=number), "task", number)
        breaker = msgspec.json.decode(msgspec.json.encode(breaker), type=Breaker)
        in_a_row = {"success": 0, "failure": in_a_row + 1, "neutral": in_a_row}[result]
        if in_a_row == 5:
            assert phase(breaker, number) == "open"
            return
        assert phase(breaker, number) == "closed"
