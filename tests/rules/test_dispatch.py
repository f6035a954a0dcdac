"""Who gets what: batches are bounded by count and time, shares add up, only idle hands cause a recall."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.rules.pool.dispatch import (
    CHUNK_SECONDS,
    LOOKAHEAD,
    SHARE_FROM,
    SLOW_ITEM,
    STALLED,
    UNHURRIED,
    WATCH,
    WINDOW,
    Load,
    chunk_size,
    fits,
    hungry,
    learn,
    quota,
    victim,
    watch_for,
)

calm = settings(deadline=None)
durations = st.floats(0, 1e6)
counts = st.integers(0, 10_000)
measurements = st.integers(0, 10**15).map(lambda nanoseconds: nanoseconds / 1e9)


# --- fits and hungry ---------------------------------------------------------------------------------
FITS = [
    # held, load, estimate, may it be sent one more
    (0, 0.0, None, True),
    (0, 0.0, 3600.0, True),
    (0, 99.0, 99.0, True),
    (1, 0.0, None, False),
    (1, 0.0, 0.0, True),
    (1, 0.0, LOOKAHEAD, True),
    (1, 0.0, LOOKAHEAD * 1.01, False),
    (1, LOOKAHEAD, 0.0, True),
    (1, LOOKAHEAD, 1e-6, False),
    (WINDOW - 1, 0.0, 0.0, True),
    (WINDOW, 0.0, 0.0, False),
    (WINDOW + 1, 0.0, 0.0, False),
]


@pytest.mark.parametrize(("held", "load", "estimate", "expected"), FITS)
def test_a_worker_is_sent_one_more_task_only_if_it_fits(held, load, estimate, expected):
    assert fits(held, load, estimate) is expected


def test_nothing_is_sent_behind_a_task_that_is_in_the_way():
    assert hungry(1, 0.0, running_for=STALLED / 2)
    assert not hungry(1, 0.0, running_for=STALLED)


def test_of_bulky_tasks_one_runs_and_one_waits():
    assert [fits(held, 9.0, None, True) for held in (0, 1, 2, 3)] == [True, True, False, False]
    assert [hungry(held, 9.0, True) for held in (0, 1, 2, 3)] == [True, True, False, False]
    assert hungry(1, 9.0, True, running_for=UNHURRIED / 2)
    assert not hungry(1, 9.0, True, running_for=UNHURRIED)  # another worker is started for it instead


@calm
@given(estimate=st.floats(0, 1))
def test_filling_a_worker_stops_within_the_window_and_the_lookahead(estimate):
    held, load = 0, 0.0
    while fits(held, load, estimate):
        held, load = held + 1, load + estimate
        assert held <= WINDOW
    assert held == 1 or load <= LOOKAHEAD
    assert held >= 1


@calm
@given(held=counts, load=durations, estimate=st.none() | durations)
def test_a_heavier_load_never_fits_where_a_lighter_one_did_not(held, load, estimate):
    if not fits(held, load, estimate):
        assert not fits(held + 1, load, estimate)
        assert not fits(held, load + 1.0, estimate)


@pytest.mark.parametrize(
    ("held", "load", "expected"),
    [
        (0, 0.0, True),
        (WINDOW // 2, 0.0, True),
        (WINDOW // 2 + 1, 0.0, False),
        (1, LOOKAHEAD * 0.6, True),
        (1, LOOKAHEAD * 0.61, False),
        (WINDOW, LOOKAHEAD, False),
    ],
)
def test_a_busy_worker_is_hungry_only_when_much_of_its_load_is_gone(held, load, expected):
    assert hungry(held, load) is expected


@calm
@given(estimate=st.floats(0, LOOKAHEAD * 0.4))
def test_a_hungry_worker_has_room_for_a_short_task(estimate):
    for held, load in ((1, LOOKAHEAD * 0.6), (WINDOW // 2, 0.0)):
        assert hungry(held, load)
        assert fits(held, load, estimate)


# --- quota ---------------------------------------------------------------------------------------
@calm
@given(waiting=counts, workers=st.integers(1, 500))
def test_the_quotas_of_all_workers_hold_all_that_waits_and_no_round_more(waiting, workers):
    share = quota(waiting, workers)
    assert share * workers >= waiting
    assert (share - 1) * workers < waiting or share == 0


def test_no_workers_means_no_quota():
    assert quota(10, 0) == 0
    assert quota(10, -1) == 0
    assert quota(0, 4) == 0


# --- learn -------------------------------------------------------------------------------------------
def test_the_first_measurement_is_the_estimate():
    assert learn(None, 0.25) == 0.25


@calm
@given(estimate=measurements, measured=measurements)
def test_an_estimate_moves_towards_the_measurement_and_never_past_it(estimate, measured):
    new = learn(estimate, measured)
    low, high = min(estimate, measured), max(estimate, measured)
    assert low <= new <= high or math.isclose(new, low) or math.isclose(new, high)
    if not math.isclose(estimate, measured, rel_tol=1e-9):
        assert abs(measured - new) < abs(measured - estimate)


@calm
@given(start=st.floats(0, 1e3), steady=st.floats(1e-6, 1e3))
def test_an_estimate_settles_on_a_steady_run_time(start, steady):
    estimate: float | None = start
    for _ in range(100):
        estimate = learn(estimate, steady)
    assert estimate == pytest.approx(steady, rel=1e-6)


# --- watching ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("estimate", "cores", "expected"),
    [(None, 8, 0.0), (1.0, 8, 0.0), (WATCH / 2, 8, 0.0), (WATCH / 3, 1, 0.0), (WATCH / 3, 2, WATCH)],
)
def test_a_caller_watches_only_for_a_short_task_on_another_core(estimate, cores, expected):
    assert watch_for(estimate, cores) == expected


# --- victim --------------------------------------------------------------------------------------
loads = st.lists(
    st.builds(
        Load,
        worker=st.integers(1, 1000),
        unbegun=st.integers(0, 20),
        unbegun_seconds=st.floats(0, 1),
        running_for=st.floats(0, 1),
    ),
    unique_by=lambda load: load.worker,
    max_size=12,
)


@calm
@given(idle=st.integers(0, 3), waiting=st.integers(0, 3), crew=loads)
def test_tasks_are_recalled_only_for_idle_hands_and_from_the_most_loaded(idle, waiting, crew):
    chosen = victim(idle, waiting, iter(crew))
    worthy = {
        load.worker: load
        for load in crew
        if load.unbegun and (load.unbegun_seconds >= SHARE_FROM or load.running_for >= STALLED)
    }
    if chosen is None:
        assert idle == 0 or waiting or not worthy
    else:
        assert idle
        assert not waiting
        assert worthy[chosen].unbegun_seconds == max(load.unbegun_seconds for load in worthy.values())


VICTIMS = [
    ([], None),
    ([Load(1, 0, 9.0, 9.0)], None),  # it holds nothing to give
    ([Load(1, 1, SHARE_FROM / 2, STALLED / 2)], None),  # not worth the move
    ([Load(1, 1, SHARE_FROM, 0.0)], 1),
    ([Load(1, 1, 0.0, STALLED)], 1),  # short, but stuck behind a long one
    ([Load(1, 5, 0.01, 0.0), Load(2, 1, 0.02, 0.0)], 2),
    ([Load(1, 1, 0.01, 0.1), Load(2, 1, 0.01, 0.2)], 2),  # alike: the one that runs longer
]


@pytest.mark.parametrize(("crew", "expected"), VICTIMS)
def test_the_worker_to_recall_from(crew, expected):
    assert victim(1, 0, crew) == expected
    assert victim(0, 0, crew) is None
    assert victim(1, 1, crew) is None


# --- map ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("estimate", "items", "workers", "expected"),
    [
        (None, 1000, 2, 1),
        (SLOW_ITEM, 1000, 2, 1),
        (10.0, 1000, 2, 1),
        (0.001, 1000, 2, round(CHUNK_SECONDS / 0.001)),
        (0.0, 800, 2, 100),
        (1e-9, 10**9, 1, round(CHUNK_SECONDS / 1e-8)),
        (1e-6, 0, 2, 1),
        (1e-6, 3, 0, 1),
        (1e-6, 8, 2, 1),
    ],
)
def test_the_items_that_travel_as_one(estimate, items, workers, expected):
    assert chunk_size(estimate, items, workers) == expected


@calm
@given(
    estimate=st.none() | st.floats(0, 1),
    items=st.integers(0, 10**7),
    workers=st.integers(0, 500),
)
def test_a_chunk_is_never_empty_never_long_and_never_all_there_is(estimate, items, workers):
    size = chunk_size(estimate, items, workers)
    assert size >= 1
    assert size == 1 or size * (estimate or 0.0) <= CHUNK_SECONDS * (1 + 1e-9)
    assert size == 1 or size < items


@calm
@given(items=st.integers(1, 10**6), workers=st.integers(1, 64))
def test_short_items_make_four_chunks_or_more_for_each_worker(items, workers):
    size = chunk_size(1e-7, items, workers)
    chunks = -(-items // size)
    assert chunks >= min(items, 4 * workers)
