"""Brings the entry of a task back to a clock that is right again, by `rules/recurring/correction.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from millpond.job import MICROSECONDS, Instant, Job, JobState
from millpond.orchestrator.ledger import Entry
from millpond.rules.recurring import correction

if TYPE_CHECKING:
    from millpond.recurring import RecurringTask


def correct(task: RecurringTask[..., Any], entry: Entry, now: Instant) -> float:
    """Returns by how many seconds the entry was ahead of the clock; 0 if nothing had to be changed."""
    seen = (entry.cursor, entry.started_at, entry.succeeded_at, entry.failed_at, entry.restarts.ended_at)
    latest = max(at or 0 for at in (*seen, *entry.restarts.starts))
    if not correction.is_ahead(latest, now):
        return 0.0
    if correction.is_ahead(entry.cursor, now):
        entry.dispute = correction.Dispute(
            now, max(entry.cursor, entry.dispute.until if entry.dispute else 0)
        )
        due = now - task.offset  # instants after that have a tick that is not due yet
        decided = [
            *(tick.at for tick in entry.recent),
            *entry.unfinished,
            *(tick.at for tick in entry.waiting),
        ]
        entry.cursor = correction.resume(decided, due)
    entry.started_at, entry.succeeded_at, entry.succeeded, entry.failed_at = (
        None if at is None else min(at, now)
        for at in (entry.started_at, entry.succeeded_at, entry.succeeded, entry.failed_at)
    )
    entry.waiting = tuple(tick for tick in entry.waiting if not correction.is_ahead(tick.at, now))
    entry.restarts = correction.restarts(entry.restarts, now)
    entry.breaker = correction.breaker(entry.breaker, task.breaker_rule, now)
    probing = entry.breaker.probing
    if correction.is_ahead(probing, now) and probing not in entry.unfinished:  # it was held back
        entry.breaker = replace(entry.breaker, probing=None)
    return (latest - now) / MICROSECONDS


def stranded(job: Job | None, now: Instant) -> bool:
    """Does this job of a tick wait for a time that the wrong clock named? It would hold its task up until
    then, as the tick that has not ended."""
    waits = job is not None and job.state in (JobState.QUEUED, JobState.SCHEDULED)
    return waits and job is not None and correction.is_ahead(job.run_at, now)
