"""Failed starts: tries back off to a bound, success forgets, and the pool gives up only with nobody left."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.pool.restart import (
    FIRST_DELAY,
    LONGEST_DELAY,
    MOST_AT_ONCE,
    MOST_RESERVED,
    PATIENCE,
    Starts,
    after_failure,
    after_success,
    is_crowded,
    is_degraded,
    may_start,
    starts_now,
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


# --- many at once ------------------------------------------------------------------------------------
def test_a_pool_with_workers_that_are_starting_is_not_degraded():
    assert not is_degraded(fail(PATIENCE), 0, starting=300)


def test_few_workers_are_asked_for_at_once_and_fewer_where_descriptors_are_short():
    assert starts_now(500, 0, 1 << 20) == MOST_AT_ONCE
    assert starts_now(500, MOST_AT_ONCE - 3, 1 << 20) == 3
    assert starts_now(500, MOST_AT_ONCE + 1, 1 << 20) == 0
    assert starts_now(2, 0, 1 << 20) == 2
    assert starts_now(500, 0, 64) == 4
    assert starts_now(500, 0, 3) == 1


def test_an_eighth_of_the_descriptors_is_left_to_the_program():
    assert not is_crowded(223, 256)
    assert is_crowded(224, 256)
    assert is_crowded((1 << 20) - MOST_RESERVED, 1 << 20)
