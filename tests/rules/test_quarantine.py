"""When an end that the store does not take is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.jobs.quarantine import (
    HURRY,
    LONGEST,
    LONGEST_DEFERRED,
    MOST,
    WORTH_TELLING,
    due_at,
    is_worth_telling,
    pause,
)


@pytest.mark.parametrize(
    ("tries", "took", "is_deferred", "longest"),
    [
        (1, 0.01, False, 1.0),
        (2, 0.01, False, 2.0),
        (4, 0.01, False, 8.0),
        (50, 0.01, False, LONGEST),
        (1, 35.0, False, 1.0),  # the store may have been locked, and be free again
        (2, 5.0, False, 50.0),  # a tenth of the time, at most
        (2, 35.0, False, MOST),
        (1, 0.001, True, 0.02),
        (4, 0.001, True, 0.16),
        (50, 0.001, True, LONGEST_DEFERRED),
    ],
)
def test_each_pause_is_longer_than_the_one_before_up_to_a_bound(tries, took, is_deferred, longest):
    assert pause(tries, took, 1.0, is_deferred=is_deferred) == pytest.approx(longest)
    assert pause(tries, took, 0.0, is_deferred=is_deferred) == pytest.approx(longest / 2)


@given(st.integers(1, 10_000), st.floats(0, 1000), st.floats(0, 1), st.booleans())
def test_no_pause_is_beyond_its_bound(tries, took, spread, is_deferred):
    assert 0 < pause(tries, took, spread, is_deferred=is_deferred) <= MOST


def test_a_node_that_stops_tries_soon():
    assert due_at(100.0, 60.0, hurry=False) == 160.0
    assert due_at(100.0, 60.0, hurry=True) == 100.0 + HURRY
    assert due_at(100.0, 0.1, hurry=True) == 100.1


def test_a_lock_that_is_held_for_a_moment_is_not_worth_a_word():
    assert is_worth_telling(0.0, is_deferred=False)
    assert not is_worth_telling(WORTH_TELLING - 1, is_deferred=True)
    assert is_worth_telling(WORTH_TELLING, is_deferred=True)
