"""What a recurring task waits for: is each of its dependencies as it must be, and what if it is not?

Four modes, each with what to do while it does not hold. Waiting has an end, and one that would be in vain
(the other is disabled, broken, retired, or its tick has failed) ends at once: a skip with its reason, never
silence. Circles and unknown names are refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

import msgspec

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Instant
from millpond.options import nearest

Mode = Literal["not_running", "success_since", "same_tick", "fresh"]
OnMissing = Literal["wait", "skip", "run"]
TickFate = Literal["succeeded", "pending", "failed", "skipped", "absent"]
Decision = Literal["run", "wait", "skip"]


class Dependency(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task depends on another, in one way."""

    on: str
    mode: Mode = "success_since"
    fresh_for: float = 0.0  # seconds, for `fresh`
    on_missing: OnMissing = "wait"


class Other(NamedTuple):
    """What is known of the task that another depends on."""

    running: int = 0  # ticks that have begun and not ended
    succeeded_at: Instant | None = None  # when its last successful tick ended
    disabled: bool = False
    broken: bool = False  # its breaker is not closed
    retired: bool = False
    tick: TickFate = "absent"  # for `same_tick`: of its latest instant that is not after the asker's


class Asker(NamedTuple):
    """The tick that would like to run."""

    name: str
    at: Instant
    started_at: Instant | None  # when the task's last tick began
    wait_until: Instant


class Verdict(NamedTuple):
    """Run, wait or skip, with a sentence that says why; `on` is the dependency it is about."""

    decision: Decision
    reason: str = ""
    on: str | None = None


def judge(asker: Asker, others: Sequence[tuple[Dependency, Other]], now: Instant) -> Verdict:
    """What to do with a tick now. A skip outweighs a wait: waiting for the rest would be in vain."""
    verdicts = [_one(asker, dependency, other, now) for dependency, other in others]
    for decision in ("skip", "wait"):
        for verdict in verdicts:
            if verdict.decision == decision:
                return verdict
    return Verdict("run")


def _one(asker: Asker, dependency: Dependency, other: Other, now: Instant) -> Verdict:
    missing = _missing(asker, dependency, other, now)
    if missing is None or dependency.on_missing == "run":
        return Verdict("run", missing or "", dependency.on)
    vain = None if dependency.mode == "not_running" else _in_vain(dependency, other)
    if vain is not None:
        return Verdict("skip", f"{vain}, and {missing}", dependency.on)
    if dependency.on_missing == "skip":
        return Verdict("skip", missing, dependency.on)
    if now >= asker.wait_until:
        return Verdict("skip", f"it waited as long as it may, but {missing}", dependency.on)
    return Verdict("wait", missing, dependency.on)


def _missing(asker: Asker, dependency: Dependency, other: Other, now: Instant) -> str | None:
    """What is not yet as it must be, as the end of a sentence; None if all is well."""
    name, since = repr(dependency.on), other.succeeded_at
    match dependency.mode:
        case "not_running":
            return f"{name} is running" if other.running else None
        case "success_since":
            if other.running:
                return f"{name} is running"
            if since is None:
                return f"{name} has not succeeded yet"
            is_old = asker.started_at is not None and since <= asker.started_at
            return f"{name} has not succeeded since {asker.name!r} last began" if is_old else None
        case "same_tick":
            return None if other.tick == "succeeded" else f"{name} has not succeeded for the same tick"
        case "fresh":
            is_fresh = since is not None and now - since <= dependency.fresh_for * MICROSECONDS
            return None if is_fresh else f"{name} has not succeeded in the last {dependency.fresh_for:g} s"


def _in_vain(dependency: Dependency, other: Other) -> str | None:
    """Why waiting for it would lead to nothing, as the begin of a sentence."""
    name = repr(dependency.on)
    if other.retired:
        return f"{name} is no longer in the code"
    if other.disabled:
        return f"{name} is disabled"
    if other.broken:
        return f"the breaker of {name} is open"
    if dependency.mode == "same_tick" and other.tick in {"failed", "skipped"}:
        return f"that tick of {name} {'has failed' if other.tick == 'failed' else 'was skipped'}"
    return None


def check(
    dependencies: Mapping[str, Sequence[Dependency]],
    known: Collection[str],
    timeless: Collection[str] = (),
    endless: Collection[str] = (),
) -> None:
    """Refuse names that nobody has, dependencies that make no sense, and circles.

    `timeless` are the tasks without a cadence: they have no instants to share. `endless` are the continuous
    ones among them: they are always running and never succeed.
    """
    for name, wanted in dependencies.items():
        for dependency in wanted:
            other = dependency.on
            if other not in known:
                raise OptionError(
                    f"{name!r} depends on {other!r}, which is not a recurring task{nearest(other, known)}"
                )
            if other in endless:
                raise OptionError(
                    f"{name!r} depends on {other!r}, which is continuous: it runs for ever and never succeeds"
                )
            if dependency.mode == "same_tick" and {name, other} & set(timeless):
                raise OptionError(
                    f"{name!r} depends on the same tick of {other!r}, but only tasks with every= or cron= "
                    "share instants: use success_since or fresh"
                )
    circle = find_circle({name: [wanted.on for wanted in many] for name, many in dependencies.items()})
    if circle:
        raise OptionError(
            f"the dependencies go in a circle: {' -> '.join(map(repr, circle))}. Remove one of them; tasks "
            "that must only not run at the same time want blocks="
        )


def find_circle(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The names along a circle, the first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # from each to what it depends on
    return []
