"""A second opinion on cron expressions: walks every minute of UTC, looks at the wall, and asks nobody else.

Its own small parser of the fields, its own calendar (NumPy's), its own notion of gaps and folds: a wall that
was shown before, one that will be shown again, walls that were jumped over. Shares no line and no library
with what it judges, but for the offsets of the zones, which both read from the time zone database.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
A_DAY = 1440
MARGIN = 2 * A_DAY  # minutes on both sides of a window, for walls shown twice across its edge

Minutes = NDArray[np.int64]
Marks = NDArray[np.bool_]


def minute_of(year: int, month: int, day: int) -> int:
    """Minutes since 1970 of a midnight in UTC."""
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) // 60


def numbers(field: str, low: int, high: int, names: list[str] = [], first: int = 0) -> set[int]:  # noqa: B006
    """The numbers of a field without L and #."""

    def number(text: str) -> int:
        return names.index(text) + first if text in names else int(text)

    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        begin, dash, end = span.partition("-")
        if span == "*":
            begin, end = str(low), str(high)
        elif not dash:
            end = str(high) if step else begin
        found |= set(range(number(begin), number(end) + 1, int(step or 1)))
    return found


@cache
def walls(expression: str, first: int, last: int) -> Marks:
    """For every minute of these days of a wall calendar, without zones: does the expression match?"""
    minute, hour, day, month, weekday = expression.upper().split()
    days = np.arange(first, last)
    date = days.astype("datetime64[D]")
    months = date.astype("datetime64[M]")
    of_month = (date - months.astype("datetime64[D]")).astype(int) + 1
    length = (
        (months + np.timedelta64(1, "M")).astype("datetime64[D]") - months.astype("datetime64[D]")
    ).astype(int)
    in_month = of_month == length if day == "L" else np.isin(of_month, list(numbers(day, 1, 31)))
    in_week = _in_week(weekday, (days + 4) % 7, of_month, length)  # 1970 began on a Thursday
    is_both = day.startswith("*") or weekday.startswith("*")
    in_date = in_month & in_week if is_both else in_month | in_week
    in_date &= np.isin(months.astype(int) % 12 + 1, list(numbers(month, 1, 12, MONTHS, 1)))
    time = np.arange(A_DAY)
    in_day = np.isin(time % 60, list(numbers(minute, 0, 59))) & np.isin(
        time // 60, list(numbers(hour, 0, 23))
    )
    both: Marks = np.logical_and.outer(in_date, in_day).ravel()
    return both


def _in_week(field: str, of_week: Minutes, of_month: Minutes, last: Minutes) -> Marks:
    found: Marks
    if field.endswith("L"):
        found = (of_week == int(field[:-1]) % 7) & (of_month > last - 7)
    elif "#" in field:
        name, _, nth = field.partition("#")
        found = (of_week == numbers(name, 0, 7, DAYS).pop() % 7) & ((of_month + 6) // 7 == int(nth))
    else:
        found = np.isin(of_week, [number % 7 for number in numbers(field, 0, 7, DAYS)])
    return found


def is_about_distances(expression: str) -> bool:
    hours = re.sub(r"\b(\d+)-\1(/\d+)?\b", r"\1", expression.split()[1])  # a span of one hour is that hour
    return "*" in hours or "/" in hours or numbers(hours, 0, 23) == set(range(24))


class Window:
    """The minutes of a piece of time in one zone, with the wall that each shows."""

    def __init__(self, begin: int, end: int, offsets: Minutes) -> None:
        """`offsets` has one number, in minutes, for every minute from begin - MARGIN to end + MARGIN."""
        self.begin, self.end = begin, end
        self.utc = np.arange(begin - MARGIN, end + MARGIN)
        self.wall = self.utc + offsets
        highest = np.maximum.accumulate(self.wall)
        lowest = np.minimum.accumulate(self.wall[::-1])[::-1]
        self.was_shown = np.zeros(len(self.utc), bool)
        self.was_shown[1:] = highest[:-1] >= self.wall[1:]
        self.is_shown_again = np.zeros(len(self.utc), bool)
        self.is_shown_again[:-1] = lowest[1:] <= self.wall[:-1]
        self.jumps = [
            (int(place), int(highest[place - 1]) + 1, int(self.wall[place]))
            for place in np.nonzero(self.wall[1:] > highest[:-1] + 1)[0] + 1
        ]
        # A window begins in the middle of time: what its very first wall jumped over is not its business.

    def fires(self, expression: str, gap: str, fold: str, calendar: tuple[int, int]) -> Minutes:
        """The minutes of UTC, within the window, at which the expression fires; `calendar` are days."""
        match, origin = walls(expression, *calendar), calendar[0] * A_DAY
        fits = match[self.wall - origin]
        if not is_about_distances(expression):
            if fold == "first":
                fits &= ~self.was_shown
            if fold == "second":
                fits &= ~self.is_shown_again
            for place, low, high in self.jumps if gap == "end" else ():
                fits[place] |= match[low - origin : high - origin].any()
        inside: Minutes = self.utc[MARGIN:-MARGIN][fits[MARGIN:-MARGIN]]
        return inside


def offset(zone: ZoneInfo, minute: int) -> int:
    found = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert found is not None
    assert found.seconds % 60 == 0
    return int(found.total_seconds()) // 60


def offsets_by_probing(zone: ZoneInfo, begin: int, end: int, probe: int) -> list[tuple[int, int]]:
    """From which minute on the zone keeps which offset; asks every `probe` minutes, then more closely."""
    known = offset(zone, begin)
    found = [(begin, known)]
    for high in range(begin + probe, end + probe, probe):
        now = offset(zone, min(high, end))
        if now != known:
            low = high - probe
            for step in (A_DAY, 60, 1):
                while offset(zone, low + step) == known:
                    low += step
            found.append((low + 1, now))
            known = now
    return found


def offsets_of(found: list[tuple[int, int]], begin: int, end: int) -> Minutes:
    """The offset of every minute of a piece of time."""
    starts = [begin, *(max(begin, min(start, end)) for start, _ in found[1:]), end]
    return np.repeat([offset for _, offset in found], np.diff(starts))
