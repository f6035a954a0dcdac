"""Which jobs may start: what is promised counts, big ones are not starved, and nothing is given twice."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.resources.fit import (
    Budget,
    Candidate,
    Free,
    Need,
    Started,
    fit,
    free,
    headroom,
    how_many,
    never_fits,
    overcommit,
    places,
)

GB = 1_000_000_000
NOW = 100.0


def job(name: str, memory: float = 0, **more) -> Candidate:
    need = Need(more.pop("cpu", 0.0), int(memory * GB), more.pop("tokens", {}))
    rank = more.pop("rank") if "rank" in more else int(name)
    return Candidate(name, rank, need, **more)


def started(memory: float, used: float = 0, ends_at: float = NOW, cpu: float = 0.0) -> Started:
    return Started(Need(cpu, int(memory * GB)), int(used * GB), ends_at)


def test_of_ten_jobs_of_2_gb_four_start_on_8_gb():
    found = fit(Budget(8 * GB), [], [job(str(n), 2) for n in range(10)], NOW)
    assert found.start == ("0", "1", "2", "3")
    assert found.free.memory == 0


def test_memory_that_was_promised_and_not_touched_yet_counts_as_used():
    untouched = [started(2) for _ in range(3)]
    assert fit(Budget(8 * GB, used=0), untouched, [job("1", 2), job("2", 2)], NOW).start == ("1",)


def test_memory_that_is_used_is_not_counted_twice():
    full = [started(2, used=2) for _ in range(3)]
    assert fit(Budget(8 * GB, used=6 * GB), full, [job("1", 2), job("2", 2)], NOW).start == ("1",)


def test_a_job_that_uses_more_than_it_was_given_leaves_less_for_others():
    assert fit(Budget(8 * GB, used=7 * GB), [started(2, used=7)], [job("1", 2)], NOW).start == ()


def test_what_others_on_the_machine_use_counts():
    assert fit(Budget(8 * GB, used=7 * GB), [], [job("1", 2)], NOW).start == ()


def test_a_job_that_needs_nothing_always_starts():
    assert fit(Budget(8 * GB, used=9 * GB), [started(4)], [job("1")], NOW).start == ("1",)


def test_the_first_in_line_comes_first():
    waiting = [job("a", 5, rank=2), job("b", 5, rank=1)]
    assert fit(Budget(8 * GB), [], waiting, NOW).start == ("b",)


def test_nobody_starts_before_the_big_one_whom_that_would_put_off():
    running = [started(2, used=2, ends_at=NOW + 10)]
    waiting = [job("1", 8), job("2", 2), job("3", 2)]
    found = fit(Budget(8 * GB, used=2 * GB), running, waiting, NOW)
    assert found.start == ()
    assert found.reserved is not None
    assert (found.reserved.name, found.reserved.at, found.reserved.lacks) == ("1", NOW + 10, "memory")


def test_who_is_done_before_the_room_is_needed_may_start():
    running = [started(2, used=2, ends_at=NOW + 10)]
    waiting = [job("1", 8), job("2", 2, run=9.0), job("3", 2, run=11.0)]
    assert fit(Budget(8 * GB, used=2 * GB), running, waiting, NOW).start == ("2",)


def test_who_fits_beside_the_big_one_may_start_however_long_it_runs():
    running = [started(4, used=4, ends_at=NOW + 10)]
    waiting = [job("1", 6), job("2", 1), job("3", 1), job("4", 1)]
    assert fit(Budget(8 * GB, used=4 * GB), running, waiting, NOW).start == ("2", "3")


def test_a_critical_job_ahead_of_the_big_one_is_not_held_up_by_it():
    running = [started(2, used=2, ends_at=NOW + 10)]
    waiting = [job("5", 8), job("critical", 2, rank=-1)]
    assert fit(Budget(8 * GB, used=2 * GB), running, waiting, NOW).start == ("critical",)


def test_no_room_is_made_where_only_strangers_could_make_it():
    found = fit(Budget(8 * GB, used=7 * GB), [], [job("1", 8), job("2", 1)], NOW)
    assert (found.start, found.reserved) == (("2",), None)


def test_cores_are_shared_out_but_no_pool_stands_still_for_want_of_them():
    waiting = [job("1", cpu=1.0), job("2", cpu=1.0), job("3", cpu=1.0), job("4", cpu=0.5, first=True)]
    assert fit(Budget(GB, cpu=2.0), [], waiting, NOW).start == ("1", "2", "4")


def test_tokens_are_counted():
    gpu = {"gpu": 1.0}
    waiting = [job(str(n), tokens=gpu) for n in range(3)]
    assert fit(Budget(GB, tokens={"gpu": 2}), [], waiting, NOW).start == ("0", "1")
    assert fit(Budget(GB), [], waiting, NOW).start == ()


def test_what_can_never_fit_is_named():
    assert never_fits(Budget(8 * GB), Need(memory=9 * GB)) == "memory"
    assert never_fits(Budget(8 * GB), Need(tokens={"gpu": 1})) == "gpu"
    assert never_fits(Budget(8 * GB), Need(cpu=64.0)) is None  # it is only slow
    assert never_fits(Budget(8 * GB), Need(memory=8 * GB)) is None


def test_how_many_fit_is_what_the_scarcest_allows():
    left = Free(8 * GB, 4.0, {"gpu": 3})
    assert how_many(left, Need(1.0, 3 * GB, {"gpu": 1}), 100) == 2
    assert how_many(left, Need(2.0, GB), 100) == 2
    assert how_many(left, Need(), 7) == 7
    assert how_many(Free(-GB, 4.0, {}), Need(memory=GB), 100) == 0


def test_headroom_is_a_twentieth_at_least_256_mb_and_never_more_than_an_eighth():
    assert headroom(100 * GB) == 5 * GB
    assert headroom(4 * GB) == 256_000_000
    assert headroom(800_000_000) == 100_000_000


def test_more_cores_are_promised_slowly_and_taken_back_fast():
    assert overcommit(1.0, 0.01, waiting=True) == 1.25
    assert overcommit(1.0, 0.01, waiting=False) == 1.0
    assert overcommit(3.0, 0.10, waiting=True) == 3.0
    assert overcommit(3.0, 0.30, waiting=True) == 3.0 * 0.7
    assert overcommit(1.0, 0.30, waiting=True) == 1.0
    assert overcommit(4.0, 0.0, waiting=True) == 4.0
    assert overcommit(3.0, None, waiting=True) == 1.0


sizes = st.integers(0, 10)
jobs = st.lists(st.tuples(sizes, sizes, st.none() | st.floats(0, 50), st.integers(0, 5)), max_size=12)


@given(st.lists(st.tuples(sizes, sizes, st.floats(0, 50)), max_size=6), jobs, st.integers(1, 30))
def test_never_more_is_promised_than_there_is(running, waiting, limit):
    runs = [Started(Need(memory=given), used, NOW + end) for given, used, end in running]
    candidates = [
        Candidate(str(n), rank, Need(memory=memory, cpu=cpu / 10), run)
        for n, (memory, cpu, run, rank) in enumerate(waiting)
    ]
    budget = Budget(limit, sum(run.used for run in runs), cpu=math.inf)
    found = fit(budget, runs, candidates, NOW)
    before = free(budget, runs).memory
    taken = sum(one.need.memory for one in candidates if one.name in found.start)
    assert taken <= max(0, before)
    assert len(set(found.start)) == len(found.start)


@given(jobs, st.integers(1, 30))
def test_on_an_idle_node_the_first_in_line_starts_if_it_can_ever(waiting, limit):
    candidates = [
        Candidate(f"{n:02}", rank, Need(memory=memory), run)
        for n, (memory, _, run, rank) in enumerate(waiting)
        if memory <= limit
    ]
    found = fit(Budget(limit), [], candidates, NOW)
    if candidates:
        assert found.start[0] == min(candidates, key=lambda one: (one.rank, one.name)).name


@given(st.lists(st.tuples(st.integers(1, 10), st.floats(1, 50)), min_size=1, max_size=6), jobs)
def test_what_starts_now_never_puts_off_the_one_for_whom_room_is_made(running, waiting):
    runs = [Started(Need(memory=size), size, NOW + end) for size, end in running]
    used = sum(run.used for run in runs)
    big = Candidate("big", -1, Need(memory=used + 1))
    small = [
        Candidate(str(n), rank, Need(memory=size), run) for n, (size, _, run, rank) in enumerate(waiting)
    ]
    found = fit(Budget(used + 5, used), runs, [big, *small], NOW)
    if found.reserved is None:
        assert found.start[:1] == ("big",)
        return
    at = found.reserved.at
    still = [run for run in runs if run.ends_at > at]
    late = [
        one.need.memory
        for one in small
        if one.name in found.start and (one.run is None or NOW + one.run > at)
    ]
    assert sum(run.used for run in still) + sum(late) + big.need.memory <= used + 5


def test_places_are_as_many_as_the_largest_of_them_leaves_and_say_what_is_scarce():
    left = Free(5 * GB, 4.0, {"gpu": 1.0})
    assert places(left, [Need(memory=2 * GB), Need(memory=GB)], 3, 20) == (5, "memory")
    assert places(left, [Need(tokens={"gpu": 1.0})], 0, 20) == (1, "gpu")
    assert places(left, [Need(cpu=1.0)], 0, 4) is None  # there is room for all
