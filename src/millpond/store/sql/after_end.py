"""When jobs end: unique keys are let go, dependents start or fall with them.

A step reaches at most REACHED dependents, of at most GENERATIONS generations. A parent with more behind it is
noted as a cascade, and later steps go on where this one stopped: a job with a million children must not hold
its node's exchange for a minute. Dependents that another transaction has locked wait for a later step in the
same way. Shown by tests/stores/test_cascades.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from millpond.job import Instant, JobState
from millpond.store.sql.job_counts import PARKED, moves, tell
from millpond.store.sql.query import Hint, Many, Query, Steps
from millpond.store.sql.statistics import Increments, count

REACHED = 5000  # dependents that one step starts or cancels
GENERATIONS = 100  # each costs a step a few statements, however few jobs are in it
CASCADES = 1000  # parents that one step goes on with
EXPIRED = 500  # jobs that one step cancels because they have expired


class Ending(NamedTuple):
    """What must be known of a job to end it."""

    id: str
    task: str
    queue: str
    unique: str | None
    has_children: bool
    parked: str | None


class Reached(NamedTuple):
    """What one step did to the dependents of some jobs."""

    number: int  # that it started or cancelled
    fallen: list[Ending]  # their own dependents follow
    is_all: bool  # none is left behind these jobs


def after(endings: Sequence[Ending], state: JobState, now: Instant, number: int = 0) -> Steps[Increments]:
    """These jobs have just ended in this state: what follows from it, as far as a step reaches that has
    reached this number already. Returns how many others fell with them, for the statistics."""
    fallen: Increments = Counter()
    room, generation = REACHED - number, 0
    while endings:  # generation by generation: a family may be deeper than a stack
        keys = [(ending.task, ending.unique, ending.id) for ending in endings if ending.unique is not None]
        if keys:
            yield Many("release_unique", sorted(keys))
        parents = sorted(ending.id for ending in endings if ending.has_children)
        if not parents:
            break
        reached = yield from _reach(parents, state, room if generation < GENERATIONS else 0, now)
        if not reached.is_all:
            yield Query("note_cascades", (parents, state.value))
        room -= reached.number
        endings = reached.fallen
        generation += 1
        if state is not JobState.COMPLETED:
            state = JobState.CANCELLED
            fallen.update((ending.queue, state.value, 0) for ending in endings)
    return fallen


def _reach(parents: list[str], state: JobState, room: int, now: Instant) -> Steps[Reached]:
    """Start the jobs behind these, or let them fall: so many at most, those of the first parents first."""
    if room <= 0:
        return Reached(0, [], is_all=False)
    rows = yield Query("children", (parents, room))
    links = [(parent, child) for parent, child, is_free in rows if is_free]
    endings: list[Ending] = []
    if links and state is JobState.COMPLETED:
        numbers = Counter(child for _, child in links)
        freed = yield Many("unblock", [(child, number, now) for child, number in sorted(numbers.items())])
        yield from tell(moves((row[0], "blocked", row[1], int(row[2])) for row in freed), now)
        yield Hint(frozenset(row[0] for row in freed if row[1] == JobState.QUEUED))
    elif links:
        endings = yield from _cancel(sorted({child for _, child in links}), "dependency", now)
    if links:
        yield Many("unlink", sorted(links))
    return Reached(len(links), endings, is_all=len(links) == len(rows) < room)


def go_on(now: Instant) -> Steps[int]:
    """Go on with jobs that ended and have dependents that no step has reached yet; returns how many were.

    By lot, and those drawn first come first: a user's transaction may have locked more dependents of one
    parent than a step reaches, and those of other parents must not wait for it.
    """
    rows = yield Query("next_cascades", (CASCADES,))
    number = 0
    for completed in dict.fromkeys(state == JobState.COMPLETED for _, state in rows):
        parents = [parent for parent, state in rows if (state == JobState.COMPLETED) is completed]
        state = JobState.COMPLETED if completed else JobState.CANCELLED
        reached = yield from _reach(parents, state, REACHED - number, now)
        number += reached.number
        yield from after_all(reached.fallen, JobState.CANCELLED, now, number)
        yield Query("end_cascades", (parents,))
    return number


def after_all(endings: Sequence[Ending], state: JobState, now: Instant, number: int = 0) -> Steps[None]:
    """What follows from these ends, and all of them are counted."""
    fallen = yield from after(endings, state, now, number)
    fallen.update((ending.queue, state.value, 0) for ending in endings)
    yield from count(fallen, now)


def cancel_waiting(ids: Sequence[str], reason: str, now: Instant) -> Steps[int]:
    """Cancel those of these jobs that wait, and what depends on them; returns how many of these did."""
    endings = yield from _cancel(ids, reason, now)
    yield from after_all(endings, JobState.CANCELLED, now)
    return len(endings)


def _cancel(ids: Sequence[str], reason: str, now: Instant) -> Steps[list[Ending]]:
    if not ids:
        return []
    # Each once, though it has two parents that fell: SQLite looks at all before it changes any
    rows = yield Many("cancel_waiting", [(job, reason, now) for job in dict.fromkeys(ids)])
    endings = [Ending(*row[:-1]) for row in rows]
    yield from tell(moves((row[2], row[-1], "cancelled", 1) for row in rows), now)
    yield from _unpark(endings, now)
    return endings


def _unpark(endings: Sequence[Ending], now: Instant) -> Steps[None]:
    """Jobs that were parked at a slot are there no longer."""
    parked = [ending for ending in endings if ending.parked is not None]
    if parked:
        yield Many("clear_parked", [(ending.id,) for ending in parked])
        left = Counter(ending.parked for ending in parked)
        yield Many("count_parked", sorted((name, -number) for name, number in left.items()))
        yield from tell(moves((ending.queue, PARKED, None, 1) for ending in parked), now)


def expire(now: Instant) -> Steps[bool]:
    """Cancel a page of what has waited beyond its `expires`; True if there may be more.

    One page for each claim: a hundred thousand that expire at once would hold the exchange, and all that
    ended with it, for longer than a lease lasts.

    A job parked at a slot that another transaction has locked is left to a later claim. This exchange holds
    the slots that it freed; waiting for one more here, two exchanges would wait for each other
    (tests/stores/test_locks.py, test_a_claim_leaves_an_expired_job_whose_slot_is_locked_to_the_next).
    """
    rows = yield Query("expired", (now, EXPIRED))
    locked = yield from _locked_elsewhere(sorted({row[1] for row in rows if row[1] is not None}))
    free = [job for job, slot in rows if slot not in locked]
    yield from cancel_waiting(free, "expired", now)
    return len(rows) == EXPIRED and bool(free)


def _locked_elsewhere(names: list[str]) -> Steps[set[str]]:
    """Locks these slots; returns those that another transaction has locked."""
    if not names:
        return set()
    ours = {row[0] for row in (yield Query("lock_slots", (names,)))}
    there = (yield Query("read_slots", (names,))) if len(ours) < len(names) else []
    return {row[0] for row in there} - ours
