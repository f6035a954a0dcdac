"""Whether each execution had a reason: a rerun, two at a time, or more than a slot has room for.

Pure. The function saying that it raised or snoozed is a reason to run again; everything else has to be
explained by something that was done to the very worker or node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise

from millpond.job import Job
from tests.history.entries import How, Moment
from tests.history.faults import SLACK, Faults
from tests.history.rules import Bug, Rules, Violation
from tests.history.timeline import Execution, Past, Story

BEGINS, LASTS = 1, 0  # at one moment, what is over goes first


def check(story: Story, final: Job | None, faults: Faults, rules: Rules) -> Iterator[Violation]:
    """The executions of one job."""
    for run in story.executions:
        yield from _afterlife(run, faults)
    for earlier, later in combinations(story.executions, 2):
        if _beside(earlier, later) and not faults.may_have_left_running(earlier, later.began_at):
            yield Violation(
                Bug.OVERLAP,
                story.job,
                f"ran under tokens {earlier.token} and {later.token} at a time, on {earlier.node} and "
                f"{later.node}, and nothing had happened to {earlier.node}",
            )
    slots = final is not None and bool(final.slots)
    for earlier, later in pairwise(story.executions):
        if earlier.token == later.token:
            yield Violation(Bug.RERUN, story.job, f"was executed twice under token {later.token}")
        elif not _beside(earlier, later) and story.job not in rules.replayed:
            yield from _rerun(earlier, later, faults, slots=slots)


def _beside(earlier: Execution, later: Execution) -> bool:
    """Was the one with the lower token still seen alive when the other had begun?"""
    return earlier.token != later.token and later.began_at < earlier.last_at


def _rerun(earlier: Execution, later: Execution, faults: Faults, *, slots: bool) -> Iterator[Violation]:
    if earlier.how in (How.RAISED, How.SNOOZED):
        return
    if earlier.how is None:
        explained = faults.may_have_broken_off(earlier, later.began_at, slots=slots)
    else:
        explained = faults.may_have_forgotten(earlier, later.began_at)
    if not explained:
        how = "left no word" if earlier.how is None else earlier.how
        yield Violation(
            Bug.RERUN,
            earlier.job,
            f"ran again under token {later.token}, though what ran under {earlier.token} {how} and nothing "
            f"had happened to worker {earlier.worker} or node {earlier.node}",
        )


def _afterlife(run: Execution, faults: Faults) -> Iterator[Violation]:
    for fault in faults.killed(run.worker):
        if run.began_at <= fault.since and fault.until + SLACK < run.last_at:
            yield Violation(
                Bug.AFTERLIFE, run.job, f"went on in worker {run.worker} after that had been killed"
            )


# --- slots ----------------------------------------------------------------------------------------------
def check_slots(past: Past, jobs: Mapping[str, Job], rules: Rules) -> Iterator[Violation]:
    """Never more at a time than a slot has room for."""
    holders: dict[str, list[Execution]] = defaultdict(list)
    room: dict[str, int] = {}
    for job in jobs.values():
        for slot in job.slots:
            room[slot.name] = max(room.get(slot.name, 0), slot.capacity)
            if job.id in past.stories:
                holders[slot.name] += past.stories[job.id].executions
    for name, runs in holders.items():
        yield from _overfull(name, rules.capacity.get(name, room[name]), runs, past.faults)


def _overfull(name: str, room: int, runs: list[Execution], faults: Faults) -> Iterator[Violation]:
    inside: dict[int, Execution] = {}
    for at, step, number in _steps(runs):
        if step == LASTS:
            inside.pop(number, None)
            continue
        inside[number] = runs[number]
        counted = [run for run in inside.values() if not faults.may_have_overslept(run, at)]
        if runs[number].last_at == at:  # nothing more is known of it than that it began
            del inside[number]
        if len(counted) > room and runs[number] in counted:
            others = ", ".join(run.job for run in counted if run is not runs[number])
            yield Violation(
                Bug.OVERFULL,
                runs[number].job,
                f"began in slot {name!r} beside {others}, which has room for {room}",
            )


def _steps(runs: list[Execution]) -> list[tuple[Moment, int, int]]:
    began = [(run.began_at, BEGINS, number) for number, run in enumerate(runs)]
    return sorted(began + [(run.last_at, LASTS, number) for number, run in enumerate(runs)])
