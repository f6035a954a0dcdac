"""Continuous tasks come back, by growing steps, within a limit of starts in any window."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import MICROSECONDS
from millpond.rules.recurring.continuous import SPREAD, RestartRule, Restarts, ended, next_start, started

calm = settings(deadline=None)
S = MICROSECONDS
RULE = RestartRule(start_limit=1000)


def run(restarts, rule, begin, length):
    return ended(started(restarts, rule, begin), rule, begin + length)


def test_it_is_started_at_once_the_first_time():
    assert next_start(Restarts(), RULE, "feed").reason == "first"
    assert next_start(Restarts(), RULE, "feed").at == 0


def test_pauses_grow_by_steps_up_to_a_bound():
    restarts, now, pauses = Restarts(), 0, []
    for _ in range(12):
        restarts = run(restarts, RULE, now, S)
        following = next_start(restarts, RULE, "feed")
        pauses.append((following.at - now - S) / S)
        assert following.reason == "back-off"
        now = following.at
    nominal = [min(300.0, 2.0**step) for step in range(12)]
    assert all(low <= pause <= low * (1 + SPREAD) for low, pause in zip(nominal, pauses, strict=True))


def test_a_run_that_lasted_forgets_the_short_ones():
    restarts = Restarts()
    for _ in range(5):
        restarts = run(restarts, RULE, 0, S)
    stable = run(restarts, RULE, 0, 60 * S)
    assert next_start(stable, RULE, "feed").reason == "stable"
    assert next_start(stable, RULE, "feed").at <= 60 * S + round(1.1 * S)


def test_each_attempt_within_a_tick_is_a_start():
    """A process that crashes is started again within its tick, as often as `retry` says."""
    rule = RestartRule(first=0.1, factor=1.0, start_limit=10, window=600.0, at_once=3)
    restarts, now = Restarts(), 0
    starts: list[int] = []
    while now < 3600 * S:
        attempts = (now, now + S, now + 2 * S)
        starts += attempts
        restarts = ended(started(restarts, rule, now), rule, now + 3 * S, attempts)
        now = next_start(restarts, rule, "feed").at
    assert len(starts) > 30
    for first in starts:
        assert sum(first <= start < first + 600 * S for start in starts) <= 10


def test_the_pause_grows_with_each_attempt_and_only_the_last_may_have_lasted():
    restarts = started(Restarts(), RULE, 0)
    assert ended(restarts, RULE, 3 * S, (0, S, 2 * S)).short == 3
    assert ended(restarts, RULE, 100 * S, (0, S, 2 * S)).short == 0
    assert ended(restarts, RULE, S).short == 1


def test_time_spent_in_line_does_not_make_a_run_a_long_one():
    restarts = started(Restarts(), RULE, 0)
    assert ended(restarts, RULE, 100 * S, began=(99 * S,)).short == 1
    assert ended(restarts, RULE, 100 * S, began=(10 * S,)).short == 0


def test_at_its_start_limit_it_rests_until_the_window_has_room_and_then_comes_back():
    rule = RestartRule(first=0.1, factor=1.0, start_limit=3, window=600.0)
    restarts = Restarts()
    for begin in (0, 10 * S, 20 * S):
        restarts = run(restarts, rule, begin, S)
    assert next_start(restarts, rule, "feed") == (600 * S, "start limit")
    restarts = run(restarts, rule, 600 * S, S)
    assert next_start(restarts, rule, "feed") == (610 * S, "start limit")


@calm
@given(
    lengths=st.lists(st.integers(0, 100 * S), max_size=60),
    limit=st.integers(1, 5),
    window=st.integers(1, 300),
)
def test_no_window_ever_holds_more_starts_than_the_limit_and_it_always_comes_back(lengths, limit, window):
    rule = RestartRule(first=0.5, longest=20.0, start_limit=limit, window=float(window))
    restarts, begins, begin = Restarts(), [], 0
    for length in lengths:
        begins.append(begin)
        restarts = run(restarts, rule, begin, length)
        restarts = msgspec.json.decode(msgspec.json.encode(restarts), type=Restarts)
        begin = next_start(restarts, rule, "feed").at
        assert begins[-1] + length < begin <= begins[-1] + length + (20 * 2 + window) * S
    for place, first in enumerate(begins[:-limit] if limit else []):
        assert begins[place + limit] - first >= window * S


@pytest.mark.parametrize("name", ["feed", "other"])
def test_pauses_are_the_same_every_time_they_are_asked_for(name):
    restarts = run(Restarts(), RULE, 0, S)
    assert next_start(restarts, RULE, name) == next_start(restarts, RULE, name)
