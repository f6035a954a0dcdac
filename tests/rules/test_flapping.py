"""A pool that goes to and fro between two sizes gets a line a minute; a new size gets its line at once."""

from __future__ import annotations

from itertools import pairwise

from millpond.rules.scaling.flapping import changed, passed


def lines(sizes, every=2.5):
    """What is told of a pool that has these sizes, one after the other: seconds, and the size or changes."""
    known, told, now = None, [], 0.0
    for before, after in pairwise(sizes):
        now += every
        known, changes = passed(known, now)
        if changes:
            told.append((now, f"{changes} changes"))
        known, is_new = changed(known, before, after, now)
        if is_new:
            told.append((now, after))
    return told


def test_a_pool_that_flaps_gets_one_line_and_then_one_a_minute():
    assert lines([0, 1] * 120) == [
        (2.5, 1),
        (62.5, "23 changes"),
        (122.5, "24 changes"),
        (182.5, "24 changes"),
        (242.5, "24 changes"),
        (302.5, "24 changes"),
        (362.5, "24 changes"),
        (422.5, "24 changes"),
        (482.5, "24 changes"),
        (542.5, "24 changes"),
    ]


def test_every_step_to_a_new_size_has_its_line():
    assert lines([1, 5, 9, 20, 19, 8, 0]) == [(2.5, 5), (5.0, 9), (7.5, 20), (15.0, 0)]


def test_after_a_quiet_minute_the_same_step_is_news_again():
    assert lines([0, 1, 0, 1], every=100.0) == [(100.0, 1), (200.0, 0), (300.0, 1)]
