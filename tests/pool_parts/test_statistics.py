"""What a pool tells about itself: percentiles of known data, exact counts, snapshots that do not change."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.shared_page import HISTOGRAM, Page, bucket, bucket_bounds
from millpond.pool.statistics import BACKED_UP, Tally, WorkerRow, health, percentile, summary
from millpond.pool.worker.result_writer import Outbox
from millpond.rules.pool.restart import Starts

calm = settings(deadline=None)
MILLISECOND = 1_000_000


def histogram(durations):
    counts = [0] * HISTOGRAM
    for duration in durations:
        counts[bucket(duration)] += 1
    return counts


# --- percentiles -----------------------------------------------------------------------------------
def test_nothing_counted_is_zero_everywhere():
    empty = summary([0] * HISTOGRAM, 0.0, 0)
    assert (empty.mean, empty.total, empty.p50, empty.p95, empty.p99) == (0.0, 0.0, 0.0, 0.0, 0.0)


def test_equal_durations_have_every_percentile_in_their_bucket():
    counts = histogram([5 * MILLISECOND] * 1000)
    low, high = bucket_bounds(bucket(5 * MILLISECOND))
    for share in (0.01, 0.5, 0.95, 0.99, 1.0):
        assert low <= percentile(counts, share) <= high


def test_an_even_spread_has_its_percentiles_where_they_belong():
    durations = [index * MILLISECOND for index in range(1, 1001)]
    counts = histogram(durations)
    found = summary(counts, sum(durations) / 1e9, len(durations))
    assert found.mean == pytest.approx(0.5005)
    assert found.total == pytest.approx(500.5)
    assert found.p50 == pytest.approx(0.5, rel=0.1)
    assert found.p95 == pytest.approx(0.95, rel=0.1)
    assert found.p99 == pytest.approx(0.99, rel=0.1)


def test_a_few_slow_ones_show_only_above_their_share():
    counts = histogram([MILLISECOND] * 97 + [1000 * MILLISECOND] * 3)
    assert percentile(counts, 0.5) == pytest.approx(0.001, rel=0.25)
    assert percentile(counts, 0.95) == pytest.approx(0.001, rel=0.25)
    assert percentile(counts, 0.99) == pytest.approx(1.0, rel=0.25)


def test_durations_too_short_to_tell_apart_share_one_bucket():
    assert 0.0 < percentile(histogram([0, 1, 2, 7]), 0.5) <= 8e-9


@calm
@given(
    durations=st.lists(st.integers(8, 10**13), min_size=1, max_size=300),
    share=st.floats(0.01, 1.0),
)
def test_a_percentile_lies_in_the_bucket_of_the_exact_one(durations, share):
    ordered = sorted(durations)
    exact = ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]
    found = percentile(histogram(durations), share)
    low, high = bucket_bounds(bucket(exact))
    assert low * (1 - 1e-9) <= found <= high * (1 + 1e-9)


@calm
@given(
    durations=st.lists(st.integers(0, 10**13), min_size=1), shares=st.tuples(st.floats(0, 1), st.floats(0, 1))
)
def test_a_higher_share_never_has_a_lower_percentile(durations, shares):
    counts = histogram(durations)
    assert percentile(counts, min(shares)) <= percentile(counts, max(shares))


# --- sums ------------------------------------------------------------------------------------------
def test_a_workers_page_is_folded_in_exactly():
    page = Page.create("millpond-test")
    outbox = Outbox(None, page, -1)  # type: ignore[arg-type]
    outbox.count([1000, 2000], [MILLISECOND, 3 * MILLISECOND], errors=1, items=2)
    tally = Tally()
    tally.fold(page, page.words[layout.TASKS_DONE])
    tally.fold(page, page.words[layout.TASKS_DONE])
    assert (tally.done, tally.errored) == (4, 2)
    assert (tally.sum_wait, tally.sum_run) == (6000, 8 * MILLISECOND)
    assert (sum(tally.waits), sum(tally.runs)) == (4, 4)
    assert tally.runs[bucket(MILLISECOND)] == 2
    assert tally.run().mean == pytest.approx(0.002)
    page.close()


def test_threads_are_counted_one_by_one():
    tally = Tally()
    tally.add(5000, MILLISECOND, failed=False)
    tally.add(-5, 3 * MILLISECOND, failed=True)  # clocks read in two threads
    assert (tally.done, tally.errored, tally.sum_run) == (2, 1, 4 * MILLISECOND)
    assert tally.waits[0] == 1
    assert tally.wait().total == pytest.approx(4.995e-6)


def tally_of(**counts):
    tally = Tally()
    for name, count in counts.items():
        setattr(tally, name, count)
    return tally


def test_a_copy_is_a_snapshot():
    tally = tally_of(submitted=3, crashed=1)
    copy = tally.copy()
    tally.add(1, 1, failed=False)
    tally.submitted += 1
    assert (copy.submitted, copy.crashed, copy.done) == (3, 1, 0)
    assert sum(copy.waits) == sum(copy.runs) == 0


def test_the_public_record_counts_workers_by_state_and_tasks_by_end():
    states = ["busy", "idle", "idle", "starting", "draining", "dead"]
    rows = tuple(WorkerRow(index, state, None, None, 0, 0, 1.0) for index, state in enumerate(states))
    tally = tally_of(
        submitted=9, crashed=1, timed_out=2, expired=3, cancelled=4, recycled=5, done=8, errored=2
    )
    found = tally.statistics(rows, states, queued=6, unseen=1)
    assert (found.size, found.busy, found.idle, found.starting, found.draining) == (5, 1, 2, 1, 1)
    assert (found.submitted, found.completed, found.errored, found.queued) == (10, 6, 2, 6)
    assert (found.crashed, found.timed_out, found.expired, found.cancelled, found.recycled) == (1, 2, 3, 4, 5)
    assert found.workers == rows


def test_the_median_of_many_short_tasks_survives_the_sampling():
    noise = random.Random(3)
    page = Page.create("millpond-test")
    outbox = Outbox(None, page, -1)  # type: ignore[arg-type]
    for _ in range(50):
        runs = [noise.randrange(1000, 2000) for _ in range(512)]
        outbox.count(runs, runs, errors=0, items=len(runs))
    tally = Tally()
    tally.fold(page, page.words[layout.TASKS_DONE])
    assert tally.done == 50 * 512
    assert tally.run().p50 == pytest.approx(1.5e-6, rel=0.1)
    assert layout.WAITS + HISTOGRAM == layout.RUNS
    page.close()


# --- health ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("closed", "failures", "queued", "status", "words"),
    [
        (False, 0, 0, "ok", []),
        (False, 0, BACKED_UP * 2, "ok", []),
        (False, 0, BACKED_UP * 2 + 1, "ok", ["11 tasks wait for 2 slots"]),
        (False, 1, 0, "degraded", ["no luck"]),
        (False, 3, 99, "degraded", ["3 worker starts", "99 tasks wait"]),
        (True, 3, 99, "failed", ["shut down"]),
    ],
)
def test_health_says_how_it_is_and_why(closed, failures, queued, status, words):
    found = health(closed=closed, starts=Starts(failures, 0.0, " no luck\n"), queued=queued, slots=2)
    assert found.status == status
    assert len(found.reasons) == len(words)
    assert all(word in reason for word, reason in zip(words, found.reasons, strict=True))
