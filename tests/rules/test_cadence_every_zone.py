"""Cron expressions in every zone of the time zone database, around every change of its clocks in ten years.

The judge is `cron_oracle.py`. The same over whole years and more expressions is `tests/proof_recurring`.
"""

from __future__ import annotations

from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.job import MICROSECONDS
from millpond.rules.recurring.cadence import between, count, cron
from tests.rules.cron_oracle import A_DAY, MARGIN, Window, minute_of, offsets_by_probing, offsets_of, walls

BEGIN, END = minute_of(2018, 1, 1), minute_of(2028, 1, 1)
CALENDAR = (BEGIN // A_DAY - 5, END // A_DAY + 5)
A_WEEK = 7 * A_DAY
MINUTE = 60 * MICROSECONDS
AROUND = A_DAY + A_DAY // 2

DENSE = [("*/30 * * * *", "end", "first"), ("10 */3 * * *", "end", "first")]
TABLE = [
    ("0 0 * * *", "end", "first"),
    ("30 2 * * *", "end", "first"),
    ("30 2 * * *", "skip", "both"),
    ("*/20 1-3 * * *", "end", "second"),
    ("15,45 0,1,2,3,23 * * *", "end", "both"),
]


def zones():
    return sorted(available_timezones() - {"localtime", "posixrules"})


def test_every_zone_fires_once_at_each_of_its_instants_around_every_change_of_its_clocks():
    seen, windows = set(), 0
    for name in zones():
        offsets = offsets_by_probing(ZoneInfo(name), BEGIN - A_WEEK, END, A_WEEK)
        for (_, before), (change, offset) in pairwise(offsets):
            begin, end = change - AROUND, change + AROUND
            window = Window(begin, end, offsets_of(offsets, begin - MARGIN, end + MARGIN))
            is_new = (change, before, offset) not in seen
            seen.add((change, before, offset))
            windows += 1
            for expression, gap, fold in (*TABLE, *DENSE) if is_new else TABLE[1:2]:
                judge(name, window, expression, gap, fold)
    assert windows > 4000, "this machine's time zone database has hardly any changes"


def judge(zone, window, expression, gap, fold):
    cadence = cron(expression, zone, gap, fold)
    after, until = window.begin * MINUTE - 1, window.end * MINUTE - 1
    mine = between(cadence, after, until, 10_000)
    theirs = [int(minute) * MINUTE for minute in window.fires(expression, gap, fold, CALENDAR)]
    assert mine == theirs, (zone, expression, gap, fold)
    assert count(cadence, after, until) == len(theirs), (zone, expression, gap, fold)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    """What may stand in a field of numbers."""
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    plain = st.one_of(st.just("*"), number.map(str), span)
    stepped = st.builds("{}/{}".format, st.one_of(st.just("*"), span, number.map(str)), st.integers(1, 30))
    return st.lists(st.one_of(plain, plain, stepped), min_size=1, max_size=2).map(",".join)


weekdays = st.one_of(st.just("*"), field(0, 7), st.sampled_from(["MON-FRI", "SUN", "5L", "0L", "SUN#1"]))
months = st.one_of(st.just("*"), field(1, 12), st.sampled_from(["MAR,OCT", "feb-nov/2"]))
days = st.one_of(st.just("*"), field(1, 31), st.just("L"))
minutes = st.one_of(st.integers(0, 59).map(str), field(0, 59))
expressions = st.builds("{} {} {} {} {}".format, minutes, field(0, 23), days, months, weekdays)
HARD = ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Asia/Gaza"]
SEASONS = [minute_of(2025, 3, 15), minute_of(2025, 9, 1)]  # each with a change of the clocks in all of these
policies = st.tuples(st.sampled_from(["end", "skip"]), st.sampled_from(["first", "second", "both"]))


def is_a_day_at_all(expression: str) -> bool:
    try:
        return bool(cron(expression))
    except OptionError:  # such as 31 February
        return False


@settings(deadline=None, max_examples=60)
@given(expressions.filter(is_a_day_at_all), st.sampled_from(HARD), policies, st.sampled_from(SEASONS))
@example("0 2-2/1 * * *", "Europe/Berlin", ("end", "first"), SEASONS[0])
def test_expressions_made_at_random_fire_as_the_walk_over_the_minutes_says(expression, zone, policy, begin):
    gap, fold = policy
    end = begin + 62 * A_DAY
    offsets = offsets_by_probing(ZoneInfo(zone), begin - MARGIN, end + MARGIN, A_DAY)
    assert len(offsets) == 2
    window = Window(begin, end, offsets_of(offsets, begin - MARGIN, end + MARGIN))
    found = window.fires(expression, gap, fold, (begin // A_DAY - 5, end // A_DAY + 5))
    walls.cache_clear()
    theirs = (found * MINUTE).tolist()
    cadence = cron(expression, zone, gap, fold)
    assert between(cadence, begin * MINUTE - 1, end * MINUTE - 1, 10**7) == theirs
    assert count(cadence, begin * MINUTE - 1, end * MINUTE - 1) == len(theirs)


@pytest.mark.parametrize("expression", ["0 0 * * *", "30 2 29 2 *", "0 12 * * MON#1", "0 9 L * *"])
def test_a_zone_that_never_changes_its_clocks_fires_like_utc_moved_by_its_offset(expression):
    moved = cron(expression, "Asia/Tokyo")
    begin, end = minute_of(2020, 1, 1) * MINUTE, minute_of(2026, 1, 1) * MINUTE
    nine_hours = 9 * 60 * MINUTE
    instants = [at - nine_hours for at in between(cron(expression), begin, end, 5000)]
    assert between(moved, begin - nine_hours, end - nine_hours, 5000) == instants
