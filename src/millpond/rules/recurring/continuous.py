"""When a continuous task is started again after it ended.

It is watched for life: it always comes back, but never in a hot loop. Runs that end soon are followed by
pauses that grow by steps; a run that lasted resets them; and there is a limit of starts in any window, after
which it rests until the window has room.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from millpond.job import MICROSECONDS, Instant
from millpond.rules.jobs.retry import share

SPREAD = 0.1  # a pause is up to this share longer: tasks that fell together do not rise together
_DOUBLINGS = 64


class RestartRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """How eagerly a continuous task is started again. Seconds."""

    first: float = 1.0
    factor: float = 2.0
    longest: float = 300.0
    stable_after: float = 60.0  # a run of this length forgets the short ones before it
    start_limit: int = 10
    at_once: int = 1  # starts that one tick may have: its attempts
    window: float = 600.0


class Restarts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of its starts, as it is stored."""

    starts: tuple[Instant, ...] = ()  # the latest `start_limit`
    short: int = 0  # runs in a row that ended soon
    ended_at: Instant | None = None


class Restart(NamedTuple):
    """When it may start, and what that is due to."""

    at: Instant
    reason: Literal["first", "stable", "back-off", "start limit"]


def started(restarts: Restarts, rule: RestartRule, now: Instant) -> Restarts:
    """The state after it was started."""
    kept = (*restarts.starts, now)[-rule.start_limit :]
    return Restarts(kept, restarts.short, None)


def ended(restarts: Restarts, rule: RestartRule, now: Instant, began: tuple[Instant, ...] = ()) -> Restarts:
    """The state after it ended, well or not: one that returns at once would spin just as hard.

    `began` is when its attempts really began, as far as is known: the first may have waited in line after it
    was started, and each of the others is a start as well.
    """
    last = began[-1] if began else restarts.starts[-1] if restarts.starts else now
    is_stable = now - last >= rule.stable_after * MICROSECONDS
    starts = (*restarts.starts, *began[1:])[-rule.start_limit :]
    return Restarts(starts, 0 if is_stable else restarts.short + max(1, len(began)), now)


def next_start(restarts: Restarts, rule: RestartRule, name: str) -> Restart:
    """When it may be started again, after it ended: once there is room for all attempts of a tick."""
    if restarts.ended_at is None:
        return Restart(0, "first")
    at = restarts.ended_at + round(_pause(restarts.short, rule, name) * MICROSECONDS)
    kept = max(0, rule.start_limit - rule.at_once)  # starts that may lie in the window already
    if len(restarts.starts) > kept:
        room_at = restarts.starts[-kept - 1] + round(rule.window * MICROSECONDS)
        if room_at > at:
            return Restart(room_at, "start limit")
    return Restart(at, "back-off" if restarts.short else "stable")


def _pause(short: int, rule: RestartRule, name: str) -> float:
    nominal = rule.first
    for _ in range(min(short - 1, _DOUBLINGS)):
        nominal *= rule.factor
    return min(nominal, rule.longest) * (1 + SPREAD * share(f"restart:{name}:{short}"))
