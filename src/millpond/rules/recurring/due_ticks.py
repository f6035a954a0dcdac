"""Which instants of a recurring task are due now, which of them run, and why the others do not.

Every instant between the cursor and now gets a verdict, so that "why did it not run" always has an answer;
a long outage folds all but the most recent into one row that says how many it stands for. The cursor is the
last instant that was planned, or the one at which the task was first registered: a task that never ran yet
misses nothing, however short its nodes live.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import msgspec
from msgspec.structs import replace

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Instant
from millpond.options import nearest
from millpond.rules.recurring.cadence import Cadence, count, next_after, recent
from millpond.units import seconds, shown

Misfire = Literal["skip", "latest", "all"]
Overlap = Literal["skip", "queue", "allow"]

ON_TIME = 60.0  # seconds that a tick may be late under misfire="skip": no planner is punctual to the second
LATEST = 3600.0  # ... and under "latest", unless start_deadline says otherwise
ROWS = 100  # skipped instants that get a row of their own in one round
MOST_WAITING = 10  # ticks of one task that may be in line
MOST_MISSED = 1000  # runs that misfire=all_missed(n) may make up for at once

REASONS = {
    "missed": "nobody planned it in time, and a later one was due already",
    "late": "its start deadline had passed",
    "overlap": "the one before it had not ended",
    "waiting": "as many as max_waiting allows were waiting already",
    "disabled": "the task was disabled",
    "breaker": "the task's breaker was open",
    "retired": "the task was no longer in the code",
}


class AllMissed(NamedTuple):
    """Make up for the last `limit` missed instants."""

    limit: int


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do with instants that nobody was there for, and with those that come too soon."""

    misfire: Misfire = "latest"
    misfire_limit: int = 1  # instants of one round that may run
    start_deadline: float | None = None  # seconds after it was due
    overlap: Overlap = "skip"
    max_waiting: int = MOST_WAITING


class Activity(NamedTuple):
    """The ticks of a task that have not ended: those that began and those that did not."""

    running: int = 0
    waiting: int = 0


class Due(NamedTuple):
    """A recurring task as far as planning goes."""

    cadence: Cadence
    policy: Policy
    offset: int  # µs by which its ticks are let go later than their instants: `cadence.spread`
    after: Instant  # the cursor


class Planned(NamedTuple):
    """The verdict on one instant; a skipped one may stand for earlier ones too."""

    at: Instant  # its name, with the task
    due_at: Instant
    is_run: bool
    reason: str | None = None  # of REASONS, if it does not run
    folded: int = 0  # further instants that were skipped with it, all before it
    since: Instant | None = None  # the first of those


class Plan(NamedTuple):
    """What to record now, and when to look again."""

    ticks: tuple[Planned, ...]  # rising
    cursor: Instant
    next_due_at: Instant | None


def all_missed(limit: object) -> AllMissed:
    """For `misfire=`: run up to so many missed instants, the most recent ones."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_MISSED:
        raise OptionError(f"all_missed takes a whole number from 1 to {MOST_MISSED}, not {shown(limit)}")
    return AllMissed(limit)


def policy(
    misfire: str | AllMissed = "latest",
    start_deadline: object = None,
    overlap: str = "skip",
    max_waiting: object = None,
) -> Policy:
    """The checked policy. As many may wait as missed ones may be made up for, and ten at least."""
    limit = misfire.limit if isinstance(misfire, AllMissed) else 100 if misfire == "all" else 1
    kind = "all" if isinstance(misfire, AllMissed) else misfire
    _check_choice("misfire", kind, get_args(Misfire))
    _check_choice("overlap", overlap, get_args(Overlap))
    max_waiting = max(MOST_WAITING, limit) if max_waiting is None else max_waiting
    if isinstance(max_waiting, bool) or not isinstance(max_waiting, int) or max_waiting < 1:
        raise OptionError(f"max_waiting must be a whole number above zero, not {shown(max_waiting)}")
    if limit > 1 and overlap == "skip":
        raise OptionError(
            "misfire='all' wants to run several missed ticks and overlap='skip' lets only one of them: "
            "add overlap='queue' or 'allow', or use misfire='latest'"
        )
    deadline = None if start_deadline is None else seconds(start_deadline, name="start_deadline")  # type: ignore[arg-type]
    fields = {"misfire": kind, "misfire_limit": limit, "start_deadline": deadline, "overlap": overlap}
    return msgspec.convert({**fields, "max_waiting": max_waiting}, Policy)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(map(repr, choices))
        raise OptionError(f"{name} must be one of {listed}, not {shown(value)}{nearest(str(value), choices)}")


def plan(due: Due, now: Instant, activity: Activity, closed: str | None = None, rows: int = ROWS) -> Plan:
    """The verdict on every instant that is due; `closed` is why none may run, whatever the policy says.

    A clock that went back plans nothing: what lies before the cursor has its verdict.
    """
    until = now - due.offset
    first = next_after(due.cadence, due.after)
    if first is None or first > until:
        return Plan((), due.after, None if first is None else first + due.offset)
    following = next_after(due.cadence, first)
    if following is None or following > until:  # the usual case
        ticks = _verdicts(due, [first], now, activity, closed)
        return Plan(tuple(ticks), first, None if following is None else following + due.offset)
    last = recent(due.cadence, due.after, until, max(rows, due.policy.misfire_limit) + 1)
    older = count(due.cadence, due.after, last[0] - 1)
    ticks = _folded(_verdicts(due, last, now, activity, closed), older, first, rows)
    coming = next_after(due.cadence, last[-1])
    return Plan(tuple(ticks), last[-1], None if coming is None else coming + due.offset)


def first(due: Due) -> Due:
    """The same for the first tick of a task that begins at once: it is never too late, and not spread."""
    return due._replace(policy=replace(due.policy, start_deadline=math.inf), offset=0)


def _verdicts(
    due: Due, instants: list[Instant], now: Instant, activity: Activity, closed: str | None
) -> list[Planned]:
    """Misfire lets the newest through; of those, overlap lets the oldest go first."""
    missed = len(instants) - due.policy.misfire_limit
    verdicts = []
    for index, at in enumerate(instants):
        due_at = at + due.offset
        reason = closed or ("missed" if index < missed else None)
        reason = reason or _too_late(due.policy, now - due_at) or _overlaps(due.policy, activity)
        if reason is None:
            activity = Activity(activity.running, activity.waiting + 1)
        verdicts.append(Planned(at, due_at, reason is None, reason))
    return verdicts


def _too_late(policy: Policy, lateness: int) -> str | None:
    """Without an explicit deadline the next instant is one as well: then this one is missed."""
    deadline = policy.start_deadline
    if deadline is None:
        deadline = {"skip": ON_TIME, "latest": LATEST}.get(policy.misfire)
    return None if deadline is None or lateness <= deadline * MICROSECONDS else "late"


def _overlaps(policy: Policy, activity: Activity) -> str | None:
    if policy.overlap == "skip":
        return "overlap" if activity.running + activity.waiting else None
    return "waiting" if activity.waiting >= policy.max_waiting else None


def _folded(verdicts: list[Planned], older: int, first: Instant, rows: int) -> list[Planned]:
    """Keep the newest skipped ones apart; the oldest of those stands for all before it."""
    skipped = [tick for tick in verdicts if not tick.is_run]
    if not older and len(skipped) <= rows:
        return verdicts
    bearer = skipped[-min(len(skipped), max(rows, 1))]
    hidden = older + sum(tick.at < bearer.at for tick in skipped)
    kept = [tick for tick in verdicts if tick.is_run or tick.at >= bearer.at]
    return [tick._replace(folded=hidden, since=first) if tick is bearer else tick for tick in kept]


def wait_until(due: Due, at: Instant, wait: float | None = None) -> Instant:
    """Until when the tick of this instant may wait for others: so long, or until the next one is due."""
    if wait is not None:
        return at + due.offset + round(wait * MICROSECONDS)
    following = next_after(due.cadence, at)
    return due.offset + (at + round(LATEST * MICROSECONDS) if following is None else following)


def expires_after(policy: Policy) -> float | None:
    """Seconds from due until a tick that has not begun expires.

    Only by an explicit deadline: a busy pool would otherwise let every tick of a short interval expire in
    line, and the task would never run again.
    """
    return policy.start_deadline


def reason_text(reason: str, instants: int = 1) -> str:
    """Why instants were skipped, for people."""
    why = REASONS.get(reason, reason)
    return f"Skipped: {why}." if instants == 1 else f"{instants} instants skipped: {why}."
