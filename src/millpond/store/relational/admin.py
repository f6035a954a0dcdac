"""What people and upkeep do to jobs and queues: cancel, replay, prune, configure."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.job import DAY, ENDS, MICROSECONDS, WAITING, Instant, JobState, Slot
from millpond.store.protocol import PAGE, Filter, Retention
from millpond.store.relational import ends
from millpond.store.relational.query import Many, Query, Row, Steps
from millpond.store.relational.statistics import MINUTE


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
    states, parameters = condition(chosen, frozenset({JobState.DEAD}))
    rows = (yield Query("search", (states, *parameters, below, limit))) if states else []
    ids = sorted(row[0] for row in rows if row[4] != "damaged")
    revived = (yield Many("replay", [(job, now, DAY) for job in ids])) if ids else []
    return len(revived), rows[-1][0] if len(rows) == limit else None


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
        number += yield from _delete([row[0] for row in rows])
        more = more or len(rows) == limit
    yield Query("forget_uniques", (now,))
    yield Query("forget_statistics", ((now - round(retention.statistics * MICROSECONDS)) // MINUTE,))
    yield Query("forget_graves", (now - 7 * DAY,))
    yield Query("forget_ticks", (now - round(retention.dead * MICROSECONDS),))
    return number, more


def discard(chosen: Filter, limit: int = PAGE) -> Steps[tuple[int, bool]]:
    """Delete ended jobs by choice. Returns how many, and whether to go on."""
    states, parameters = condition(chosen, ENDS)
    rows = (yield Query("choose", (states, *parameters, limit))) if states else []
    number = yield from _delete([row[0] for row in rows])
    return number, len(rows) == limit


def _delete(ids: Sequence[str]) -> Steps[int]:
    if not ids:
        return 0
    yield Query("delete_jobs", (list(ids),))
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
