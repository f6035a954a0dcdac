"""The small rules: how long to wait, how fast a queue may go, how durations are counted."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import JobOptions
from millpond.rules.histogram import bounds, bucket, percentile
from millpond.rules.jobs.rate_limit import Bucket, allowed, depth, fill
from millpond.rules.jobs.retry import SPREAD, delay_after, share

calm = settings(deadline=None)
SECOND = 1_000_000


# --- retry ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("errors", "nominal"), [(0, 5), (1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (99, 3600)]
)
def test_delays_double_up_to_an_hour(errors, nominal):
    delay = delay_after(JobOptions(), "job", errors)
    assert nominal <= delay < nominal * (1 + SPREAD)


@calm
@given(
    st.builds(
        JobOptions,
        retry_first=st.floats(0, 3e9),
        retry_factor=st.floats(1, 1e300),
        retry_cap=st.floats(0, 3e9),
    ),
    st.text(max_size=9),
    st.integers(0, 10**9),
)
def test_a_delay_is_finite_spread_and_always_the_same(options, job_id, errors):
    delay = delay_after(options, job_id, errors)
    assert 0 <= delay <= options.retry_cap * (1 + SPREAD)
    assert delay == delay_after(options, job_id, errors)


@calm
@given(st.text(max_size=20))
def test_a_share_is_from_zero_up_to_one(text):
    assert 0 <= share(text) < 1


def test_jobs_that_failed_together_do_not_come_back_together():
    delays = {delay_after(JobOptions(), f"job-{number}", 1) for number in range(1000)}
    assert len(delays) == 1000
    assert max(delays) - min(delays) > 5 * SPREAD * 0.9


# --- rate ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("bucket_before", "now", "tokens"),
    [
        (Bucket(10, 0, 0), SECOND, 10),
        (Bucket(10, 0, 0), SECOND // 2, 5),
        (Bucket(10, 8, 0), SECOND, 10),  # no more than a second's worth
        (Bucket(0.5, 0, 0), SECOND, 0.5),
        (Bucket(0.5, 0, 0), 9 * SECOND, 1),  # but at least one job
        (Bucket(10, 3, SECOND), 0, 3),  # the clock went back
    ],
)
def test_a_bucket_fills_at_its_rate_up_to_its_depth(bucket_before, now, tokens):
    after = fill(bucket_before, now)
    assert after.tokens == pytest.approx(tokens)
    assert after.filled_at == max(now, bucket_before.filled_at)


@calm
@given(st.floats(0.1, 1000), st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=30))
def test_no_more_starts_than_the_rate_allows(rate, steps):
    current, now, started = Bucket(rate, depth(rate), 0), 0, 0
    for step in steps:
        now += step
        current = fill(current, now)
        number = allowed(current)
        assert number >= 0
        started += number
        current = current._replace(tokens=current.tokens - number)
    assert started <= depth(rate) + rate * now / SECOND + 1e-6


# --- histogram -----------------------------------------------------------------------------------------
@calm
@given(st.floats(0, 1e7))
def test_a_duration_lies_within_the_bounds_of_its_bucket(seconds):
    low, high = bounds(bucket(seconds))
    assert low <= int(seconds * 1e6) / 1e6 < high
    assert high <= max(low * 1.5 + 1e-12, 2e-6)


def test_the_buckets_leave_no_gap():
    edges = [bounds(index) for index in range(2, 80)]
    assert all(left[1] == right[0] for left, right in pairwise(edges))
    assert bounds(0) == bounds(1) == (0.0, 2e-6)


def test_percentiles_of_nothing_and_of_something():
    assert percentile({}, 0.5) is None
    counted = {bucket(0.001): 90, bucket(1.0): 10}
    assert percentile(counted, 0.5) == pytest.approx(0.001, rel=0.3)
    assert percentile(counted, 0.95) == pytest.approx(1.0, rel=0.3)
    assert percentile(counted, 1.0) == bounds(bucket(1.0))[1]
    assert percentile(counted, 1.5) == bounds(bucket(1.0))[1]  # beyond everything


@calm
@given(st.lists(st.floats(1e-5, 1e5), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_good_to_half_its_size(durations, wanted):
    counted: dict[int, int] = {}
    for duration in durations:
        counted[bucket(duration)] = counted.get(bucket(duration), 0) + 1
    found = percentile(counted, wanted)
    rank = max(1, -(-wanted * len(durations) // 1))
    real = sorted(durations)[min(len(durations), int(rank)) - 1]
    assert found is not None
    assert real / 1.51 <= found <= real * 1.51
