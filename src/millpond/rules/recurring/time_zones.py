"""Time zones: which names are good, and in which stretches of time a zone keeps one offset.

Between two changes of its clocks a zone is plain UTC plus an offset, and everything about recurring tasks is
decided within such stretches; gaps and folds are what lies between two of them. Seconds since 1970 here:
UTC ones, and wall-clock ones (UTC plus offset), which name the time on the wall and not an instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from millpond.errors import OptionError
from millpond.options import nearest
from millpond.units import shown

DAY = 86_400
REACH = 60  # years ahead that are looked at; what does not happen in them never does
_LAST_YEAR = 9990  # of the calendar; a clock that says more is wrong
_OF_THIS_HOST = {"localtime", "posixrules"}  # each machine means another zone by them


class Change(NamedTuple):
    """The clocks of a zone are put forward or back."""

    at: int  # UTC
    before: int  # offset to UTC in seconds
    after: int


class Stretch(NamedTuple):
    """A time in which a zone keeps one offset. Where nothing changes at an edge, both sides are alike."""

    begin: int  # UTC, included
    end: int  # UTC, not included
    before: int  # the offset up to `begin`
    offset: int
    after: int  # the offset from `end` on

    @property
    def is_after_gap(self) -> bool:
        """Were the clocks put forward at its begin?"""
        return self.offset > self.before


def check_zone(name: object) -> str:
    """The name, if a zone has it."""
    if not isinstance(name, str) or not name:
        raise OptionError(
            f"timezone must be the name of a zone such as 'Europe/Paris' or 'UTC', not {shown(name)}"
        )
    if name in _OF_THIS_HOST:
        raise OptionError(f"timezone={name!r} means another zone on every machine; name one: 'Europe/Paris'")
    try:
        _zone(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise OptionError(_unknown(name)) from None
    return name


def _unknown(name: str) -> str:
    known = available_timezones()
    if not known:
        return (
            f"timezone={name!r} cannot be looked up: this machine has no time zone database. "
            "Install the package tzdata (`pip install tzdata`), or use timezone='UTC'"
        )
    alike = sorted(zone for zone in known if zone.lower().split("/")[-1] == name.lower().split("/")[-1])
    hint = f", did you mean {alike[0]!r}?" if alike else nearest(name, known)
    if "did you mean" not in hint:  # it would list all of them
        hint = "; they are named like 'Europe/Paris' and 'UTC'"
    return f"timezone={shown(name)} is not in the time zone database{hint}"


@cache
def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def offset_at(zone: str, at: int) -> int:
    """The offset to UTC, in seconds, that the zone keeps at that instant."""
    offset = datetime.fromtimestamp(at, _zone(zone)).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)


def stretches(zone: str, after: int) -> Iterator[Stretch]:
    """Every stretch from the one that holds `after` on, for some decades; a new year begins a new one.

    The first of them begins early enough for a fold at its begin to be seen.
    """
    begin = after - 2 * DAY  # no fold is longer
    offset = before = offset_at(zone, begin)
    first = datetime.fromtimestamp(begin, UTC).year
    for year in range(first, min(first + REACH, _LAST_YEAR)):
        new_year = Change(_new_year(year + 1), 0, 0)
        for change in (*changes(zone, year), new_year):
            if change.at <= begin:
                continue
            following = offset if change is new_year else change.after
            if change.at > after:
                yield Stretch(begin, change.at, before, offset, following)
            begin, before, offset = change.at, offset, following


@lru_cache(maxsize=8192)
def changes(zone: str, year: int) -> tuple[Change, ...]:
    """The changes of a zone's clocks in a year of UTC.

    Found by asking once a day: no zone has put its clocks forward and back within one day.
    """
    if zone == "UTC":
        return ()
    found = []
    known = offset_at(zone, _new_year(year) - 1)
    for day in range(_new_year(year) + DAY - 1, _new_year(year + 1), DAY):
        offset = offset_at(zone, day)
        if offset != known:
            found.append(Change(_when(zone, day - DAY, day, known), known, offset))
            known = offset
    return tuple(found)


def _when(zone: str, low: int, high: int, before: int) -> int:
    """The first second that no longer has the offset `before`; `low` still has it, `high` has not."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(zone, middle) == before:
            low = middle
        else:
            high = middle
    return high


def _new_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
