"""Looking without touching: jobs by id, by filter, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.ids import GREATEST, LEAST, is_id
from millpond.job import DAY, MICROSECONDS, Instant, Job, JobState
from millpond.store.protocol import PAGE, Counts, Filter, Page, QueueCounts
from millpond.store.sql.job_counts import PARKED
from millpond.store.sql.leases import node_records
from millpond.store.sql.query import LeaseClock, Query, Row, Steps
from millpond.store.sql.rows import readable

FEW = 5000  # jobs of some states are sorted rather than looked for among all the others
LOOKED = 20_000  # jobs that one search looks at: those of a rare task may be far apart
DEAD = [JobState.DEAD.value]


def get(ids: Sequence[str]) -> Steps[list[Job | None]]:
    """Whole jobs, in the order asked; one that cannot be read counts as absent."""
    rows = yield Query("get", ([job for job in ids if is_id(job)],))
    jobs = {job.id: job for job in readable(rows)}
    return [jobs.get(job) for job in ids]


def search(chosen: Filter, limit: int, cursor: str | None) -> Steps[Page]:
    """Jobs, newest first."""
    rows, goes_on = yield from find(chosen, max(1, min(limit, PAGE)), cursor)
    return Page(tuple(readable(rows)), goes_on)


def find(chosen: Filter, limit: int, cursor: str | None) -> Steps[tuple[list[Row], str | None]]:
    """Whole rows, newest first, and where to go on: a page may be short, or empty, and goes on."""
    below = GREATEST if cursor is None else cursor
    if not is_id(below):
        return [], None  # no search has answered with this cursor
    if chosen.ids:
        return (yield from _of_ids(chosen, limit, below))
    ids, goes_on = yield from look(chosen, limit, below)
    rows = (yield Query("get", (ids,))) if ids else []
    return sorted(rows, reverse=True, key=_id), goes_on


def look(chosen: Filter, limit: int, below: str) -> Steps[tuple[list[str], str | None]]:
    """The ids of a page, newest first, and where to go on. However much there is, only so much is looked at:
    then a page is short, or empty, and goes on."""
    states = [state.value for state in JobState if state in chosen.states] or None
    narrow = (chosen.queue, chosen.task)
    floor = LEAST
    if states is not None and states != DEAD and (yield from _are_few(states)):
        found = yield Query("search_few", (states, *narrow, below, limit))
    else:
        if states is not None or any(narrow):
            rows = yield Query("floor_dead" if states == DEAD else "floor", (states, below, LOOKED - 1))
            floor = (rows[0][0] if rows else None) or LEAST
        bounds = (below, floor, limit)
        if states == DEAD:
            found = yield Query("search_dead", (*narrow, *bounds))
        else:
            found = yield Query("search", (states, *narrow, *bounds, max(LOOKED, limit)))
    return [row[0] for row in found], _goes_on(found, limit, floor)


def _goes_on(found: Sequence[Row], limit: int, floor: str) -> str | None:
    if len(found) == limit:
        return str(found[-1][0])
    return None if floor == LEAST else floor


def _are_few(states: Sequence[str]) -> Steps[bool]:
    numbers = yield Query("counts", ())
    return sum(int(number) for _, what, number in numbers if what in states) <= FEW


def _of_ids(chosen: Filter, limit: int, below: str) -> Steps[tuple[list[Row], str | None]]:
    ids = sorted({job for job in chosen.ids if is_id(job) and job < below}, reverse=True)
    found: list[Row] = []
    for first in range(0, len(ids), PAGE):
        rows = yield Query("get", (ids[first : first + PAGE],))
        found += [row for row in sorted(rows, reverse=True, key=_id) if _fits(row, chosen)]
        if len(found) >= limit:
            return found[:limit], found[limit - 1][0]
    return found, None


def _fits(row: Row, chosen: Filter) -> bool:
    return (
        chosen.task in (None, row[1])
        and chosen.queue in (None, row[2])
        and (not chosen.states or row[3] in chosen.states)
    )


def _id(row: Row) -> str:
    return str(row[0])


def counts(now: Instant, *, ready_only: bool = False) -> Steps[Counts]:
    """Everything there is, in numbers; or only what could be claimed, which is quick to count."""
    settings = yield Query("all_queues", ())
    told = {(queue, what): int(number) for queue, what, number in (yield Query("counts", ()))}
    parked = {queue: number for (queue, what), number in told.items() if what == PARKED}
    ready = {
        queue: free
        for (queue, what), number in told.items()
        if what == JobState.QUEUED and (free := number - parked.get(queue, 0))
    }
    oldest = yield from _oldest(list(ready), [] if ready_only else list(parked), now)
    if ready_only:
        numbers = {(queue, JobState.QUEUED.value): number for queue, number in ready.items()}
    else:
        numbers = {key: number for key, number in told.items() if key[1] != PARKED}
    found = {name: QueueCounts(name, bool(paused), rate, {}, None) for name, paused, rate in settings}
    for (queue, state), number in numbers.items():
        record = found.setdefault(queue, QueueCounts(queue, False, None, {}, None))
        record.states[JobState(state)] = number
    queues = [
        QueueCounts(
            record.queue, record.paused, record.rate, record.states, _since(oldest.get(record.queue), now)
        )
        for record in found.values()
    ]
    nodes = yield Query("all_nodes", ())
    ((lease_now, epoch),) = yield LeaseClock()
    return Counts(
        tuple(sorted(queues, key=lambda record: record.queue)), tuple(node_records(lease_now, epoch, nodes))
    )


def _oldest(ready: list[str], parked: list[str], now: Instant) -> Steps[dict[str, int]]:
    """When the first in line was due, by queue: of those that could be claimed and of those parked."""
    rows = (yield Query("oldest", (ready, now, DAY))) if ready else []
    rows += (yield Query("oldest_parked", (parked,))) if parked else []
    found: dict[str, int] = {}
    for queue, since in rows:
        if since is not None:
            found[queue] = min(int(since), found.get(queue, int(since)))
    return found


def _since(instant: int | None, now: Instant) -> float | None:
    return None if instant is None else max(0.0, (now - instant) / MICROSECONDS)
