"""After a clock that was ahead: nothing waits for the time it showed, and nothing is forgotten."""

from __future__ import annotations

from millpond.job import MICROSECONDS
from millpond.rules.recurring import correction
from millpond.rules.recurring.breaker import Breaker, BreakerRule
from millpond.rules.recurring.continuous import Restarts

S = MICROSECONDS
NOW = 1_000_000 * S
YEARS = NOW + 10 * 365 * 86_400 * S


def test_only_what_is_well_ahead_was_written_by_a_wrong_clock():
    assert not correction.is_ahead(None, NOW)
    assert not correction.is_ahead(NOW + 60 * S, NOW)
    assert correction.is_ahead(NOW + 60 * S + 1, NOW)


def test_planning_goes_on_from_the_last_instant_that_the_right_clock_decided():
    assert correction.resume([NOW - 90 * S, NOW - 30 * S, YEARS], NOW) == NOW - 30 * S
    assert correction.resume([YEARS], NOW) == NOW
    assert correction.resume([], NOW) == NOW


def test_a_breaker_rests_no_longer_than_a_rest_may_last():
    rule = BreakerRule(probe_after=600.0)
    broken = Breaker(failures=5, rounds=1, opened_at=YEARS, probe_at=YEARS + 600 * S)
    found = correction.breaker(broken, rule, NOW)
    assert found.probe_at is not None
    assert found.probe_at <= NOW + 1.1 * 86_400 * S
    assert (found.opened_at, found.failures) == (NOW, 5)
    resting = Breaker(failures=5, rounds=1, opened_at=NOW - S, probe_at=NOW + 600 * S)
    assert correction.breaker(resting, rule, NOW) == resting
    assert correction.breaker(Breaker(opened_at=YEARS), BreakerRule(), NOW).probe_at is None
    assert correction.breaker(Breaker(), rule, NOW) == Breaker()


def test_starts_in_front_of_the_clock_still_count():
    found = correction.restarts(Restarts((NOW - S, YEARS, YEARS + S), 3, YEARS + 2 * S), NOW)
    assert found == Restarts((NOW - S, NOW, NOW), 3, NOW)
    assert correction.restarts(Restarts(), NOW) == Restarts()
