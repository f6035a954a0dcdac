"""What a planner learns from the job of a tick: that it began, and how it ended.

Only the last word on a job counts; a job that was lost, cancelled or never made counts for nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millpond.job import ENDS, Instant, Job, JobState
from millpond.orchestrator.events import BreakerClosed, BreakerOpened, Happening
from millpond.orchestrator.ledger import RECENT, Entry, Recent
from millpond.recurring import RecurringTask
from millpond.rules.recurring import continuous
from millpond.rules.recurring.breaker import TickEnd, after_tick, phase, result_of

MOST_ERROR = 500  # characters kept of an error


def has_ended(job: Job | None) -> bool:
    """Is there nothing more to learn? A job that is not there was never made, or has been deleted."""
    return job is None or job.state in ENDS


def started_at(job: Job) -> Instant | None:
    """When it last began. The store is not told before its end, if that comes soon; and never after its end,
    as it may seem when somebody has set the clock of the node meanwhile."""
    last = job.attempts[-1].started_at if job.attempts else None
    begun = max(job.started_at or 0, last or 0) or None
    return begun if begun is None or job.finished_at is None else min(begun, job.finished_at)


def starts(job: Job, finished: Instant) -> tuple[Instant, ...]:
    """When each of its attempts began, as far as is known, none after its end."""
    known = [attempt.started_at for attempt in job.attempts if attempt.started_at is not None]
    if not known and job.started_at is not None:
        known = [job.started_at]
    return tuple(sorted(min(at, finished) for at in known))


def begun(entry: Entry, job: Job, now: Instant) -> None:
    """The tick runs, or has run. It did not begin after now, whatever the clock of its begin showed."""
    begin = started_at(job)
    started = None if begin is None else min(begin, now)
    if started is not None and started > (entry.started_at or 0):
        entry.started_at, entry.job = started, job.id


def why_not(entry: Entry, at: Instant) -> str:
    """Why a tick has no job: as was found when it was planned again, or another of the task was there."""
    return next((tick.result for tick in entry.doubts if tick.at == at), "overlap")


def ended(
    task: RecurringTask[..., Any], entry: Entry, at: Instant, job: Job | None, now: Instant
) -> Iterator[Happening]:
    """The tick is over: what follows for the task."""
    entry.unfinished = tuple(other for other in entry.unfinished if other != at)
    entry.doubts = tuple(tick for tick in entry.doubts if tick.at != at)
    result = "gone" if job is None else job.state.value
    entry.recent = (*entry.recent, Recent(at, result))[-RECENT:]
    finished = now if job is None else min(now, job.finished_at or now)
    if task.mode == "continuous":
        runs = () if job is None else starts(job, finished)
        entry.restarts = continuous.ended(entry.restarts, task.restart_rule, finished, runs)
    if job is None:
        yield from _breaker(task, entry, TickEnd(at, None, "neutral"), now)
        return
    begun(entry, job, now)
    if job.state is JobState.COMPLETED:
        entry.succeeded_at = max(entry.succeeded_at or 0, finished)
        entry.succeeded = max(entry.succeeded or 0, at)
    error = error_of(job)
    if job.state is JobState.DEAD:
        entry.failed_at, entry.error = finished, error
    end = TickEnd(at, started_at(job), result_of(job.state, job.reason), error)
    yield from _breaker(task, entry, end, now)


def _breaker(task: RecurringTask[..., Any], entry: Entry, end: TickEnd, now: Instant) -> Iterator[Happening]:
    before = entry.breaker
    after = entry.breaker = after_tick(before, task.breaker_rule, end, task.name, now)
    was_closed, is_closed = phase(before, now) == "closed", phase(after, now) == "closed"
    if was_closed and not is_closed:
        yield BreakerOpened(task.name, after.failures, after.error, after.probe_at)
    elif is_closed and not was_closed:
        yield BreakerClosed(task.name)


def error_of(job: Job) -> str:
    """Why the job ended dead, in a line."""
    last = job.attempts[-1] if job.attempts else None
    said = ": ".join(filter(None, (last.error, last.message))) if last else ""
    return (said or job.reason or "")[:MOST_ERROR]
