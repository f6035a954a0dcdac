"""Small things that must survive: ticks of recurring tasks, versioned documents, bounded logs."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.errors import Conflict
from millpond.job import MICROSECONDS, Instant, NewJob
from millpond.store.protocol import Document, Entry, Tick
from millpond.store.sql.enqueue import enqueue, job_row
from millpond.store.sql.query import Hint, Many, Query, Row, Steps

NO_JOB: Row = (None,) * 18  # what a tick without a job has in the columns of one

First = dict[tuple[str, int], Tick]


def plan(ticks: Sequence[Tick], now: Instant) -> Steps[list[bool]]:
    """Record ticks; those that are new enqueue their jobs in the same step."""
    first = _first(ticks)
    wanted = [(name, at, tick.job.id if tick.job else None, now) for (name, at), tick in first.items()]
    new = {(row[0], row[1]) for row in (yield Many("tick", wanted))} if wanted else set()
    jobs = [tick.job for key, tick in first.items() if key in new and tick.job is not None]
    if jobs:
        yield from enqueue(jobs, now)
    return _answers(ticks, first, new)


def is_plain(ticks: Sequence[Tick]) -> bool:
    """Can these be recorded by one statement? Not with parents to look up, a slot to stand in line for, or
    one id twice."""
    jobs = [tick.job for tick in ticks if tick.job is not None]
    alone = not any(job.depends_on or (job.slots and job.run_at is None) for job in jobs)
    return alone and len({job.id for job in jobs}) == len(jobs)


def plan_at_once(ticks: Sequence[Tick], now: Instant) -> Steps[list[bool]]:
    """The same by a single statement, where a round trip costs more than the work."""
    first = _first(ticks)
    rows = [(*key, *(NO_JOB if tick.job is None else _columns(tick.job, now))) for key, tick in first.items()]
    slots = [
        (tick.job.id, slot.name, slot.capacity)
        for tick in first.values()
        if tick.job is not None
        for slot in tick.job.slots
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    held = [list(column) for column in zip(*slots, strict=True)] or [[], [], []]
    found = yield Query("plan", (*columns, now, *held))
    yield Hint(frozenset(tick.job.queue for tick in first.values() if tick.job is not None))
    return _answers(ticks, first, {(row[0], row[1]) for row in found})


def _columns(job: NewJob, now: Instant) -> Row:
    lasts = job.unique_for
    return (*job_row(job, now), None if isinstance(lasts, str) else now + round(lasts * MICROSECONDS))


def _first(ticks: Sequence[Tick]) -> First:
    """The first of each name and instant, in the order in which all planners take them."""
    found: First = {}
    for tick in ticks:
        found.setdefault((tick.recurring, tick.at), tick)
    return dict(sorted(found.items()))


def _answers(ticks: Sequence[Tick], first: First, new: set[tuple[str, int]]) -> list[bool]:
    return [first[tick.recurring, tick.at] is tick and (tick.recurring, tick.at) in new for tick in ticks]


def record(name: str, value: bytes | None, version: int | None) -> Steps[Document]:
    """Read a document, or write it if nobody else has."""
    if value is None:
        rows = yield Query("document", (name,))
        return Document(bytes(rows[0][0]), int(rows[0][1])) if rows else Document(b"", 0)
    rows = yield Query("write_document", (name, value, version or 0))
    if not rows:
        raise Conflict(f"document {name!r} is no longer at version {version or 0}: read it again and retry")
    return Document(value, int(rows[0][0]))


def log(
    name: str, entries: Sequence[bytes], now: Instant, *, after: int, limit: int, keep: int
) -> Steps[list[Entry]]:
    """Append to a log, forget what is beyond its bound (the last one stays: it has the number), read on."""
    if entries:
        yield Query("lock_log", (name,))
        ((last,),) = yield Query("last_entry", (name,))
        rows = [(name, last + place, now, entry) for place, entry in enumerate(entries, start=1)]
        yield Many("append", rows)
        yield Query("forget_entries", (name, last + len(entries) - max(1, keep)))
    found = yield Query("entries", (name, after, max(0, limit)))
    return [Entry(int(number), int(at), bytes(data)) for number, at, data in found]
