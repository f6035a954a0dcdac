"""The life of a job: which states follow which, and what an outcome does to a job.

Pure: a job, an outcome and the time in, a Transition out. Errors and timeouts share one budget; crashes
and lost leases each have their own; an execution that is not known to have begun costs nothing.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from millpond.job import (
    DAY,
    ENDS,
    MICROSECONDS,
    Attempt,
    Cancelled,
    Crashed,
    Instant,
    Job,
    JobState,
    Lost,
    Outcome,
    OutOfMemory,
    Raised,
    Released,
    Returned,
    Snoozed,
    TimedOut,
    Transition,
    Unknown,
    Unread,
    Unsatisfiable,
)
from millpond.rules.jobs.retry import delay_after

_encode = msgspec.json.Encoder().encode

BLOCKED, SCHEDULED, QUEUED, RUNNING = (
    JobState.BLOCKED,
    JobState.SCHEDULED,
    JobState.QUEUED,
    JobState.RUNNING,
)
COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED

# Every step a job may take, and what makes it take it. Whatever is not here cannot happen.
STEPS: dict[tuple[JobState, JobState], str] = {
    (BLOCKED, QUEUED): "all it depends on completed",
    (BLOCKED, SCHEDULED): "all it depends on completed, its time has not come",
    (BLOCKED, CANCELLED): "cancelled, expired, or something it depends on died",
    (SCHEDULED, QUEUED): "its time has come",
    (SCHEDULED, CANCELLED): "cancelled or expired",
    (QUEUED, RUNNING): "claimed",
    (QUEUED, CANCELLED): "cancelled or expired",
    (QUEUED, DEAD): "its record is damaged",
    (RUNNING, COMPLETED): "returned",
    (RUNNING, QUEUED): "released, its worker or node died, or to be tried again at once",
    (RUNNING, SCHEDULED): "raised or timed out and will be tried again, snoozed, or given back for a while",
    (RUNNING, DEAD): "a budget is used up, or trying again would be in vain",
    (RUNNING, CANCELLED): "cancelled while it ran",
    (DEAD, QUEUED): "replayed",
}


def may_become(before: JobState, after: JobState) -> bool:
    """Is this step in the table?"""
    return (before, after) in STEPS


def rank(run_at: Instant, priority: int) -> int:
    """The place in line, smallest first: a step of priority is worth a day, so nothing starves for ever."""
    return run_at - priority * DAY


def first_state(run_at: Instant, now: Instant, *, blocked: bool) -> JobState:
    """Where a job stands when nothing but time and its dependencies hold it back."""
    if blocked:
        return BLOCKED
    return SCHEDULED if run_at > now else QUEUED


def settle(job: Job, outcome: Outcome, now: Instant) -> Transition:
    """What becomes of a running job after this outcome."""
    match outcome:
        case Returned(refused=None):
            return _end(job, COMPLETED, attempt=job.attempt + 1, result=outcome.result)
        case Returned():
            return _end(job, DEAD, reason="result", attempt=job.attempt + 1)
        case Raised():
            return _failed(job, now, "failed", final=outcome.final, retry_in=outcome.retry_in)
        case Unread():
            return _failed(job, now, "failed")
        case TimedOut():
            return _failed(job, now, "timeout")
        case Crashed() | OutOfMemory() | Lost() | Unsatisfiable() | Unknown():
            return _cut_short(job, outcome)
        case Snoozed():
            return _again(job, now, outcome.delay)
        case Cancelled():
            return _end(job, CANCELLED, reason=outcome.reason, attempt=job.attempt + 1)
        case Released():
            return _given_back(job, outcome, now)
        case _:
            assert_never(outcome)


def instead_if_cancelling(transition: Transition) -> Transition:
    """A job whose end somebody asked for is not run again: it may only end."""
    if transition.state in ENDS:
        return transition
    return Transition(
        state=CANCELLED,
        reason="cancelled",
        rank=transition.rank,
        run_at=transition.run_at,
        attempt=transition.attempt,
        errors=transition.errors,
        crashes=transition.crashes,
        lost=transition.lost,
        line=transition.line,
    )


def _failed(
    job: Job, now: Instant, reason: str, *, final: bool = False, retry_in: float | None = None
) -> Transition:
    errors = job.errors + 1
    if final or errors >= job.options.max_attempts:
        return _end(job, DEAD, reason=reason, attempt=job.attempt + 1, errors=errors)
    delay = delay_after(job.options, job.id, errors) if retry_in is None else retry_in
    return _again(job, now, delay, attempt=job.attempt + 1, errors=errors)


def _cut_short(job: Job, outcome: Crashed | OutOfMemory | Lost | Unsatisfiable | Unknown) -> Transition:
    """The function did not come to an end of its own."""
    match outcome:
        case Crashed():
            return _crashed(job, outcome)
        case OutOfMemory():
            return _out_of_memory(job, outcome)
        case Lost():
            return _lost(job, outcome)
        case Unsatisfiable():
            return _end(job, DEAD, reason="resources", attempt=job.attempt)
        case Unknown():
            return _end(job, DEAD, reason="unknown", attempt=job.attempt)


def _given_back(job: Job, outcome: Released, now: Instant) -> Transition:
    """Nothing is charged. A job that is not due at once keeps its rank: it stands where it stood when its
    time has come, and since when it has been due can still be told (`rules/jobs/known_tasks.py`)."""
    again = _same_place(job, alone=job.alone)
    if not outcome.retry_in:
        return again
    run_at = now + round(outcome.retry_in * MICROSECONDS)
    return msgspec.structs.replace(again, state=SCHEDULED, run_at=run_at)


def _crashed(job: Job, outcome: Crashed) -> Transition:
    if (
        outcome.suspects != 1
    ):  # charges nobody; each suspect is tried once by itself, and only that is charged
        return _same_place(job, attempt=job.attempt + 1, alone=job.alone or outcome.suspects > 1)
    crashes = job.crashes + 1
    if crashes >= job.options.max_crashes:
        return _end(job, DEAD, reason="crashed", attempt=job.attempt + 1, crashes=crashes)
    return _same_place(job, attempt=job.attempt + 1, crashes=crashes, alone=job.alone)


def _out_of_memory(job: Job, outcome: OutOfMemory) -> Transition:
    """The kernel's kill is charged as a crash; a stop by the node as a loss, of which there may be more."""
    crashes, lost = job.crashes + (not outcome.preempted), job.lost + outcome.preempted
    if outcome.final or crashes >= job.options.max_crashes or lost >= job.options.max_lost:
        return _end(job, DEAD, reason="memory", attempt=job.attempt + 1, crashes=crashes, lost=lost)
    return _same_place(job, attempt=job.attempt + 1, crashes=crashes, lost=lost, alone=job.alone)


def _lost(job: Job, outcome: Lost) -> Transition:
    if not outcome.started:
        return _same_place(job, alone=job.alone)
    lost = job.lost + 1
    if lost >= job.options.max_lost:
        return _end(job, DEAD, reason="lost", attempt=job.attempt + 1, lost=lost)
    return _same_place(job, attempt=job.attempt + 1, lost=lost, alone=job.alone)


def _end(
    job: Job,
    state: JobState,
    *,
    attempt: int,
    reason: str | None = None,
    result: bytes | None = None,
    errors: int | None = None,
    crashes: int | None = None,
    lost: int | None = None,
) -> Transition:
    return Transition(
        state=state,
        reason=reason,
        result=result,
        rank=job.rank,
        run_at=job.run_at,
        attempt=attempt,
        errors=job.errors if errors is None else errors,
        crashes=job.crashes if crashes is None else crashes,
        lost=job.lost if lost is None else lost,
    )


def _again(
    job: Job, now: Instant, delay: float, *, attempt: int | None = None, errors: int | None = None
) -> Transition:
    """Back after a while, with a new place in line."""
    run_at = now + round(delay * MICROSECONDS)
    return Transition(
        state=SCHEDULED if run_at > now else QUEUED,
        rank=rank(run_at, job.priority),
        run_at=run_at,
        attempt=job.attempt if attempt is None else attempt,
        errors=job.errors if errors is None else errors,
        crashes=job.crashes,
        lost=job.lost,
    )


def _same_place(
    job: Job,
    *,
    attempt: int | None = None,
    crashes: int | None = None,
    lost: int | None = None,
    alone: bool = False,
) -> Transition:
    """Back in line where it stood: it was not its fault, or nothing had begun."""
    return Transition(
        state=QUEUED,
        rank=job.rank,
        run_at=job.run_at,
        attempt=job.attempt if attempt is None else attempt,
        errors=job.errors,
        crashes=job.crashes if crashes is None else crashes,
        lost=job.lost if lost is None else lost,
        alone=alone,
    )


def rescued(job: Job, dead: str, now: Instant) -> Transition:
    """The verdict on a job whose node is gone."""
    has_begun = job.started_at is not None
    verdict = settle(job, Lost(started=has_begun), now)
    line = Attempt(
        number=verdict.attempt,
        node=dead,
        ended="lost",
        ended_at=now,
        started_at=job.started_at,
        message="its node was gone" if has_begun else "its node was gone before it began",
    )
    return msgspec.structs.replace(verdict, line=_encode(line))
