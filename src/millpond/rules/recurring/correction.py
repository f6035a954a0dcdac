"""What is remembered of a recurring task after the clock was ahead and is right again.

Instants in front of the clock cannot have passed: a cursor or the end of a run that lies there was written by
a wrong clock, and would stop the task until then. It is brought back to now, or to the last instant that the
right clock has decided. That an instant has had its run is the store's to know.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from millpond.job import MICROSECONDS, Instant
from millpond.rules.recurring.breaker import Breaker, BreakerRule, longest_rest
from millpond.rules.recurring.continuous import Restarts

STEP = 60 * MICROSECONDS  # what is ahead by less is waited for


class Dispute(msgspec.Struct, frozen=True, array_like=True):
    """The instants on which a wrong clock has decided: after the one, up to the other."""

    since: Instant  # when the clock was found to be right again
    until: Instant


def is_ahead(at: Instant | None, now: Instant) -> bool:
    """Was this written by a clock that was ahead?"""
    return at is not None and at > now + STEP


def resume(decided: Iterable[Instant], now: Instant) -> Instant:
    """The cursor to go on from: the last instant that was decided before `now`, as far as is known. What was
    due while the clock was wrong is then missed, as after any other absence."""
    return max((at for at in decided if at <= now), default=now)


def breaker(found: Breaker, rule: BreakerRule, now: Instant) -> Breaker:
    """It rests no longer than a rest may last from now on."""
    probe_at, opened_at = found.probe_at, found.opened_at
    rest = longest_rest(rule)
    if probe_at is not None and rest is not None:
        probe_at = min(probe_at, now + round(rest * MICROSECONDS))
    return replace(found, probe_at=probe_at, opened_at=None if opened_at is None else min(opened_at, now))


def restarts(found: Restarts, now: Instant) -> Restarts:
    """The starts in front of the clock count as starts of this moment: no limit of them is forgotten."""
    ended_at = None if found.ended_at is None else min(found.ended_at, now)
    return replace(found, starts=tuple(min(at, now) for at in found.starts), ended_at=ended_at)
