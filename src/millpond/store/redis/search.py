"""Looking without touching, on Redis: jobs by id, by filter, and numbers.

Page by page, so that no script runs for long. What is found may have moved on when it is used: verbs that
change jobs look again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from millpond.job import MICROSECONDS, Job, JobState
from millpond.store.protocol import PAGE, Counts, Filter, Minute, NodeRecord, Page, QueueCounts
from millpond.store.redis.connection import Server
from millpond.store.redis.encoding import readable
from millpond.store.sql.statistics import minutes_of

ALL = tuple(state.value for state in JobState)
MINUTES = 500  # read at once
LOOKED = 250  # jobs that one script of a search looks at: nodes wait for the server meanwhile
MOST_LOOKED = 4_000  # jobs that one search looks at: those of a rare task may be far apart


def get(server: Server, ids: Sequence[str]) -> list[Job | None]:
    """Whole jobs, in the order asked; one that cannot be read counts as absent."""
    found: dict[str, Job] = {}
    for first in range(0, len(ids), PAGE):
        rows = server.run("get", (ids[first : first + PAGE], None), writes=False)
        found.update({job.id: job for job in readable(rows)})
    return [found.get(job) for job in ids]


def search(server: Server, chosen: Filter, limit: int, cursor: str | None) -> Page:
    """Jobs, newest first."""
    limit = max(1, min(limit, PAGE))
    narrow = chosen.queue is not None or chosen.task is not None
    rows: list[Any] = []
    looked = 0
    for ids in pages(server, chosen, ALL, cursor or "", LOOKED if narrow else limit):
        rows += server.run("get", (ids, condition(chosen)), writes=False)
        looked += len(ids)
        if len(rows) >= limit:
            break
        if looked >= MOST_LOOKED:
            return Page(tuple(readable(rows)), ids[-1])
    rows = rows[:limit]
    return Page(tuple(readable(rows)), rows[-1][0].decode() if len(rows) == limit else None)


def condition(chosen: Filter) -> tuple[Any, ...]:
    """A filter as `chosen.lua` takes it."""
    return [str(state) for state in chosen.states], chosen.queue, chosen.task


def pages(
    server: Server, chosen: Filter, states: Sequence[str], below: str = "", size: int = PAGE
) -> Iterator[list[str]]:
    """Ids that may fit a filter, newest first, some at a time. They must be looked at again when used."""
    if chosen.ids:
        ids = sorted({job for job in chosen.ids if not below or job < below}, reverse=True)
        yield from (ids[first : first + size] for first in range(0, len(ids), size))
        return
    wanted = [state for state in states if not chosen.states or state in chosen.states]
    while wanted:
        found = server.run("ids", (wanted, below, size), writes=False)
        ids = sorted({job.decode() for part in found for job in part}, reverse=True)[:size]
        if ids:
            below = ids[-1]
            yield ids
        if len(ids) < size:
            return


def counts(server: Server, *, ready_only: bool = False) -> Counts:
    """Everything there is, in numbers, or only what could be claimed."""
    settings, numbers, oldest, nodes, now = server.run("counts", (int(ready_only),), writes=False)
    found: dict[str, QueueCounts] = {}
    since = {queue: max(0.0, (int(now) - int(run_at)) / MICROSECONDS) for queue, run_at in oldest}
    for queue, paused, rate in settings:
        name = queue.decode()
        found[name] = QueueCounts(name, paused == b"1", float(rate) if rate else None, {}, since.get(queue))
    for field, number in zip(numbers[::2], numbers[1::2], strict=True):
        queue, _, state = field.rpartition(b"\0")
        name = queue.decode()
        record = found.setdefault(name, QueueCounts(name, False, None, {}, since.get(queue)))
        record.states[JobState(state.decode())] = int(number)
    return Counts(
        tuple(found[name] for name in sorted(found)),
        tuple(sorted((_node(row, int(now)) for row in nodes), key=lambda node: node.id)),
    )


def _node(row: Sequence[Any], now: int) -> NodeRecord:
    node, host, info, until, sequence, sealed, running = row
    left = (int(until or 0) - now) / MICROSECONDS
    host_name = (host or b"").decode()
    return NodeRecord(
        node.decode(), host_name, info or b"", left, int(sequence or 0), bool(sealed), int(running)
    )


def statistics(server: Server, since: int, until: int) -> list[Minute]:
    """What happened from one minute up to another."""
    rows: list[tuple[str, int, str, int, int]] = []
    while found := server.run("statistics", (str(since), str(until), MINUTES), writes=False):
        for minute, flat in found:
            since = int(minute) + 1
            for field, number in zip(flat[::2], flat[1::2], strict=True):
                queue, what, part = field.decode().rsplit("\0", 2)
                rows.append((queue, int(minute), what, int(part), int(number)))
        if len(found) < MINUTES:
            break
    return minutes_of(rows)
