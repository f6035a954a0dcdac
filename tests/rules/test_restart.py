"""Failed starts: tries back off to a bound, success forgets, and the pool gives up only with nobody left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.restart import (
    FIRST_DELAY,
    LONGEST_DELAY,
    PATIENCE,
    Starts,
    after_failure,
    after_success,
    is_degraded,
    may_start,
)

calm = settings(deadline=None)


def fail(times, now=0.0):
    starts = Starts()
    for _ in range(times):
        starts = after_failure(starts, "no luck", now)
    return starts


def test_the_first_delays():
    assert [fail(times).next_try_at for times in (1, 2, 3, 4)] == pytest.approx([0.05, 0.1, 0.2, 0.4])


@calm
@given(times=st.integers(1, 2000), now=st.integers(0, 10**6))
def test_the_delay_never_shrinks_and_stays_within_its_bounds(times, now):
    delay = fail(times, now).next_try_at - now
    longer = fail(times + 1, now).next_try_at - now
    assert FIRST_DELAY - 1e-9 <= delay <= longer + 1e-9
    assert longer <= LONGEST_DELAY


def test_the_delay_reaches_its_bound():
    assert fail(50).next_try_at == LONGEST_DELAY
    assert fail(100_000).next_try_at == LONGEST_DELAY


@calm
@given(times=st.integers(1, 50), now=st.floats(0, 1e6))
def test_a_try_is_made_at_the_named_time_and_not_before(times, now):
    starts = fail(times, now)
    assert not may_start(starts, now)
    assert may_start(starts, starts.next_try_at)
    assert starts.failures == times
    assert starts.cause == "no luck"


def test_a_success_forgets_every_failure():
    assert after_success() == Starts()
    assert may_start(after_success(), 0.0)
    assert after_failure(after_success(), "again", 0.0).failures == 1


@calm
@given(times=st.integers(0, 20), ready=st.integers(0, 5))
def test_a_pool_is_degraded_only_after_patience_with_nobody_ready(times, ready):
    assert is_degraded(fail(times), ready) == (times >= PATIENCE and ready == 0)
