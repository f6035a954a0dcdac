"""Every zone of the time zone database, every minute of ten years, a table of expressions.

The judge is `tests/rules/cron_oracle.py`, which walks the minutes of UTC and shares no code with what it
judges. No instant may come twice, none may be missing but by the stated policies. Each zone is asked; the
judge is asked once for all zones of a part whose clocks went alike.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

from millpond.job import MICROSECONDS
from millpond.rules.recurring.cadence import Cron, between, count, cron, next_after
from tests.rules.cron_oracle import (
    A_DAY,
    MARGIN,
    Minutes,
    Window,
    minute_of,
    offset,
    offsets_by_probing,
    offsets_of,
)

pytestmark = pytest.mark.slow

BEGIN, END = minute_of(2018, 1, 1), minute_of(2028, 1, 1)
CALENDAR = (BEGIN // A_DAY - 5, END // A_DAY + 5)
MINUTE = 60 * MICROSECONDS
PROBE = 6 * 60  # minutes
PARTS = 16  # so that one takes a minute or so, and several can be looked at together

TABLE = [
    ("*/30 * * * *", "end", "first"),
    ("7,37 * * * *", "end", "first"),
    ("0 */2 * * *", "end", "first"),
    ("30 1/3 * * *", "skip", "second"),
    ("0 0-23 * * *", "end", "first"),
    *(("0 0 * * *", gap, fold) for gap in ("end", "skip") for fold in ("first", "second", "both")),
    *(("30 2 * * *", gap, fold) for gap in ("end", "skip") for fold in ("first", "second", "both")),
    ("0 2,3 * * *", "end", "first"),
    ("*/15 0-4 * * *", "end", "second"),
    ("59 23 * * *", "end", "both"),
    ("30 2 * * SUN", "end", "first"),
    ("0 1 L * *", "end", "first"),
    ("15 2 * * 0L", "end", "first"),
    ("15 2 * * SUN#2", "end", "second"),
    ("0 0 1 JAN,apr-oct/3 *", "end", "first"),
    ("0 3 13 * FRI", "end", "first"),
    ("30 2 29 2 *", "end", "first"),
    ("0 9-17/2 * * MON-FRI", "end", "first"),
]
WALKED = [("30 2 * * *", "end", "first"), ("0 */6 * * *", "end", "first"), ("0 0 * * 0", "end", "second")]

Offsets = tuple[tuple[int, int], ...]
parts = pytest.mark.parametrize("part", range(PARTS))


@cache
def zones() -> list[str]:
    """All of them; those whose clocks seem to go alike stand side by side, so that they share a judge."""

    def glance(name: str) -> tuple[list[int], str]:
        return [offset(ZoneInfo(name), minute) for minute in range(BEGIN, END, 30 * A_DAY)], name

    return sorted(available_timezones() - {"localtime", "posixrules"}, key=glance)


def zones_of(part: int) -> list[str]:
    """The zones of one part."""
    first, last = (len(zones()) * edge // PARTS for edge in (part, part + 1))
    return zones()[first:last]


@cache
def groups(part: int) -> dict[Offsets, list[str]]:
    """The zones of a part, by how their clocks went."""
    found: dict[Offsets, list[str]] = defaultdict(list)
    for name in zones_of(part):
        offsets = offsets_by_probing(ZoneInfo(name), BEGIN - MARGIN, END + MARGIN, PROBE)
        found[tuple(offsets)].append(name)
    return found


def window_of(offsets: Offsets) -> Window:
    """Ten years of clocks that went like this."""
    return Window(BEGIN, END, offsets_of(list(offsets), BEGIN - MARGIN, END + MARGIN))


def test_the_database_has_the_zones_of_the_world_and_each_is_in_one_part():
    assert sorted(name for part in range(PARTS) for name in zones_of(part)) == sorted(zones())
    assert len(zones()) > 550


@parts
def test_every_zone_names_exactly_the_instants_that_the_walk_over_all_minutes_finds(part: int):
    instants = 0
    for offsets, names in groups(part).items():
        window = window_of(offsets)
        for expression, gap, fold in TABLE:
            theirs = window.fires(expression, gap, fold, CALENDAR) * MINUTE
            for name in names:
                judge(name, cron(expression, name, gap, fold), theirs)
            instants += len(theirs) * len(names)
    print(f"part {part}: {len(zones_of(part))} zones, {len(TABLE)} expressions, {instants} instants agree")


def judge(zone: str, cadence: Cron, theirs: Minutes) -> None:
    mine = between(cadence, BEGIN * MINUTE - 1, END * MINUTE - 1, 10**8)
    assert np.array_equal(np.array(mine, np.int64), theirs), (zone, cadence)
    assert count(cadence, BEGIN * MINUTE - 1, END * MINUTE - 1) == len(theirs), (zone, cadence)


@parts
def test_stepping_from_each_instant_to_the_next_leads_through_all_of_them(part: int):
    """As a planner goes: what comes next depends on the last instant and on nothing else."""
    steps = 0
    for offsets, names in groups(part).items():
        window = window_of(offsets)
        for expression, gap, fold in WALKED:
            theirs = (window.fires(expression, gap, fold, CALENDAR) * MINUTE).tolist()
            for name in names:
                cadence = cron(expression, name, gap, fold)
                found = [next_after(cadence, after) for after in (BEGIN * MINUTE - 1, *theirs[:-1])]
                assert found == theirs, (name, expression, gap, fold)
                steps += len(found)
    print(f"part {part}: {len(zones_of(part))} zones, {len(WALKED)} expressions, {steps} steps agree")
