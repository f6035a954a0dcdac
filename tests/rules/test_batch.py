"""How many ends go to the store at once: by number and by bytes, and fewer when they do not get through."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.jobs.settle_size import MOST, MOST_BYTES, Pace, after_failure, after_success, cut

sizes = st.lists(st.integers(500, 2 * MOST_BYTES), max_size=60)


@pytest.mark.parametrize(
    ("waiting", "most", "number"),
    [
        ([], 10, 0),
        ([700] * 5, 10, 5),
        ([700] * 50, 10, 10),
        ([1 << 20] * 50, 1000, 8),
        ([3 * MOST_BYTES, 700], 1000, 1),  # it must be said some time
        ([700, MOST_BYTES, 700], 1000, 1),
        ([MOST_BYTES - 700, 700, 700], 1000, 2),
    ],
)
def test_as_many_go_together_as_fit(waiting, most, number):
    assert cut(waiting, most) == number


@given(sizes, st.integers(1, MOST))
def test_somebody_always_goes_and_nobody_is_left_behind_who_would_fit(waiting, most):
    number = cut(waiting, most)
    assert min(len(waiting), 1) <= number <= min(len(waiting), most)
    assert number <= 1 or sum(waiting[:number]) <= MOST_BYTES
    assert number in (len(waiting), most) or sum(waiting[: number + 1]) > MOST_BYTES


def test_no_more_are_looked_at_than_go():
    endless = iter(lambda: 1 << 20, None)
    assert cut(endless, MOST) == 8
    assert len(list(islice(endless, 1))) == 1


@given(st.integers(1, MOST))
def test_what_does_not_get_through_is_said_in_halves_down_to_one(said):
    tries = 0
    while said > 1:
        assert after_failure(said) == (said // 2, said)
        said, tries = after_failure(said).most, tries + 1
    assert (after_failure(said).most, tries < 10) == (1, True)


@given(st.integers(1, MOST))
def test_with_each_that_gets_through_it_is_more_again_up_to_all(most):
    pace = Pace(most)
    for _ in range(10):
        before, pace = pace, after_success(pace, pace.most)
        assert before.most < pace.most <= MOST or before.most == pace.most == MOST
    assert pace == Pace()


@given(st.integers(1, MOST), st.data())
def test_the_one_that_never_gets_through_is_found_in_few_tries_and_the_others_get_through(number, data):
    bad, first, pace, failures = data.draw(st.integers(0, number - 1)), 0, Pace(), 0
    while not pace.is_alone or first != bad:
        sent = min(pace.most, number - first)
        if first <= bad < first + sent:
            pace, failures = after_failure(sent), failures + 1
        else:
            first, pace = first + sent, after_success(pace, sent)
    assert failures <= 11
