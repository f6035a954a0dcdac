"""How pools share a machine: minimums first, then whoever has least of what it deserves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.scaling.worker_shares import Claimant, share


@pytest.mark.parametrize(
    ("capacity", "claimants", "given"),
    [
        (8, [Claimant("a", 1, 3), Claimant("b", 1, 4)], {"a": 3, "b": 4}),  # there is room for all
        (4, [Claimant("a", 1, 9), Claimant("b", 1, 9)], {"a": 2, "b": 2}),
        (9, [Claimant("a", 0, 9, weight=2.0), Claimant("b", 0, 9)], {"a": 6, "b": 3}),
        (6, [Claimant("a", 0, 1), Claimant("b", 0, 9)], {"a": 1, "b": 5}),  # what one leaves the other gets
        (4, [Claimant("a", 3, 9), Claimant("b", 1, 9)], {"a": 3, "b": 1}),
        (1, [Claimant("a", 2, 9), Claimant("b", 1, 9)], {"a": 2, "b": 1}),  # minimums are guaranteed
        (6, [Claimant("a", 0, 9, urgency=10.0), Claimant("b", 0, 9, urgency=0.1)], {"a": 6, "b": 0}),
        (4, [], {}),
    ],
)  # fmt: skip
def test_who_gets_how_many(capacity, claimants, given):
    assert share(capacity, claimants) == given


claims = st.lists(
    st.builds(
        Claimant,
        st.text("abcdefgh", min_size=1, max_size=3),
        st.integers(0, 5),
        st.integers(0, 30),
        st.floats(0.1, 10),
        st.floats(0.1, 10),
    ),
    max_size=8,
    unique_by=lambda claimant: claimant.pool,
)


@given(st.integers(0, 60), claims)
def test_nobody_gets_more_than_it_wants_or_less_than_its_minimum(capacity, claimants):
    given = share(capacity, claimants)
    for claimant in claimants:
        assert min(claimant.least, claimant.wanted) <= given[claimant.pool] <= claimant.wanted


@given(st.integers(0, 60), claims)
def test_no_more_is_given_than_there_is_and_nothing_that_fits_is_left(capacity, claimants):
    given = share(capacity, claimants)
    least = sum(min(claimant.least, claimant.wanted) for claimant in claimants)
    used = sum(given.values())
    assert used <= max(capacity, least)
    for claimant in claimants:
        if given[claimant.pool] < claimant.wanted:
            assert used >= capacity
