"""Small things that must survive: ticks of recurring tasks, versioned documents, bounded logs."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.errors import Conflict
from millpond.job import Instant
from millpond.store.protocol import Document, Entry, Tick
from millpond.store.relational.enqueue import enqueue
from millpond.store.relational.query import Many, Query, Steps


def plan(ticks: Sequence[Tick], now: Instant) -> Steps[list[bool]]:
    """Record ticks; those that are new enqueue their jobs in the same step."""
    first: dict[tuple[str, int], Tick] = {}
    for tick in ticks:
        first.setdefault((tick.recurring, tick.at), tick)
    wanted = [
        (name, at, tick.job.id if tick.job else None, now) for (name, at), tick in sorted(first.items())
    ]
    new = {(row[0], row[1]) for row in (yield Many("tick", wanted))} if wanted else set()
    jobs = [tick.job for key, tick in sorted(first.items()) if key in new and tick.job is not None]
    if jobs:
        yield from enqueue(jobs, now)
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
