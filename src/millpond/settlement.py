"""From an outcome to what the store is told: the transition, and the line in the job's history.

Values in, a value out; `rules/jobs/lifecycle.py` decides, this adds who ran it, when, and what it said.
"""

from __future__ import annotations

import msgspec

from millpond.job import (
    MICROSECONDS,
    Attempt,
    Cancelled,
    Crashed,
    Failure,
    Instant,
    Job,
    JobState,
    Lost,
    Outcome,
    OutOfMemory,
    Raised,
    Released,
    Returned,
    Settlement,
    Snoozed,
    TimedOut,
    Transition,
    Unknown,
    Unread,
    Unsatisfiable,
)
from millpond.rules.jobs.lifecycle import settle

_encode = msgspec.json.Encoder().encode
LINE = b'{"number":%d,"node":%b,"ended":"returned","ended_at":%d,"started_at":%d,"worker":%d}'
_ENDED = {
    Returned: "returned",
    Raised: "raised",
    TimedOut: "timed out",
    Crashed: "crashed",
    OutOfMemory: "out of memory",
    Unsatisfiable: "unsatisfiable",
    Unread: "raised",
    Unknown: "unknown",
    Lost: "lost",
    Snoozed: "snoozed",
    Cancelled: "cancelled",
}


def settlement(
    job: Job,
    outcome: Outcome,
    node: str,
    *,
    now: Instant,
    started_at: Instant | None = None,
    worker: int | None = None,
) -> Settlement:
    """What to tell the store about a job that this node claimed; `started_at` unless it never began."""
    transition = settle(job, outcome, now)
    if not isinstance(outcome, Released):
        line = _encode(attempt(job, outcome, node, now=now, started_at=started_at, worker=worker))
        transition = msgspec.structs.replace(transition, line=line)
    if started_at is None:
        return Settlement(job.id, job.token, transition)
    wait = max(0, started_at - job.run_at) / MICROSECONDS
    run = max(0, now - started_at) / MICROSECONDS
    return Settlement(job.id, job.token, transition, wait, run)


def completed(
    job: Job, result: bytes, node: bytes, *, now: Instant, started_at: Instant, worker: int
) -> Settlement:
    """The same for the usual end, a job that returned, at a third of the cost; `node` is JSON text."""
    transition = Transition(
        state=JobState.COMPLETED,
        rank=job.rank,
        run_at=job.run_at,
        attempt=job.attempt + 1,
        errors=job.errors,
        crashes=job.crashes,
        lost=job.lost,
        result=result,
        line=LINE % (job.attempt + 1, node, now, started_at, worker),
    )
    wait, run = started_at - job.run_at, now - started_at
    return Settlement(
        job.id,
        job.token,
        transition,
        wait / MICROSECONDS if wait > 0 else 0.0,  # max() is a call
        run / MICROSECONDS if run > 0 else 0.0,
    )


def attempt(
    job: Job,
    outcome: Outcome,
    node: str,
    *,
    now: Instant,
    started_at: Instant | None = None,
    worker: int | None = None,
) -> Attempt:
    """The line about one execution in the job's history."""
    failure = _failure(outcome)
    return Attempt(
        number=job.attempt + 1,
        node=node,
        ended=_ENDED[type(outcome)],
        ended_at=now,
        started_at=started_at,
        worker=worker,
        error=(failure and failure.type) or None,
        message=(failure and failure.message) or None,
        traceback=(failure and failure.traceback) or None,
    )


def _failure(outcome: Outcome) -> Failure | None:
    if isinstance(outcome, Raised | TimedOut | Crashed | OutOfMemory | Unsatisfiable | Unread | Unknown):
        return outcome.failure
    if isinstance(outcome, Returned) and outcome.refused is not None:
        return Failure("PayloadRefused", outcome.refused)
    return None
