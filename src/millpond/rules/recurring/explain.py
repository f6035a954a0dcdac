"""Why a recurring task runs or does not run now, in one sentence a person can act on."""

from __future__ import annotations

from typing import Literal, NamedTuple

from millpond.job import MICROSECONDS, Instant, Slot
from millpond.rules.jobs.explain import span
from millpond.rules.recurring.breaker import Breaker, phase
from millpond.rules.recurring.continuous import Restart
from millpond.rules.recurring.correction import Dispute, is_ahead
from millpond.rules.recurring.dependencies import Verdict
from millpond.rules.recurring.exclusion import listed

Kind = Literal["scheduled", "triggered", "continuous"]
IN_THE_CODE = "its code"  # who disabled it, if no person has
_TOLD = 7 * 86_400 * MICROSECONDS  # so long it is said that the clock was wrong


class Facts(NamedTuple):
    """What must be known of a recurring task and its current tick."""

    name: str
    kind: Kind = "scheduled"
    breaker: Breaker = Breaker()
    retired: bool = False
    running_since: Instant | None = None  # the tick that runs
    enqueued_at: Instant | None = None  # the tick that was let go and has not begun
    parked: Slot | None = None  # the slot that tick found full
    holders: tuple[str, ...] = ()  # the tasks that are known to hold it
    verdict: Verdict | None = None  # on a tick that waits for its dependencies
    behind: str | None = None  # the task that a tick is held behind
    cursor: Instant = 0  # the last planned instant
    next_due_at: Instant | None = None
    restart: Restart | None = None  # of a continuous task that is down
    nodes: int = 1  # that are alive
    dispute: Dispute | None = None  # instants on which a clock that was wrong has decided


def why_recurring(facts: Facts, now: Instant) -> str:
    """One sentence: what stands in its way now, or what it does."""
    return (
        _switched_off(facts, now)
        or _under_way(facts, now)
        or _held_up(facts)
        or _no_node(facts)
        or _to_come(facts, now)
    )


def _switched_off(facts: Facts, now: Instant) -> str | None:
    breaker, enable = facts.breaker, f"`millpond recurring enable {facts.name}`"
    if facts.retired:
        return "It is no longer in the code: it is retired, and its history is kept."
    if breaker.disabled_at is not None:
        return _disabled(facts, now, enable)
    state = phase(breaker, now)
    if state == "closed":
        return None
    broke = f"{breaker.failures} ticks in a row failed{f' ({breaker.error})' if breaker.error else ''}"
    if breaker.probing is not None:
        return f"Its breaker is half-open after {broke}; a probe is under way to see whether it works again."
    if state == "half-open":
        return f"Its breaker is half-open after {broke}; its next tick is a probe."
    if breaker.probe_at is None:
        return f"Its breaker is open: {broke}; mend the cause, then {enable} lets it run again."
    left = _until(breaker.probe_at, now)
    return f"Its breaker is open: {broke}; it is probed {left}, or sooner with {enable}."


def _disabled(facts: Facts, now: Instant, enable: str) -> str:
    """Disabled, by whom; a tick that runs all the same is said as well."""
    breaker = facts.breaker
    if breaker.disabled_by == IN_THE_CODE:
        said = "It is disabled in the code, by enabled=False"
    else:
        by = f" by {breaker.disabled_by}" if breaker.disabled_by else " by hand"
        said = f"It was disabled{by} {_ago(breaker.disabled_at or now, now)}"
    if facts.running_since is None:
        return f"{said}; {enable} lets it run{'' if breaker.disabled_by == IN_THE_CODE else ' again'}."
    runs = span((now - facts.running_since) / MICROSECONDS)
    return f"{said}, and has been running for {runs}: this run was triggered, or began before."


def _under_way(facts: Facts, now: Instant) -> str | None:
    if facts.running_since is not None:
        return f"It has been running for {span((now - facts.running_since) / MICROSECONDS)}."
    if facts.enqueued_at is None:
        return None
    if facts.parked is not None:
        return f"Its tick waits: {_full(facts.parked, facts.name, facts.holders)}."
    if facts.nodes == 0:
        return None
    return f"Its tick was let go {_ago(facts.enqueued_at, now)} and waits in line for a worker."


def _full(slot: Slot, name: str, holders: tuple[str, ...]) -> str:
    """What holds the slot that a tick waits for, by what sort of slot it is."""
    sort, _, what = slot.name.partition(":")
    if sort == "blocks":
        other = (
            what.removeprefix(f"{name}|") if what.startswith(f"{name}|") else what.removesuffix(f"|{name}")
        )
        return f"{other!r} runs, which must not run beside it"
    if sort == "slot":
        held = f"by {listed(holders)}" if holders else "by others"
        return f"slot {what!r} has no room, {slot.capacity} of {slot.capacity} held {held}"
    if what == "*":
        return f"max_concurrent is {slot.capacity}, and as many ticks run"
    return "an earlier run of it has not ended"


def _held_up(facts: Facts) -> str | None:
    if facts.verdict is not None and facts.verdict.decision == "wait":
        return f"Its tick waits: {facts.verdict.reason}."
    if facts.behind is not None:
        return f"Its tick waits: it must not run beside {facts.behind!r}, whose turn it is."
    return None


def _no_node(facts: Facts) -> str | None:
    if facts.nodes == 0:
        return "No node is running, so nothing plans its ticks: start one with `millpond run`."
    return None


def _to_come(facts: Facts, now: Instant) -> str:
    if facts.kind == "triggered":
        return f"It waits to be triggered: `millpond recurring trigger {facts.name}` does."
    if facts.restart is not None:
        limit = "; it reached its start limit" if facts.restart.reason == "start limit" else ""
        return f"It ended and is started again {_until(facts.restart.at, now)}{limit}."
    if is_ahead(facts.cursor, now):
        ahead = span((facts.cursor - now) / MICROSECONDS)
        return (
            f"Its last tick lies {ahead} ahead of the store's clock, which must have been wrong: a node that "
            "plans goes on by what it shows now."
        )
    if facts.next_due_at is None:
        return "Its cadence names no further instant."
    due = f"It is due {_until(facts.next_due_at, now)}"
    dispute = facts.dispute
    if dispute is None or facts.next_due_at > dispute.until or now > dispute.since + _TOLD:
        return f"{due}."
    ahead = span((dispute.until - dispute.since) / MICROSECONDS)
    return (
        f"{due}, unless that instant has had its run: the store's clock was {ahead} ahead of what it is now."
    )


def _ago(instant: Instant, now: Instant) -> str:
    return f"{span(max(0, now - instant) / MICROSECONDS)} ago"


def _until(instant: Instant, now: Instant) -> str:
    left = (instant - now) / MICROSECONDS
    return f"in {span(left)}" if left > 0 else "now"
