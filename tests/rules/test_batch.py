"""How many ends go to the store at once: by number and by bytes, and fewer when they do not get through."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules import batch
from millpond.rules.batch import MOST, MOST_BYTES, after_failure, after_success, cut

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
        assert after_failure(said) == said // 2
        said, tries = after_failure(said), tries + 1
    assert (after_failure(said), tries < 10) == (1, True)


@given(st.integers(1, MOST))
def test_with_each_that_gets_through_it_is_more_again_up_to_all(most):
    for _ in range(10):
        before, most = most, after_success(most)
        assert before < most <= MOST or before == most == MOST
    assert most == batch.MOST
