"""How many workers each pool may have: only who wants too much is capped, and nobody below its minimum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.rules.scaling.fair_share import caps
from millpond.rules.scaling.worker_shares import Claimant

A, B = Claimant("a", 1, 4), Claimant("b", 1, 4)

CASES = {
    "enough for all": (8, [A, B], {"a": 4, "b": 4}, {}),
    "half for each": (4, [A, B], {"a": 1, "b": 1}, {"a": 2, "b": 2}),
    "who has more keeps it until it is idle, and others wait": (
        4,
        [A, B],
        {"a": 3, "b": 1},
        {"a": 2, "b": 1},
    ),
    "what one does not want is the other's": (4, [A, B._replace(wanted=1)], {"a": 1, "b": 1}, {"a": 3}),
    "a minimum is given in any case": (1, [A, B], {"a": 1, "b": 0}, {"a": 1, "b": 1}),
    "the heavier one gets more": (6, [A._replace(weight=2.0), B], {"a": 0, "b": 0}, {"b": 2}),
    "nobody is there": (4, [], {}, {}),
    "free places are dealt out once": (
        8,
        [Claimant(name, 0, 6) for name in "abcde"],
        {"c": 6},
        {"a": 1, "b": 1, "c": 2, "d": 0, "e": 0},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_caps(case):
    capacity, claimants, alive, expected = CASES[case]
    assert caps(capacity, claimants, alive) == expected


@given(
    capacity=st.integers(1, 20),
    pools=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 12), st.floats(0.1, 10), st.integers(0, 8)), max_size=6
    ),
)
def test_growth_never_goes_beyond_the_capacity_but_for_the_minimums(capacity, pools):
    claimants = [
        Claimant(str(n), least, max(least, want), weight) for n, (least, want, weight, _) in enumerate(pools)
    ]
    alive = {str(n): there for n, (_, _, _, there) in enumerate(pools)}
    found = caps(capacity, claimants, alive)
    size = {one.pool: max(alive[one.pool], found.get(one.pool, one.wanted)) for one in claimants}
    for claimant in claimants:
        assert min(claimant.least, claimant.wanted) <= size[claimant.pool]
    least = {one.pool: max(alive[one.pool], one.least) for one in claimants}
    assert sum(size.values()) <= max(capacity, sum(least.values()))
