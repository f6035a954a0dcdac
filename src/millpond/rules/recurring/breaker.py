"""The breaker of a recurring task: when failing ticks disable it, and when it may try again.

Closed: it runs. Open: so many ticks in a row failed, so it rests. Half-open: one tick, the probe, is let
through to see; only if `probe_after` was given, else a person must enable it. Ticks are counted, not time:
an hourly task never fills a window. Disabled by hand is another thing and no outcome ever undoes it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from millpond.job import MICROSECONDS, Instant, JobState
from millpond.rules.jobs.retry import share

LONGEST_REST = 86_400.0  # seconds between two probes, unless probe_after itself is longer
SPREAD = 0.1  # a rest is up to this share longer, so that tasks that broke together do not probe together
_DOUBLINGS = 40

Phase = Literal["closed", "open", "half-open"]
Gate = Literal["run", "probe", "disabled", "breaker"]
Result = Literal["success", "failure", "neutral"]

# Ends of a tick that say nothing about the task: somebody or something else ended it.
NEUTRAL_DEATHS = frozenset({"lost", "preempted", "infrastructure", "resources", "damaged", "unknown"})


class BreakerRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """When to open, and how to come back."""

    max_failures: int = 5  # failed ticks in a row; 0: never
    probe_after: float | None = None  # seconds of the first rest; None: rest until enabled
    successes: int = 1  # probes in a row that must succeed


class Breaker(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one task's breaker, as it is stored."""

    failures: int = 0  # in a row
    rounds: int = 0  # how often it opened since it was last closed
    successes: int = 0  # probes in a row
    opened_at: Instant | None = None
    probe_at: Instant | None = None  # not before
    probing: Instant | None = None  # the tick that is the probe
    disabled_at: Instant | None = None  # by hand
    disabled_by: str = ""
    error: str = ""  # of the last failed tick


class TickEnd(msgspec.Struct, frozen=True):
    """How a tick ended, after all its attempts."""

    at: Instant  # its scheduled instant
    started_at: Instant | None
    result: Result
    error: str = ""


def result_of(state: JobState, reason: str | None) -> Result:
    """What the end of a tick's job says about the task."""
    if state is JobState.COMPLETED:
        return "success"
    return "failure" if state is JobState.DEAD and reason not in NEUTRAL_DEATHS else "neutral"


def phase(breaker: Breaker, now: Instant) -> Phase:
    """Where the breaker stands, whether or not the task is disabled by hand."""
    if breaker.opened_at is None:
        return "closed"
    ready = breaker.probe_at is not None and now >= breaker.probe_at
    return "half-open" if ready or breaker.probing is not None else "open"


def runs_from(breaker: Breaker, now: Instant) -> Instant | None:
    """From when on ticks may run; None: not until it is enabled."""
    return breaker.probe_at if phase(breaker, now) == "open" else now


def gate(breaker: Breaker, now: Instant) -> Gate:
    """May a tick run now? One probe at a time: while it runs, the others are turned away."""
    if breaker.disabled_at is not None:
        return "disabled"
    if breaker.opened_at is None:
        return "run"
    return "probe" if breaker.probing is None and phase(breaker, now) == "half-open" else "breaker"


def begin_probe(breaker: Breaker, at: Instant) -> Breaker:
    """The tick of this instant is the probe; to be stored together with the tick."""
    return msgspec.structs.replace(breaker, probing=at)


def after_tick(breaker: Breaker, rule: BreakerRule, end: TickEnd, name: str, now: Instant) -> Breaker:
    """The state after a tick of the task ended."""
    if breaker.opened_at is not None:
        return _after_tick_while_open(breaker, rule, end, name, now)
    if end.result == "neutral":
        return breaker
    if end.result == "success":
        return msgspec.structs.replace(breaker, failures=0, rounds=0, error="")
    counted = msgspec.structs.replace(breaker, failures=breaker.failures + 1, error=end.error)
    if not 0 < rule.max_failures <= counted.failures:
        return counted
    return _opened(counted, rule, name, now)


def _after_tick_while_open(
    breaker: Breaker, rule: BreakerRule, end: TickEnd, name: str, now: Instant
) -> Breaker:
    """Only the probe, or a run begun by hand since, has a say; what began before it opened has not."""
    is_probe = breaker.probing == end.at
    if end.result == "neutral":
        return msgspec.structs.replace(breaker, probing=None) if is_probe else breaker
    if end.result == "failure":
        failed = msgspec.structs.replace(breaker, failures=breaker.failures + 1, error=end.error)
        return _opened(failed, rule, name, now) if is_probe else failed
    assert breaker.opened_at is not None
    if not is_probe and (end.started_at is None or end.started_at < breaker.opened_at):
        return breaker
    if breaker.successes + 1 >= rule.successes:
        return _closed(breaker)
    return msgspec.structs.replace(
        breaker, successes=breaker.successes + 1, probing=None if is_probe else breaker.probing
    )


def _opened(breaker: Breaker, rule: BreakerRule, name: str, now: Instant) -> Breaker:
    rest = _rest(rule, breaker.rounds, name)
    return msgspec.structs.replace(
        breaker,
        rounds=breaker.rounds + 1,
        successes=0,
        opened_at=now if breaker.opened_at is None else breaker.opened_at,
        probe_at=None if rest is None else now + round(rest * MICROSECONDS),
        probing=None,
    )


def longest_rest(rule: BreakerRule) -> float | None:
    """Seconds from the end of a tick until the next probe, at the most; None: there will be none."""
    return None if rule.probe_after is None else max(LONGEST_REST, rule.probe_after) * (1 + SPREAD)


def _rest(rule: BreakerRule, rounds: int, name: str) -> float | None:
    """Seconds until the next probe: 1, 2, 4 ... times `probe_after`, at most a day."""
    if rule.probe_after is None:
        return None
    longest = max(LONGEST_REST, rule.probe_after)
    nominal = min(longest, rule.probe_after * 2.0 ** min(rounds, _DOUBLINGS))
    return nominal * (1 + SPREAD * share(f"probe:{name}:{rounds}"))


def _closed(breaker: Breaker) -> Breaker:
    """Closed and forgotten, but for what a person decided."""
    return Breaker(disabled_at=breaker.disabled_at, disabled_by=breaker.disabled_by)


def disable(breaker: Breaker, now: Instant, by: str = "") -> Breaker:
    """Disabled by hand, until enabled by hand. Twice is once."""
    if breaker.disabled_at is not None:
        return breaker
    return msgspec.structs.replace(breaker, disabled_at=now, disabled_by=by)


def enable() -> Breaker:
    """Enabled by hand: closed, and every failure forgotten."""
    return Breaker()
