"""What people and upkeep do to jobs and queues: cancel, replay, prune, configure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from millpond.job import DAY, MICROSECONDS, WAITING, Instant, JobState, Slot
from millpond.store.protocol import PAGE, Filter, Retention
from millpond.store.sql import after_end, slots
from millpond.store.sql.job_counts import moves, tell
from millpond.store.sql.query import Hint, Many, Query, Row, Steps
from millpond.store.sql.search import find
from millpond.store.sql.statistics import MINUTE, count

UNENDED = WAITING | {JobState.RUNNING}


def among(chosen: Filter, states: frozenset[JobState]) -> Filter | None:
    """The filter, looking in no other states than these; None if that leaves none."""
    wanted = tuple(state for state in JobState if state in states and state in (chosen.states or states))
    return replace(chosen, states=wanted) if wanted else None


def _parameters(chosen: Filter, ids: list[str]) -> Row:
    return [state.value for state in chosen.states], chosen.queue, chosen.task, ids


def cancel(chosen: Filter, ids: list[str], now: Instant, *, waits: bool = False) -> Steps[int]:
    """End those of these jobs that wait, ask for the end of those that run; returns how many.

    They are looked at again, in one look, and stay as they are found then: between the look that chose them
    and this one any of them may have been claimed, or gone back in line. One that another transaction has
    locked is passed over, or waited for if the call `waits`.
    """
    look = "to_cancel_locked" if waits else "to_cancel"
    rows = yield Query(look, _parameters(chosen, ids))
    running = [row[0] for row in rows if row[1] == JobState.RUNNING]
    asked: list[Row] = (yield Query("ask_to_end", (running,))) if running else []
    waiting = [row[0] for row in rows if row[1] != JobState.RUNNING]
    cancelled = yield from after_end.cancel_waiting(waiting, "cancelled", now)
    return cancelled + len(asked)


def replay(
    chosen: Filter, now: Instant, below: str | None, limit: int = PAGE
) -> Steps[tuple[int, str | None]]:
    """Queue dead jobs again, the newest below an id. Returns how many, and the id to go on below.

    Damaged ones stay dead: by going on below them, any number of them hides nobody.
    """
    if chosen.states and JobState.DEAD not in chosen.states:
        return 0, None
    rows, goes_on = yield from find(replace(chosen, states=(JobState.DEAD,)), limit, below)
    queues = {row[0]: row[2] for row in rows if row[4] != "damaged"}
    again = (yield Many("replay", [(job, now, DAY) for job in sorted(queues)])) if queues else []
    if again:
        yield Query("stop_cascades", ([row[0] for row in again],))
        yield Hint(frozenset(queues[row[0]] for row in again))
    gone = moves((queues[row[0]], "dead", "queued" if row[1] else None, 1) for row in again)
    yield from tell(gone, now)
    yield from count(Counter((queues[row[0]], "replayed", 0) for row in again if row[1]), now)
    return sum(bool(row[1]) for row in again), goes_on


def prune(retention: Retention, now: Instant, limit: int = PAGE) -> Steps[tuple[int, bool]]:
    """Delete what is old enough. Returns how many, and whether to go on."""
    before = {
        JobState.COMPLETED: now - round(retention.completed * MICROSECONDS),
        JobState.CANCELLED: now - round(retention.cancelled * MICROSECONDS),
        JobState.DEAD: now - round(retention.dead * MICROSECONDS),
    }
    number, more = 0, False
    for state in sorted(before):
        rows = yield Query("ended_before", (state.value, before[state], limit))
        number += yield from _delete([row[0] for row in rows], now)
        more = more or len(rows) == limit
    more = (yield from _forget(retention, now, limit)) or more
    yield Query("fold_tallies", (now // MINUTE - 1,))
    yield Query("forget_tallies", ())
    yield Query("forget_graves", (now - 7 * DAY,))
    return number, more


def _forget(retention: Retention, now: Instant, limit: int) -> Steps[bool]:
    """Forget a page of each small record that is over; True if some page was full."""
    minute = (now - round(retention.statistics * MICROSECONDS)) // MINUTE
    most = yield from slots.forget(now, limit)
    for request in (
        Query("forget_uniques", (now, limit)),
        Query("forget_statistics", (minute, limit)),
        Query("forget_ticks", (now - round(retention.ticks * MICROSECONDS), limit)),
    ):
        most = max(most, len((yield request)))
    return most == limit


def discard(chosen: Filter, ids: list[str], now: Instant) -> Steps[int]:
    """Delete those of these jobs that have ended still; returns how many."""
    rows = yield Query("choose", _parameters(chosen, ids))
    return (yield from _delete([row[0] for row in rows], now))


def _delete(ids: Sequence[str], now: Instant) -> Steps[int]:
    if not ids:
        return 0
    gone = yield Query("delete_jobs", (list(ids),))
    yield from tell(moves((row[0], row[1], None, int(row[2])) for row in gone), now)
    yield Query("forget_child", (list(ids),))
    return len(ids)


def configure(
    queue: str | None, paused: bool | None, rate: float | None, slot: Slot | None, now: Instant
) -> Steps[None]:
    """Change a queue's settings or a slot's capacity."""
    if queue is not None:
        limit = rate or None
        rows = yield Query("write_queue", (queue, paused, rate is not None, limit, now))
        yield Hint(frozenset({queue} if rows and not rows[0][0] else ()))
    if slot is not None:
        rows = yield Query("write_slot", (slot.name, slot.capacity, now))
        yield Hint(frozenset(row[0] for row in rows))
