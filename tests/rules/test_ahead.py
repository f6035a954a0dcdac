"""How many jobs a pool claims: enough that no worker waits, at most about a second of work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.jobs import claim_size
from millpond.rules.jobs.backoff import FIRST, FIRST_RETRY, LONGEST, LONGEST_RETRY, pause, retry_pause
from millpond.rules.pool.restart import BURST, RESPAWNS_A_SECOND, Respawns, after_death, respawn_at

seconds = st.floats(1e-6, 1e4)
small = st.integers(1, 64)
sizes = st.floats(0, 4e6)


@given(small, small, seconds)
def test_of_jobs_nobody_knows_only_those_are_claimed_that_can_begin(workers, concurrency, round_trip):
    assert claim_size.wanted(workers, concurrency, None, round_trip) == workers * concurrency


@given(small, seconds, seconds)
def test_what_is_claimed_ahead_is_worth_at_most_a_second_of_each_worker(workers, run, round_trip):
    more = claim_size.wanted(workers, 1, run, round_trip) - workers
    assert 0 <= more * run <= workers * claim_size.LONGEST * 1.000001
    assert more <= workers * claim_size.MOST


@given(small, st.floats(1.0, 1e4), seconds)
def test_of_long_jobs_nothing_is_claimed_ahead(workers, run, round_trip):
    assert claim_size.wanted(workers, 1, run + 0.001, round_trip) == workers


@given(small, small, seconds, seconds)
def test_nothing_is_claimed_ahead_behind_workers_that_are_stuck(workers, concurrency, run, round_trip):
    places = workers * concurrency
    wanted = [
        claim_size.wanted(workers, concurrency, run, round_trip, long=long)
        for long in (0, places // 2, places)
    ]
    assert wanted == sorted(wanted, reverse=True)
    assert wanted[-1] == places


@pytest.mark.parametrize(
    ("long", "unbegun", "stuck"), [(4, 1, True), (5, 9, True), (3, 9, False), (4, 0, False)]
)
def test_what_waits_behind_nothing_but_long_jobs_is_stuck(long, unbegun, stuck):
    assert claim_size.is_stuck(long, 4, unbegun) is stuck


@pytest.mark.parametrize(("held", "loners", "counted"), [(5, 0, 5), (5, 3, 2), (9, 9, 5), (4, 4, 0)])
def test_jobs_that_run_alone_take_no_room_until_there_are_many(held, loners, counted):
    assert claim_size.beside(held, loners, places=4) == counted


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 500))
def test_a_claim_never_asks_for_more_than_fits(want, held, at_once):
    limit = claim_size.to_claim(want, held, at_once)
    assert 0 <= limit <= max(0, min(want - held, claim_size.BATCH))


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_pool_with_a_free_worker_always_claims(at_once, more):
    assert claim_size.to_claim(at_once + more, at_once - 1, at_once) > 0


@given(small, small, seconds, sizes)
def test_of_large_jobs_no_more_are_claimed_ahead_than_the_node_should_hold(workers, concurrency, run, size):
    at_once = workers * concurrency
    more = claim_size.wanted(workers, concurrency, run, 1.0, size) - at_once
    assert more <= 1 or more * size <= claim_size.MOST_BYTES
    assert claim_size.wanted(workers, concurrency, run, 1.0, 0.0) >= at_once + more


@given(st.integers(1, 5000), st.integers(1, 500), sizes)
def test_a_claim_asks_for_few_large_jobs_at_once_but_always_for_one(more, at_once, size):
    limit = claim_size.to_claim(at_once + more, at_once - 1, at_once, size)
    assert limit >= 1
    assert limit == 1 or limit * size <= claim_size.MOST_BYTES


@given(st.floats(0, 1e6), st.integers(1, 1000), st.integers(0, 1 << 20))
def test_a_size_is_learned_from_many_at_once_and_from_few_little_by_little(known, jobs, each):
    learnt = claim_size.learn_size(known, jobs * each, jobs)
    assert min(known, each) - 1e-6 <= learnt <= max(known, each) + 1e-6
    assert abs(claim_size.learn_size(known, 1000 * each, 1000) - each) <= 0.02 * abs(known - each) + 1e-6
    assert abs(claim_size.learn_size(known, each, 1) - known) <= 0.1 * abs(known - each) + 1e-6


@given(st.integers(0, 1000), small, st.integers(0, 10**9))
def test_a_claim_is_shared_out_whole_and_evenly(limit, queues, turn):
    parts = claim_size.share(limit, queues, turn)
    assert sum(parts) == limit
    assert max(parts) - min(parts) <= 1


def test_what_cannot_be_divided_goes_to_each_queue_in_turn():
    assert [claim_size.share(1, 3, turn) for turn in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@given(st.none() | seconds, seconds)
def test_an_estimate_lies_between_what_was_known_and_what_was_measured(known, measured):
    learnt = claim_size.learn(known, measured)
    if known is None:
        assert learnt == measured
    else:
        assert min(known, measured) <= learnt <= max(known, measured)


def test_one_long_job_among_short_ones_moves_the_estimate_little():
    assert claim_size.learn(0.001, 3600.0) < 0.003


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_store_in_trouble_is_asked_again_soon_and_never_in_step(failures, spread):
    assert FIRST / 2 <= pause(failures, spread) <= LONGEST <= 1.0
    assert pause(failures, 0.0) < pause(failures, 1.0)


@given(st.integers(1, 100), st.floats(0, 1))
def test_a_transaction_that_crossed_waits_a_few_milliseconds_then_longer_and_never_long(attempt, spread):
    assert FIRST_RETRY / 4 <= retry_pause(attempt, spread) <= LONGEST_RETRY <= 0.5
    assert retry_pause(attempt, spread) <= retry_pause(attempt + 1, spread)
    assert retry_pause(attempt, 0.0) < retry_pause(attempt, 1.0)
    assert retry_pause(1, 1.0) < 0.01


@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=300))
def test_a_burst_of_deaths_is_replaced_at_once_and_a_storm_at_its_rate(gaps):
    respawns, now, starts = Respawns(), 0.0, []
    for gap in gaps:
        now = max(now + gap, respawn_at(respawns))
        starts.append(now)
        respawns = after_death(respawns, now)
    for first in range(0, len(starts), 10):
        last = min(len(starts) - 1, first + int(BURST) * 2)
        allowed = BURST + (starts[last] - starts[first]) * RESPAWNS_A_SECOND + 2
        assert last - first <= allowed


def test_the_first_deaths_cost_no_delay():
    respawns = Respawns()
    for _ in range(int(BURST)):
        respawns = after_death(respawns, 1.0)
        assert respawn_at(respawns) <= 1.0
    assert respawn_at(after_death(respawns, 1.0)) > 1.0
