"""What people and upkeep do to jobs and queues: cancel, replay, prune, configure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from millpond.job import DAY, ENDS, MICROSECONDS, WAITING, Instant, JobState, Slot
from millpond.store.protocol import PAGE, Filter, Retention
from millpond.store.relational import ends
from millpond.store.relational.query import Many, Query, Row, Steps
from millpond.store.relational.reading import find
from millpond.store.relational.statistics import MINUTE, count
from millpond.store.relational.tallies import moves, tell


def condition(chosen: Filter, states: frozenset[JobState]) -> tuple[list[str], Row]:
    """The states to look in, and the parameters (queue, task, ids) of a choosing statement."""
    wanted = [state.value for state in JobState if state in states]
    if chosen.states:
        wanted = [state for state in wanted if state in chosen.states]
    return wanted, (chosen.queue, chosen.task, list(chosen.ids) if chosen.ids else None)


def cancel(chosen: Filter, now: Instant, limit: int = PAGE) -> Steps[tuple[int, bool]]:
    """End waiting jobs, ask for the end of running ones. Returns how many, and whether to go on.

    All are found in one look and stay as they were found: none slips through by being claimed or going back.
    """
    states, parameters = condition(chosen, WAITING | {JobState.RUNNING})
    rows = (yield Query("to_cancel", (states, *parameters, limit))) if states else []
    running = [row[0] for row in rows if row[1] == JobState.RUNNING]
    asked: list[Row] = (yield Query("ask_to_end", (running,))) if running else []
    waiting = [row[0] for row in rows if row[1] != JobState.RUNNING]
    cancelled = yield from ends.cancel_waiting(waiting, "cancelled", now)
    return cancelled + len(asked), len(rows) == limit


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
    yield Query("forget_uniques", (now,))
    yield Query("forget_statistics", ((now - round(retention.statistics * MICROSECONDS)) // MINUTE,))
    yield Query("fold_tallies", (now // MINUTE - 1,))
    yield Query("forget_tallies", ())
    yield Query("forget_graves", (now - 7 * DAY,))
    yield Query("forget_ticks", (now - round(retention.ticks * MICROSECONDS),))
    return number, more


def discard(chosen: Filter, now: Instant, limit: int = PAGE) -> Steps[tuple[int, bool]]:
    """Delete ended jobs by choice. Returns how many, and whether to go on."""
    states, parameters = condition(chosen, ENDS)
    rows = (yield Query("choose", (states, *parameters, limit))) if states else []
    number = yield from _delete([row[0] for row in rows], now)
    return number, len(rows) == limit


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
        yield Query("write_queue", (queue, paused, rate is not None, limit, now))
    if slot is not None:
        yield Query("write_slot", (slot.name, slot.capacity))
