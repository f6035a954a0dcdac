"""Rates and run times as they are learned: quick to rise, hard to fool, kept over a restart."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.scaling.estimates import ANY, PRIOR, Estimates


def after(estimates, seconds, arrivals=0, runs=(), task="t"):
    now = (estimates.counted_at or 0.0) + seconds
    return estimates.after(now, {task: arrivals}, [(task, run) for run in runs])


def load(estimates, waiting=0, running=()):
    return estimates.loads({"t": waiting}, [("t", elapsed) for elapsed in running]).tasks[0]


def known(mean=1.0, runs=100):
    return after(Estimates(counted_at=0.0), 1.0, runs=[mean] * runs)


def test_a_task_that_nobody_knows_takes_what_the_others_take():
    assert load(Estimates(), 3).service == PRIOR
    loads = known(7.0).loads({"new": 3}).tasks
    assert {found.task: found.service for found in loads}["new"] == pytest.approx(7.0)


def test_the_first_run_replaces_the_guess():
    assert load(known(30.0, runs=1)).service == 30.0


def test_a_rush_is_seen_within_seconds_and_remembered_for_a_minute():
    quiet = Estimates(counted_at=0.0)
    for _ in range(10):
        quiet = after(quiet, 1.0, 10)
    assert 6 < load(quiet).rate < 10
    for _ in range(20):
        quiet = after(quiet, 1.0, 0)
    assert 0.8 < load(quiet).rate < 2


def test_one_absurd_run_moves_the_mean_little():
    assert load(after(known(), 1.0, runs=[100_000.0])).service < 1.2


def test_jobs_that_all_became_longer_are_believed_soon():
    assert load(after(known(), 1.0, runs=[8.0] * 64)).service > 5


def test_a_run_that_is_longer_than_usual_counts_before_it_ends():
    assert load(known(), running=[0.5]).service == pytest.approx(1.0)
    assert load(known(), running=[8.0] * 20).service > 2


def test_how_much_runs_vary_is_known_after_some_of_them():
    assert load(known(runs=19)).spread == 1.0  # too few to tell
    assert load(known()).spread == pytest.approx(0.0)
    assert load(after(Estimates(counted_at=0.0), 1.0, runs=[1.0, 7.4] * 50)).spread == pytest.approx(1.0, 0.1)


def test_jobs_of_which_only_the_queue_is_known_vary_as_the_others_do():
    found = {one.task: one.spread for one in known().loads({ANY: 5}).tasks}
    assert found[ANY] == pytest.approx(0.0)
    assert Estimates().loads({ANY: 5}).tasks[0].spread == 1.0


def test_what_runs_is_expected_to_take_as_long_again():
    assert known().loads({}, [("t", 0.2), ("t", 9.0)]).remaining == pytest.approx((1.0, 9.0))


def test_slow_poison_leaves_the_mean_and_is_named():
    loads = known().loads({}, [("t", 0.5), ("t", 1800.0)])
    assert loads.poison == (1,)
    assert loads.tasks[0].service == pytest.approx(1.0)


def test_nobody_is_poison_before_enough_is_known():
    assert not known(runs=5).loads({}, [("t", 1800.0)]).poison


def in_line(estimates, number):
    """The load of jobs of which only the queue is known."""
    return next(found for found in estimates.loads({"": number}).tasks if not found.task)


def test_jobs_of_which_only_the_queue_is_known_take_what_comes_lately_takes():
    mixed = Estimates(counted_at=0.0).after(1.0, {}, [("quick", 0.05)] * 1000 + [("slow", 60.0)] * 100)
    assert in_line(mixed, 300).service == pytest.approx(30.025)  # both are well known, and nobody came yet
    for second in range(2, 40):
        mixed = mixed.after(float(second), {"quick": 99, "slow": 1, "": 40})
    found = in_line(mixed, 300)
    assert found.service == pytest.approx(0.99 * 0.05 + 0.01 * 60.0)
    assert (found.waiting, round(found.rate)) == (300, 39)
    assert sum(load.rate for load in mixed.loads({}).tasks) == pytest.approx(140, rel=0.05)


def test_a_task_that_comes_no_more_tells_nothing_of_what_stands_in_line():
    mixed = Estimates(counted_at=0.0).after(1.0, {}, [("nightly", 600.0)] * 1000 + [("mail", 0.1)] * 10)
    assert in_line(mixed.after(2.0, {"mail": 50}), 20).service == pytest.approx(0.1)


def test_a_long_run_of_a_task_that_comes_counts_for_what_stands_in_line():
    mixed = Estimates(counted_at=0.0).after(1.0, {}, [("a", 1.0)] * 5).after(2.0, {"a": 5})
    loads = mixed.loads({"": 5}, [("a", 9.0)] * 5).tasks
    assert [found.service for found in loads] == pytest.approx([5.0, 5.0])


def test_where_nothing_is_known_all_of_it_still_waits():
    (only,) = Estimates().loads({"": 5}).tasks
    assert (only.waiting, only.service) == (5, PRIOR)


@given(
    st.dictionaries(st.sampled_from(["", "a", "b", "c"]), st.integers(0, 1000)),
    st.dictionaries(st.sampled_from(["", "a", "b"]), st.integers(1, 50)),
    st.lists(st.sampled_from(["a", "b"]), max_size=5),
)
def test_whoever_waits_is_counted_once_whatever_is_known_of_the_tasks(waiting, arrived, ended):
    estimates = Estimates(counted_at=0.0).after(1.0, arrived, [(task, 1.0) for task in ended])
    for known_so_far in (Estimates(), estimates):
        loads = known_so_far.loads(waiting, [("c", 0.5)])
        assert sum(found.waiting for found in loads.tasks) == sum(waiting.values())


def test_a_clock_that_went_back_teaches_nothing():
    then = after(known(), 1.0, 10)
    again = then.after(0.5, {"t": 10}, [])
    assert load(again).rate == load(then).rate
    assert again.counted_at == 0.5


def test_it_survives_a_restart():
    value = json.loads(json.dumps(known(3.0).to_value()))
    revived = Estimates.from_value(value, 50.0)
    assert load(revived).service == pytest.approx(3.0)
    assert load(after(revived, 1.0, runs=[9.0] * 40)).service > 5  # what is old weighs less


@pytest.mark.parametrize(
    "value", [None, [], {"t": 1}, {"t": [1, 2]}, {"t": [-1, 1, 0, 0]}, {"t": ["x", 1, 0, 0]}]
)
def test_what_is_no_estimate_is_left_out(value):
    assert not Estimates.from_value(value).tasks


@given(
    st.lists(st.floats(0, 1e7), max_size=50), st.lists(st.floats(0, 1e7), max_size=20), st.integers(0, 1000)
)
def test_estimates_stay_finite_whatever_is_measured(runs, running, arrivals):
    loads = after(Estimates(counted_at=0.0), 1.0, arrivals, runs).loads(
        {"t": 3}, [("t", one) for one in running]
    )
    found = loads.tasks[0]
    assert 0 < found.service < 1e9
    assert 0 <= found.rate <= 1000
    assert all(0 < seconds < 1e9 for seconds in loads.remaining)
