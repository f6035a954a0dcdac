"""Looking without touching: jobs by id, by filter, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.job import MICROSECONDS, Instant, Job, JobState
from millpond.store.protocol import PAGE, Counts, Filter, Page, QueueCounts
from millpond.store.relational.leases import node_records
from millpond.store.relational.query import LeaseClock, Query, Steps
from millpond.store.relational.rows import readable


def get(ids: Sequence[str]) -> Steps[list[Job | None]]:
    """Whole jobs, in the order asked; one that cannot be read counts as absent."""
    rows = yield Query("get", (list(ids),))
    jobs = {job.id: job for job in readable(rows)}
    return [jobs.get(job) for job in ids]


def search(chosen: Filter, limit: int, cursor: str | None) -> Steps[Page]:
    """Jobs, newest first."""
    limit = max(1, min(limit, PAGE))
    states = [state.value for state in JobState if state in chosen.states] or None
    ids = list(chosen.ids) if chosen.ids else None
    rows = yield Query("search", (states, chosen.queue, chosen.task, ids, cursor, limit))
    jobs = readable(rows)
    return Page(tuple(jobs), rows[-1][0] if len(rows) == limit else None)


def counts(now: Instant, *, ready_only: bool = False) -> Steps[Counts]:
    """Everything there is, in numbers; or only what could be claimed, which is quick to count."""
    settings = yield Query("all_queues", ())
    if ready_only:
        ready = yield Query("ready_counts", ())
        numbers = [(queue, JobState.QUEUED, number) for queue, number, _ in ready]
        oldest: dict[str, int] = {queue: since for queue, _, since in ready}
    else:
        numbers = yield Query("counts", ())
        oldest = dict((yield Query("oldest", ())))
    found = {name: QueueCounts(name, bool(paused), rate, {}, None) for name, paused, rate in settings}
    for queue, state, number in numbers:
        record = found.setdefault(queue, QueueCounts(queue, False, None, {}, None))
        record.states[JobState(state)] = int(number)
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


def _since(instant: int | None, now: Instant) -> float | None:
    return None if instant is None else max(0.0, (now - instant) / MICROSECONDS)
