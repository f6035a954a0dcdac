"""Cron expressions: which instants one names in a time zone, and what is wrong with one that names none.

cronsim reads the expression; what a time on the wall is worth is decided here. A fixed hour is a
promise about the wall: it keeps it through gaps and folds by policy, once a day. A wildcard or a step in the
hour field is a promise about distances: it fires whenever the wall shows a match, so in both hours of a fold.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import date, datetime
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

from cronsim import CronSim, CronSimError

from millpond.errors import OptionError
from millpond.options import nearest
from millpond.rules.recurring.time_zones import DAY, Stretch, stretches
from millpond.units import shown

Gap = Literal["end", "skip"]
Fold = Literal["first", "second", "both"]

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = {  # in the words of cronsim's errors: what each takes
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L (the last day) or LW (the last weekday), and a day that its months have",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 (0 and 7 are Sunday), SUN-SAT, 5L (the last Friday) or MON#2 (the second Monday)",
}
_FORMS = "alone, in lists (1,15), rising ranges (1-5) and steps (*/5)"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a wall without a zone
_ORDINAL = _EPOCH.toordinal()
_LONGEST_TEXT = 200
_DEGENERATE = re.compile(r"\b(\w+)-\1/[0-9]+", re.IGNORECASE)  # "5-5/2" is 5; cronsim reads "5/2"


class Rule(NamedTuple):
    """An expression that was checked, with its zone and policies."""

    expression: str
    timezone: str
    gap: Gap
    fold: Fold


def check_expression(text: object) -> str:
    """The expression in cronsim's terms; an error says which field is wrong and what it takes."""
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise OptionError(f"cron must be an expression such as '0 3 * * *' or '@daily', not {shown(text)}")
    expression = _DEGENERATE.sub(r"\1", " ".join(text.split()))
    if expression.startswith("@"):
        return _nickname(expression)
    count = len(expression.split())
    if count not in {5, 6}:
        raise OptionError(
            f"cron={text!r} has {count} fields; it takes five (minute hour day month weekday), or six with "
            "seconds first, or a nickname such as '@daily'"
        )
    try:
        next(CronSim(expression, datetime(2000, 1, 1)))  # noqa: DTZ001
    except StopIteration:
        raise OptionError(f"cron={text!r} matches no day of any year: change its day or month") from None
    except (CronSimError, ValueError) as error:
        raise OptionError(f"cron={text!r}: {_complaint(expression, str(error))}") from None
    return expression


def _nickname(text: str) -> str:
    if text.lower() in NICKNAMES:
        return NICKNAMES[text.lower()]
    if text.lower() == "@reboot":
        raise OptionError(
            "cron='@reboot' has no meaning on many nodes; mode='continuous' keeps a task running"
        )
    if text.lower().startswith("@every"):
        raise OptionError(f"cron={text!r} is an interval: write every={text[6:].strip() or '5m'!r}")
    raise OptionError(f"cron={text!r} is not a nickname{nearest(text, NICKNAMES)}")


def _complaint(expression: str, error: str) -> str:
    fields = expression.split()
    names = list(FIELDS)[6 - len(fields) :]
    name = error.removeprefix("Bad ")
    if name not in names:
        return f"a number in it is too long ({error})"
    value = fields[names.index(name)]
    hint = ""
    if "?" in value:
        hint = "; write * for ?"
    elif "H" in value.upper() and name != "month":
        hint = "; for a spread of your own use jitter="
    elif "-" in value and name == "day-of-week":
        hint = "; SUN is 0, so FRI-SUN is written FRI-7, and SAT-MON is SAT,SUN,MON"
    return f"the {name} field {value!r} is not right: it takes {FIELDS[name]}, {_FORMS}{hint}"


class Walls(NamedTuple):
    """The wall-clock times that an expression matches, on a calendar without a zone."""

    days: CronSim  # asked only which days match
    times: tuple[int, ...]  # seconds of such a day, rising
    is_interval: bool  # the hour field is a wildcard, a step, or all hours: about distances, not the wall

    def has_day(self, day: int) -> bool:
        """Does the day, counted from 1970, match?"""
        when = date.fromordinal(_ORDINAL + day)
        return when.month in self.days.months and self.days.match_day(when)

    def between(self, low: int, high: int) -> Iterator[int]:
        """Those from `low` on and before `high`, rising."""
        for day in range(low // DAY, -(-high // DAY)):
            if self.has_day(day):
                for place in range(bisect_left(self.times, low - day * DAY), len(self.times)):
                    wall = day * DAY + self.times[place]
                    if wall >= high:
                        return
                    yield wall

    def how_many(self, low: int, high: int) -> int:
        """How many there are from `low` on and before `high`. Counts by days."""
        if low >= high:
            return 0
        (first, early), (last, late) = divmod(low, DAY), divmod(high, DAY)
        whole = len(self.times) * sum(map(self.has_day, range(first, last)))
        begun = bisect_left(self.times, late) if late and self.has_day(last) else 0
        return whole + begun - (bisect_left(self.times, early) if self.has_day(first) else 0)


@lru_cache(maxsize=1024)
def walls_of(expression: str) -> Walls:
    """What a checked expression matches."""
    parsed = CronSim(expression, _EPOCH)
    times = product(sorted(parsed.hours), sorted(parsed.minutes), sorted(parsed.seconds))
    hours = expression.split()[-4]
    is_interval = "*" in hours or "/" in hours or len(parsed.hours) == 24
    return Walls(
        parsed, tuple(3600 * hour + 60 * minute + second for hour, minute, second in times), is_interval
    )


def fires(rule: Rule, after: int) -> Iterator[int]:
    """Every instant (UTC seconds) after this one, rising, none twice; ends after decades without one."""
    walls, last = walls_of(rule.expression), after
    for stretch in stretches(rule.timezone, after):
        if stretch.begin > last and _fires_after_gap(rule, walls, stretch):
            last = stretch.begin
            yield last
        low, high = _window(rule, walls, stretch)
        for wall in walls.between(max(low, last + 1 + stretch.offset), high):
            last = wall - stretch.offset
            yield last


def count(rule: Rule, after: int, until: int) -> int:
    """How many instants lie after the one and not after the other."""
    walls, total = walls_of(rule.expression), 0
    for stretch in stretches(rule.timezone, after):
        if stretch.begin > until:
            break
        low, high = _window(rule, walls, stretch)
        total += walls.how_many(max(low, after + 1 + stretch.offset), min(high, until + 1 + stretch.offset))
        if stretch.begin > after and _fires_after_gap(rule, walls, stretch):
            begin = stretch.begin + stretch.offset  # if that wall matches too, the two are one
            total += 1 - walls.how_many(begin, begin + 1)
    return total


def _window(rule: Rule, walls: Walls, stretch: Stretch) -> tuple[int, int]:
    """The walls of a stretch that count: in a fold the policy leaves out the first or the second showing."""
    low, high = stretch.begin + stretch.offset, stretch.end + stretch.offset
    if not walls.is_interval and rule.fold == "first":
        low = max(low, stretch.begin + stretch.before)
    if not walls.is_interval and rule.fold == "second":
        high = min(high, stretch.end + stretch.after)
    return low, high


def _fires_after_gap(rule: Rule, walls: Walls, stretch: Stretch) -> bool:
    """Does the gap at its begin swallow a match that is made up for at the gap's end?"""
    if rule.gap != "end" or walls.is_interval or not stretch.is_after_gap:
        return False
    return walls.how_many(stretch.begin + stretch.before, stretch.begin + stretch.offset) > 0
