"""Why a job is where it is, in one sentence a person can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from millpond.job import ENDS, MICROSECONDS, Instant, Job, JobState
from millpond.rules.jobs.known_tasks import Known, is_known


class QueueFacts(Protocol):
    """What must be known of a queue."""

    @property
    def queue(self) -> str: ...
    @property
    def paused(self) -> bool: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def states(self) -> Mapping[JobState, int]: ...


class Facts(Protocol):
    """What must be known of a store."""

    @property
    def queues(self) -> Sequence[QueueFacts]: ...
    @property
    def nodes(self) -> Sequence[object]: ...


def why(
    job: Job,
    parents: Sequence[Job],
    facts: Facts,
    now: Instant,
    *,
    short: Mapping[str, str] | None = None,
    live: Sequence[Known] | None = None,
) -> str:
    """One sentence. `short` is what nodes say their tasks wait for: memory, cores, tokens; `live` what the
    nodes that have a lease serve and know, None if that was not asked."""
    lacking = (short or {}).get(job.task)
    if lacking is not None and job.started_at is None and job.state in (JobState.QUEUED, JobState.RUNNING):
        return f"It waits for {lacking}."
    match job.state:
        case JobState.BLOCKED:
            return _blocked(job, parents)
        case JobState.SCHEDULED:
            return _scheduled(job, now)
        case JobState.QUEUED:
            return _queued(job, facts, now, live)
        case JobState.RUNNING:
            return _running(job, now, live or ())
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


def _running(job: Job, now: Instant, live: Sequence[Known]) -> str:
    ending = "; its end was asked for" if job.cancelling else ""
    for node in live:
        if job.id in node.unrecorded:
            return f"It has ended on node {job.node}, but {node.unrecorded[job.id]}."
    if job.started_at is None:
        return f"Node {job.node} has claimed it and {_not_begun(job, live)}{ending}."
    return f"It has run for {_since(job.started_at, now)} on node {job.node}{ending}."


def _not_begun(job: Job, live: Sequence[Known]) -> str:
    """What a claimed job waits for: a worker that stands still or does not start, if that is in the reports.
    They do not name their node, so with several nodes for the queue the trouble may be another one's."""
    serving = [crews for node in live if (crews := node.crews(job.queue))]
    if len(serving) == 1:
        for crew in serving[0]:
            if crew.status != "ok" and crew.reasons:
                return f"has not begun it; its pool {crew.name!r} is {crew.status}: {crew.reasons[0]}"
    return "begins it when a worker for it is free"


def _scheduled(job: Job, now: Instant) -> str:
    left = max(0, job.run_at - now) / MICROSECONDS
    again = f", attempt {job.attempt + 1}" if job.attempt else ""
    return f"It is due in {span(left)}{again}."


def _queued(job: Job, facts: Facts, now: Instant, live: Sequence[Known] | None) -> str:
    settings = next((queue for queue in facts.queues if queue.queue == job.queue), None)
    if settings is not None and settings.paused:
        return f"Its queue {job.queue!r} is paused."
    if job.parked is not None:
        return f"It waits for room at slot {job.parked!r}: as many jobs as it allows are running."
    if not facts.nodes:
        return f"No node is running: start one with `millpond run` that serves queue {job.queue!r}."
    unfit = None if live is None else _no_node(job, live)
    if unfit is not None:
        return unfit
    number = settings.states.get(JobState.QUEUED, 0) if settings is not None else 0
    crowd = f", one of {number:,} jobs" if number > 1 else ""
    cause = _limited(settings, number) or _full(job.queue, live or ())
    return f"It has been in line in queue {job.queue!r} for {_since(job.run_at, now)}{crowd}{cause}."


def _limited(queue: QueueFacts | None, number: int) -> str:
    """What the rate of a queue means for those in its line."""
    if queue is None or not queue.rate:
        return ""
    taking = f": so many take {span(number / queue.rate)} at least" if number > 1 else ""
    return f"; the queue is limited to {queue.rate:g} a second{taking}"


def _full(queue: str, live: Sequence[Known]) -> str:
    """Why no worker takes it, where the nodes that serve the queue say that all of theirs are busy."""
    crews = [crew for node in live for crew in node.crews(queue)]
    if not crews or any(crew.running < crew.count * crew.concurrency for crew in crews):
        return ""
    workers, most = sum(crew.count for crew in crews), sum(crew.most for crew in crews)
    busy = "the one worker for it is busy" if workers == 1 else f"all {workers:,} workers for it are busy"
    busy = busy if workers else "no worker for it has started yet"
    if any(crew.count < crew.most for crew in crews):
        return f"; {busy}, and up to {most:,} may be started"
    more = f"`millpond pools set {crews[0].name} --workers MIN:MAX` allows more"
    return f"; {busy}, and pool {crews[0].name!r} is at its maximum: {more}"


def _no_node(job: Job, live: Sequence[Known]) -> str | None:
    """Why none of the live nodes will take the job; None if one may."""
    serving = [node for node in live if node.may_serve(job.queue)]
    if not serving:
        return (
            f"No live node serves queue {job.queue!r}: start one with `millpond run --queue {job.queue}`, or "
            f"let a pool serve it: app.pool(..., queues=[..., {job.queue!r}])."
        )
    if not is_known(serving, job.task):
        return (
            f"No live node that serves queue {job.queue!r} knows task {job.task!r}: start one whose code has "
            f"it; if the task was renamed, give it aliases=[{job.task!r}]."
        )
    return None


def _since(instant: Instant | None, now: Instant) -> str:
    return "an unknown time" if instant is None else span(max(0, now - instant) / MICROSECONDS)


def span(seconds: float) -> str:
    """A duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
