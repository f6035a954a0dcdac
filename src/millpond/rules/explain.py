"""Why a job is where it is, in one sentence a person can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from millpond.job import ENDS, MICROSECONDS, Instant, Job, JobState


class QueueFacts(Protocol):
    """What must be known of a queue."""

    @property
    def queue(self) -> str: ...
    @property
    def paused(self) -> bool: ...
    @property
    def rate(self) -> float | None: ...


class Facts(Protocol):
    """What must be known of a store."""

    @property
    def queues(self) -> Sequence[QueueFacts]: ...
    @property
    def nodes(self) -> Sequence[object]: ...


def why(
    job: Job, parents: Sequence[Job], facts: Facts, now: Instant, short: Mapping[str, str] | None = None
) -> str:
    """One sentence. `short` is what nodes say their tasks wait for: memory, cores, tokens."""
    lacking = (short or {}).get(job.task)
    if lacking is not None and job.started_at is None and job.state in (JobState.QUEUED, JobState.RUNNING):
        return f"It waits for {lacking}."
    match job.state:
        case JobState.BLOCKED:
            return _blocked(job, parents)
        case JobState.SCHEDULED:
            return _scheduled(job, now)
        case JobState.QUEUED:
            return _queued(job, facts, now)
        case JobState.RUNNING:
            return _running(job, now)
        case JobState.COMPLETED:
            return f"It completed {_since(job.finished_at, now)} ago."
        case _:
            reason = job.reason or "no reason kept"
            return f"It ended {job.state} ({reason}) {_since(job.finished_at, now)} ago{_hint(job)}."


def _hint(job: Job) -> str:
    if job.state is not JobState.DEAD or job.reason == "damaged":
        return ""
    number = "1 attempt" if job.attempt == 1 else f"{job.attempt} attempts"
    return f" after {number}; replay it to run it again"


def _blocked(job: Job, parents: Sequence[Job]) -> str:
    waiting = [parent.id for parent in parents if parent.state not in ENDS]
    if not waiting:
        return "All it depends on has ended; it will be let go in a moment."
    named = ", ".join(waiting[:3]) + (f" and {len(waiting) - 3} more" if len(waiting) > 3 else "")
    return f"It waits for {len(waiting)} of {len(job.depends_on)} jobs it depends on: {named}."


def _running(job: Job, now: Instant) -> str:
    ending = "; its end was asked for" if job.cancelling else ""
    if job.started_at is None:
        return f"Node {job.node} has claimed it and will begin it soon{ending}."
    return f"It has run for {_since(job.started_at, now)} on node {job.node}{ending}."


def _scheduled(job: Job, now: Instant) -> str:
    left = max(0, job.run_at - now) / MICROSECONDS
    again = f", attempt {job.attempt + 1}" if job.attempt else ""
    return f"It is due in {span(left)}{again}."


def _queued(job: Job, facts: Facts, now: Instant) -> str:
    settings = next((queue for queue in facts.queues if queue.queue == job.queue), None)
    if settings is not None and settings.paused:
        return f"Its queue {job.queue!r} is paused."
    if job.parked is not None:
        return f"It waits for room at slot {job.parked!r}: as many jobs as it allows are running."
    if not facts.nodes:
        return f"No node is running: start one with `millpond run` that serves queue {job.queue!r}."
    limited = f"; the queue is limited to {settings.rate:g} a second" if settings and settings.rate else ""
    return f"It has been in line in queue {job.queue!r} for {_since(job.run_at, now)}{limited}."


def _since(instant: Instant | None, now: Instant) -> str:
    return "an unknown time" if instant is None else span(max(0, now - instant) / MICROSECONDS)


def span(seconds: float) -> str:
    """A duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
