"""Where a node and its store differ, and when that is sure."""

from __future__ import annotations

from millpond.rules.jobs.reconcile import Difference, confirmed, difference

A, B, C = ("a", 1), ("b", 1), ("c", 1)


def test_what_both_know_is_no_difference():
    assert not difference({A, B}, {A, B}, {A})


def test_an_end_that_waits_for_the_store_is_known_and_not_missed():
    assert not difference({A}, {A, B}, {A})


def test_what_only_the_store_knows_is_unknown_and_what_only_the_node_runs_is_missing():
    assert difference({A, B}, {A, C}, {A, C}) == (frozenset({B}), frozenset({C}))


def test_another_claim_of_the_same_job_is_another():
    assert difference({("a", 3)}, {A}, {A}) == (frozenset({("a", 3)}), frozenset({A}))


def test_only_what_was_seen_twice_is_sure():
    first, second = Difference(frozenset({A, B}), frozenset({C})), Difference(frozenset({B}), frozenset())
    assert confirmed(first, second) == (frozenset({B}), frozenset())
    assert not confirmed(Difference(), second)
