"""What a task needs, learned from what its jobs used; and what becomes of jobs when memory runs short."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.resources.learned_needs import (
    HALF_LIFE,
    MARGIN,
    RAISED_FOR,
    RATIO,
    Learned,
    Seen,
    percentile,
    see,
)
from millpond.rules.resources.memory_shortage import Holder, Sequel, Watch, look, sequel, victim

MB = 1_000_000
atoms = st.none() | st.booleans() | st.floats() | st.integers(-(10**9), 10**9) | st.text(max_size=3)
json_values = st.recursive(atoms, lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def after(*peaks: int, now: float = 0.0) -> Learned:
    learned = Learned()
    for peak in peaks:
        learned = learned.after(now, memory=peak, cpu=None)
    return learned


def test_nothing_is_asked_for_while_nothing_is_known():
    assert (Learned().memory_request(0.0), Learned().cpu_request(), Learned().longest()) == (0, 0.0, None)


def test_the_request_is_a_bit_above_the_peak():
    request = after(200 * MB).memory_request(0.0)
    assert 200 * MB * MARGIN <= request <= 200 * MB * MARGIN * RATIO


@pytest.mark.parametrize("peak", [300, 470, 499, 500])
def test_what_keeps_within_its_declaration_counts_as_what_it_declares(peak):
    learned = after(*[peak * MB] * 30)
    assert learned.memory_request(0.0) > peak * MB * MARGIN
    assert learned.memory_for(500 * MB, 0.0) == 500 * MB
    short = learned.after_shortage(0.0, had=500 * MB, used=peak * MB, double=False)  # of others' making
    assert short.memory_for(500 * MB, 1.0) == 500 * MB


def test_what_holds_more_than_it_declares_counts_as_what_it_was_seen_to_hold_and_a_bit_more():
    learned = after(*[600 * MB] * 30)
    assert learned.memory_for(500 * MB, 0.0) == learned.memory_request(0.0) > 600 * MB * MARGIN
    assert learned.memory_for(0, 0.0) == learned.memory_request(0.0)


def test_what_keeps_within_the_cores_it_declares_counts_as_them():
    learned = Learned().after(0.0, memory=0, cpu=1.0)
    assert (learned.cpu_for(1.0), learned.cpu_for(0.5)) == (1.0, learned.cpu_request())


def test_one_in_a_hundred_does_not_set_the_request_and_one_in_ten_does():
    assert after(*[50 * MB] * 99, 900 * MB).memory_request(0.0) < 70 * MB
    assert after(*[50 * MB] * 9, 900 * MB).memory_request(0.0) > 900 * MB


def test_what_was_seen_long_ago_fades():
    learned = after(*[900 * MB] * 5)
    later = 10 * HALF_LIFE
    for _ in range(5):
        learned = learned.after(later, memory=50 * MB, cpu=None)
    assert learned.memory_request(later) < 70 * MB


def test_cores_are_learned_in_tenths():
    learned = Learned().after(0.0, memory=0, cpu=1.0)
    assert 1.0 <= learned.cpu_request() <= 1.2


def test_after_running_out_the_request_is_at_least_what_was_used_and_twice_what_was_given_if_asked():
    learned = Learned().after_shortage(0.0, had=100 * MB, used=130 * MB, double=False)
    assert 130 * MB <= learned.memory_request(1.0) < 170 * MB
    learned = learned.after_shortage(0.0, had=150 * MB, used=10 * MB, double=True)
    assert learned.memory_request(1.0) == 300 * MB


def test_what_was_written_down_is_known_again_and_goes_on_fading_by_another_clock():
    learned = after(*[200 * MB] * 4, now=5.0).after_run(5.0, 3.0).after(5.0, memory=0, cpu=1.5)
    learned = learned.after_shortage(5.0, had=400 * MB, used=0, double=True)
    value = json.loads(json.dumps(learned.to_value(5.0)))
    again = Learned.from_value(value, 1_000_000.0, 60.0)
    assert again.memory_request(1_000_000.0) == 800 * MB
    assert again.memory_request(1_000_000.0 + RAISED_FOR) == after(200 * MB).memory_request(0.0)
    assert (again.longest(), again.cpu_request()) == (learned.longest(), learned.cpu_request())
    assert Learned.from_value(value, 0.0, 20 * HALF_LIFE) == Learned(
        Seen({}, 0.0), Seen({}, 0.0), Seen({}, 0.0)
    )


@given(json_values)
def test_whatever_was_written_by_somebody_else_is_read_without_harm(value):
    learned = Learned.from_value({"memory": value, "cpu": value, "run": value, "raised": value}, 9.0, 1.0)
    assert learned.memory_request(9.0) >= 0
    assert learned.cpu_request() >= 0.0
    assert Learned.from_value(value, 9.0, 1.0).memory_request(9.0) == 0


def test_a_raised_request_is_forgotten_after_a_while():
    learned = Learned().after_shortage(0.0, had=100 * MB, used=0, double=True)
    assert learned.memory_request(RAISED_FOR - 1) == 200 * MB
    assert learned.memory_request(RAISED_FOR + 1) == 0


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=40), st.floats(0.05, 1.0))
def test_a_percentile_is_never_below_the_true_one_and_at_most_a_bucket_above(values, share):
    seen = Seen()
    for value in values:
        seen = see(seen, value, 0.0)
    found = percentile(seen, share)
    true = sorted(values)[max(0, -(-int(share * len(values) * 1e9) // 10**9) - 1)]
    assert found is not None
    assert found >= true * 0.999


# --- shortage ------------------------------------------------------------------------------------------
def test_a_shortage_first_holds_and_after_a_second_stops_a_job():
    watch, step = look(Watch(), free=10, headroom=100, stalled=None, now=50.0)
    assert step == "hold"
    watch, step = look(watch, free=10, headroom=100, stalled=None, now=50.5)
    assert step == "hold"
    watch, step = look(watch, free=10, headroom=100, stalled=None, now=51.0)
    assert step == "stop"
    watch, step = look(watch, free=10, headroom=100, stalled=None, now=51.5)
    assert step == "hold"  # the one that was stopped needs a moment to go


def test_a_shortage_that_is_over_is_forgotten():
    watch, _ = look(Watch(), free=10, headroom=100, stalled=None, now=50.0)
    watch, step = look(watch, free=60, headroom=100, stalled=None, now=50.5)
    assert (watch.since, step) == (None, "admit")


@pytest.mark.parametrize(
    ("free", "stalled", "step"), [(80, 0.5, "hold"), (80, 0.1, "admit"), (120, 0.5, "admit")]
)
def test_thrashing_counts_only_when_memory_is_scarce(free, stalled, step):
    assert look(Watch(), free, 100, stalled, 1.0)[1] == step


def holder(
    name: str, used: int = 50, given: int = 0, began_at: float = 0.0, *, retriable: bool = True
) -> Holder:
    return Holder(name, used * MB, given * MB, began_at, retriable)


def test_the_newest_goes_of_those_that_hold_more_than_they_were_given():
    holders = [
        holder("liar", 200, 10, 1.0),
        holder("new liar", 200, 10, 2.0),
        holder("honest", 200, 300, 3.0),
        holder("once only", 200, 10, 4.0, retriable=False),
    ]
    assert victim(holders) == "new liar"
    assert victim(holders[2:]) == "honest"
    assert victim(holders[3:]) == "once only"


def test_nobody_goes_whose_end_would_not_help():
    assert victim([holder("tiny", 1)]) is None
    assert victim([]) is None


def test_a_job_is_stopped_twice_then_given_more_then_dead():
    steps = [sequel(times, had_all=False, by_the_kernel=False) for times in (1, 2, 3, 4)]
    assert steps == [Sequel(False, False), Sequel(False, False), Sequel(False, True), Sequel(True, True)]


def test_what_the_kernel_killed_is_given_twice_as_much_and_what_had_all_is_dead():
    assert sequel(1, had_all=False, by_the_kernel=True) == Sequel(final=False, double=True)
    assert sequel(1, had_all=True, by_the_kernel=True) == Sequel(final=True, double=False)
    assert sequel(1, had_all=True, by_the_kernel=False) == Sequel(final=True, double=False)
