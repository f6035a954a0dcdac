"""Slots: made when a job first needs one, sized by the newest job that names it, forgotten when unused.

A claim or an enqueue locks the rows it changes and waits for none: what another transaction has locked is
left out of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from millpond.job import MICROSECONDS, Instant, Job, NewJob
from millpond.store.sql.query import Many, Query, Row, Steps

KEPT = 3600 * MICROSECONDS  # how long a slot that no job uses is remembered


class SlotRow(NamedTuple):
    """A slot."""

    name: str
    capacity: int
    used: int
    parked: int
    sized_at: Instant


def lock(jobs: Sequence[Job]) -> Steps[dict[str, int]]:
    """How much room the slots of these jobs have; only those that this transaction may change now."""
    wanted = _wanted(jobs)
    found = {row[0]: SlotRow(*row) for row in (yield Query("lock_slots", (sorted(wanted),)))}
    missing = [wanted[name] for name in sorted(wanted) if name not in found]
    if missing:
        found.update({row[0]: SlotRow(*row) for row in (yield Many("make_slots", missing))})
    sizes = {name: slot.capacity for name, slot in found.items()}
    # A job newer than the size brings another: its enqueue could not change it, because the slot was locked
    newer = [row for row in wanted.values() if row[0] in found and _changes(row, found[row[0]])]
    if newer:
        yield Many("size_slots", sorted(newer))
        sizes.update({name: capacity for name, capacity, _ in newer})
    return {name: sizes[name] - slot.used for name, slot in found.items()}


def _wanted(jobs: Sequence[Job]) -> dict[str, Row]:
    """By name: (name, capacity, instant) as the newest of these jobs has it."""
    newest: dict[str, Row] = {}
    for job in jobs:
        for slot in job.slots:
            if slot.name not in newest or newest[slot.name][2] <= job.created_at:
                newest[slot.name] = (slot.name, slot.capacity, job.created_at)
    return newest


def _changes(row: Row, known: SlotRow) -> bool:
    return bool(row[1] != known.capacity and row[2] > known.sized_at)


def park(jobs: Sequence[NewJob], now: Instant) -> Steps[dict[str, str]]:
    """Which of these new jobs need not stand in line, as their slot is full or others are parked at it, and
    at which slot. Sizes the slots as the jobs have them; one that is locked is left to a claim."""
    wanted = {slot.name: slot.capacity for job in jobs for slot in job.slots}
    # Two sizes in one step: the last counts. It is noted even where the slot has it already, or a claim would
    # take the other one for newer (test_of_two_sizes_in_one_step_the_last_counts_...).
    unclear = {slot.name for job in jobs for slot in job.slots if slot.capacity != wanted[slot.name]}
    rows = (yield Query("read_slots", (sorted(wanted),))) if wanted else []
    known = {row[0]: SlotRow(*row) for row in rows}
    missing = [(name, wanted[name], now) for name in sorted(wanted) if name not in known]
    if missing:
        yield Many("make_slots", missing)
    touched = [
        name
        for name, slot in known.items()
        if slot.capacity != wanted[name] or slot.parked or _is_full(slot) or name in unclear
    ]
    if not touched:
        return {}
    ours = {row[0]: SlotRow(*row) for row in (yield Query("lock_slots", (sorted(touched),)))}
    changed = [
        (name, wanted[name], now)
        for name in sorted(ours)
        if ours[name].capacity != wanted[name] or name in unclear
    ]
    if changed:
        yield Many("size_slots", changed)
    return _parked(jobs, {name: _room(slot, wanted[name]) for name, slot in ours.items()})


def _is_full(slot: SlotRow) -> bool:
    return slot.used >= slot.capacity


def _room(slot: SlotRow, capacity: int) -> int:
    """How many new jobs may stand in line for it: none where others are parked, which come first."""
    return 0 if slot.parked else max(0, capacity - slot.used)


def _parked(jobs: Sequence[NewJob], room: Mapping[str, int]) -> dict[str, str]:
    left = dict(room)
    parked: dict[str, str] = {}
    for job in jobs:
        if job.depends_on or job.delay or job.run_at is not None:
            continue
        full = next((slot.name for slot in job.slots if left.get(slot.name, 1) <= 0), None)
        if full is not None:
            parked[job.id] = full
            continue
        for slot in job.slots:
            if slot.name in left:
                left[slot.name] -= 1
    return parked


def forget(now: Instant, limit: int) -> Steps[int]:
    """Forget slots that no job holds or is parked at; returns how many."""
    return len((yield Query("forget_slots", (now - KEPT, limit))))
