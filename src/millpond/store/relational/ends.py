"""When jobs end: unique keys are let go, dependents start or fall with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from millpond.job import Instant, JobState
from millpond.store.relational.query import Many, Query, Steps
from millpond.store.relational.statistics import Increments, count
from millpond.store.relational.tallies import PARKED, moves, tell


class Ending(NamedTuple):
    """What must be known of a job to end it."""

    id: str
    task: str
    queue: str
    unique: str | None
    has_children: bool
    parked: str | None


def after(endings: Sequence[Ending], state: JobState, now: Instant) -> Steps[Increments]:
    """These jobs have just ended in this state: everything that follows from it. Returns how many others
    fell with them, for the statistics."""
    fallen: Increments = Counter()
    while endings:  # generation by generation: a family may be deeper than a stack
        keys = [(ending.task, ending.unique, ending.id) for ending in endings if ending.unique is not None]
        if keys:
            yield Many("release_unique", sorted(keys))
        parents = [ending.id for ending in endings if ending.has_children]
        if not parents:
            break
        if state is JobState.COMPLETED:
            children = yield Query("children_count", (parents,))
            if children:
                freed = yield Many("unblock", [(child, number, now) for child, number in sorted(children)])
                yield from tell(moves((row[0], "blocked", row[1], int(row[2])) for row in freed), now)
            endings = []
        else:
            rows = yield Query("children", (parents,))
            endings = yield from _cancel(sorted({row[0] for row in rows}), "dependency", now)
            state = JobState.CANCELLED
            fallen.update((ending.queue, state.value, 0) for ending in endings)
        yield Query("unlink", (parents,))
    return fallen


def after_all(endings: Sequence[Ending], state: JobState, now: Instant) -> Steps[None]:
    """The same, and everybody is counted."""
    fallen = yield from after(endings, state, now)
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


def expire(now: Instant) -> Steps[None]:
    """Cancel what has waited beyond its `expires`."""
    while rows := (yield Query("expired", (now,))):
        if not (yield from cancel_waiting([row[0] for row in rows], "expired", now)):
            return  # whoever is found again and again and cannot be cancelled must not hold up the claim
