"""When a recurring task is due: its cadence and an instant in, instants out.

The next instant follows from the schedule and the last scheduled one, never from `now`: nothing drifts, and
every node names the same instants without asking another. Intervals are counted in UTC from a fixed anchor;
cron expressions are read in their time zone (`cron.py`). Jitter moves when a tick is let go, not its name.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import get_args

import msgspec

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Instant
from millpond.options import nearest
from millpond.rules.jobs.retry import share
from millpond.rules.recurring.cron import Fold, Gap, Rule, check_expression
from millpond.rules.recurring.cron import count as count_cron
from millpond.rules.recurring.cron import fires as fires_cron
from millpond.rules.recurring.time_zones import REACH, check_zone
from millpond.units import seconds, shown

SHORTEST = 0.1  # seconds; what should run without a pause is a continuous task
LONGEST = 36_525 * 86_400.0
MOST = 1000  # instants in one answer
_NARROW = 4096 * MICROSECONDS  # where the search backwards begins; it widens eightfold
_WIDEST = REACH * 366 * 86_400 * MICROSECONDS


class Every(msgspec.Struct, frozen=True, tag="every"):
    """Due at `anchor` and every whole number of periods from it, in both directions."""

    period: float  # seconds
    anchor: Instant = 0

    @property
    def step(self) -> int:
        """The period in microseconds."""
        return round(self.period * MICROSECONDS)


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Due when the clocks of a time zone show a match."""

    expression: str
    timezone: str = "UTC"
    gap: Gap = "end"  # what a fixed hour does when the clocks jump over it: run at the end of the gap, or not
    fold: Fold = "first"  # ... and when they show it twice

    @property
    def rule(self) -> Rule:
        """The same as `rules/recurring/cron.py` takes it."""
        return Rule(self.expression, self.timezone, self.gap, self.fold)


Cadence = Every | Cron


def every(period: float | timedelta | str, *, anchor: Instant = 0) -> Every:
    """An interval. Without an anchor it is counted from 1970: "1d" is midnight UTC, "1h" the full hour."""
    length = seconds(period, name="every")
    if not SHORTEST <= length <= LONGEST:
        raise OptionError(
            f"every must be between {SHORTEST:g} s and a century, not {shown(period)}; a task that should "
            "run without a pause is mode='continuous'"
        )
    return Every(round(length * MICROSECONDS) / MICROSECONDS, anchor)  # instants are whole microseconds


def cron(expression: str, timezone: str = "UTC", gap: str = "end", fold: str = "first") -> Cron:
    """A cron expression in a time zone; `@daily` and its kin are written out."""
    for name, value, kind in (("gap", gap, Gap), ("fold", fold, Fold)):
        if value not in get_args(kind):
            choices = ", ".join(map(repr, get_args(kind)))
            raise OptionError(
                f"{name} must be one of {choices}, not {shown(value)}{nearest(str(value), get_args(kind))}"
            )
    fields = {"expression": check_expression(expression), "timezone": check_zone(timezone)}
    return msgspec.convert({"type": "cron", **fields, "gap": gap, "fold": fold}, Cron)


def falls_on(cadence: Cadence, other: Cadence) -> bool:
    """Is every instant of the one known to be an instant of the other?"""
    if isinstance(cadence, Every) and isinstance(other, Every):
        return cadence.step % other.step == 0 == (cadence.anchor - other.anchor) % other.step
    return cadence == other


def describe(cadence: Cadence) -> str:
    """The cadence in a few words."""
    if isinstance(cadence, Every):
        return f"every {cadence.period:g} s"
    return f"cron {cadence.expression!r} in {cadence.timezone}"


def next_after(cadence: Cadence, after: Instant) -> Instant | None:
    """The first instant after this one; None if there is none in decades."""
    if isinstance(cadence, Every):
        return after + cadence.step - (after - cadence.anchor) % cadence.step
    found = _next_cron(cadence.rule, after // MICROSECONDS)
    return None if found is None else found * MICROSECONDS


@lru_cache(maxsize=65_536)  # thousands of tasks share an expression and an instant
def _next_cron(rule: Rule, after: int) -> int | None:
    return next(fires_cron(rule, after), None)


def between(cadence: Cadence, after: Instant, until: Instant, most: int = MOST) -> list[Instant]:
    """The instants after the one and not after the other, rising, at most so many."""
    if isinstance(cadence, Every):
        first = after + cadence.step - (after - cadence.anchor) % cadence.step
        return list(range(first, until + 1, cadence.step)[:most])
    found = []
    for second in islice(fires_cron(cadence.rule, after // MICROSECONDS), most):
        if second * MICROSECONDS > until:
            break
        found.append(second * MICROSECONDS)
    return found


def count(cadence: Cadence, after: Instant, until: Instant) -> int:
    """How many instants lie after the one and not after the other; quick for a second and for a decade."""
    if until <= after:
        return 0
    if isinstance(cadence, Every):
        return (until - cadence.anchor) // cadence.step - (after - cadence.anchor) // cadence.step
    return count_cron(cadence.rule, after // MICROSECONDS, until // MICROSECONDS)


def recent(cadence: Cadence, after: Instant, until: Instant, most: int) -> list[Instant]:
    """The last few of the instants after the one and not after the other, rising.

    Looks back from the end, further and further: what lies long before costs nothing.
    """
    if most <= 0:
        return []
    if isinstance(cadence, Every):
        last = until - (until - cadence.anchor) % cadence.step
        return [at for at in range(last - (most - 1) * cadence.step, last + 1, cadence.step) if at > after]
    span = _NARROW
    while span < until - after and count(cadence, until - span, until) < most:
        span *= 8
    begin = max(after, until - span)
    return between(cadence, begin, until, count(cadence, begin, until))[-most:]


def latest(cadence: Cadence, at: Instant) -> Instant | None:
    """The last instant that is not after this one: the same, or the one that encloses it."""
    found = recent(cadence, at - _WIDEST, at, 1)
    return found[0] if found else None


def period_at(cadence: Cadence, at: Instant) -> float:
    """Seconds from the instant at or before this one to the next; endless if there is no next one."""
    if isinstance(cadence, Every):
        return cadence.period
    is_instant = next_after(cadence, at - 1) == at  # as a rule, and quick to find out
    begin, end = at if is_instant else latest(cadence, at), next_after(cadence, at)
    if begin is None and end is not None:
        begin, end = end, next_after(cadence, end)
    return float("inf") if begin is None or end is None else (end - begin) / MICROSECONDS


def spread(name: str, jitter: float) -> int:
    """By how many microseconds a task is let go later than its instants: the same for all its ticks, always.

    Tasks that share an instant are spread over the window `jitter`; a restart moves none of them.
    """
    return int(share(f"jitter:{name}") * jitter * MICROSECONDS)
