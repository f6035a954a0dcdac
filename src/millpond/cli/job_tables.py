"""Jobs and queues as plain values for JSON, and as rows and pages for people."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from millpond.cli.output import facts, instant, moment, rate, span, table, words
from millpond.disclosure import disclosed
from millpond.job import MICROSECONDS, Attempt, Job, JobState
from millpond.store.protocol import Page, QueueCounts

if TYPE_CHECKING:
    from rich.console import RenderableType

INSTANTS = ("run_at", "created_at", "started_at", "finished_at", "expires_at", "ended_at")
JSON = ("payload", "result", "progress")


def job_document(job: Job) -> dict[str, Any]:
    """A whole job: instants as text, stored JSON as values."""
    document = {name: getattr(job, name) for name in job.__struct_fields__}
    for name in JSON:
        document[name] = _decoded(document[name])
    return _with_instants(document) | {
        "state": job.state.value,
        "slots": [{"name": slot.name, "capacity": slot.capacity} for slot in job.slots],
        "depends_on": list(job.depends_on),
        "options": {name: getattr(job.options, name) for name in job.options.__struct_fields__},
        "attempts": [_attempt_document(attempt) for attempt in job.attempts],
    }


def _attempt_document(attempt: Attempt) -> dict[str, Any]:
    return _with_instants({name: getattr(attempt, name) for name in attempt.__struct_fields__})


def _with_instants(document: dict[str, Any]) -> dict[str, Any]:
    return {key: instant(value) if key in INSTANTS else value for key, value in document.items()}


def _decoded(data: bytes | None) -> Any:
    """The value in stored JSON; what cannot be read is shown as text."""
    try:
        return None if data is None else json.loads(data, parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError):
        return (data or b"").decode(errors="backslashreplace")


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def queue_document(counts: QueueCounts) -> dict[str, Any]:
    """A queue in numbers."""
    return {
        "queue": counts.queue,
        "paused": counts.paused,
        "rate": counts.rate,
        "states": {state.value: counts.states.get(state, 0) for state in JobState},
        "oldest": counts.oldest,
    }


# --- for people ------------------------------------------------------------------------------------------
def job_rows(page: Page) -> list[RenderableType]:
    """A list of jobs."""
    columns = ("id", "task", "queue", "state", "attempt", "due (UTC)", "arguments")
    rows = [
        (job.id, job.task, job.queue, _state(job), job.attempt, moment(job.run_at), _text(job.payload))
        for job in map(disclosed, page.jobs)
    ]
    return [table(columns, rows) if rows else words("no jobs"), *_more(page)]


def dead_rows(page: Page) -> list[RenderableType]:
    """A list of dead jobs, with what they died of."""
    columns = ("id", "task", "queue", "reason", "attempts", "died (UTC)", "last error")
    rows = [
        (job.id, job.task, job.queue, job.reason, job.attempt, moment(job.finished_at), _last_error(job))
        for job in map(disclosed, page.jobs)
    ]
    return [table(columns, rows) if rows else words("no dead jobs"), *_more(page)]


def _more(page: Page) -> list[RenderableType]:
    return [] if page.cursor is None else [words(f"more: --cursor {page.cursor}")]


def page_document(page: Page) -> dict[str, Any]:
    """A page of jobs."""
    return {"jobs": [job_document(disclosed(job)) for job in page.jobs], "cursor": page.cursor}


def job_page(job: Job, why: str) -> list[RenderableType]:
    """Everything about one job."""
    kept = [(name, value) for name, value in _facts(job, why).items() if value not in (None, "")]
    parts: list[RenderableType] = [facts(kept)]
    for attempt in job.attempts:
        parts.append(words(_attempt_line(attempt)))
        if attempt.traceback:
            parts.append(words(attempt.traceback.rstrip(), lines=True))
    return parts


def _facts(job: Job, why: str) -> dict[str, object]:
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "state": _state(job),
        "why": why,
        "priority": job.priority,
        "attempt": f"{job.attempt} (errors {job.errors}, crashes {job.crashes}, lost {job.lost})",
        "created": moment(job.created_at),
        "due": moment(job.run_at),
        "started": moment(job.started_at),
        "finished": moment(job.finished_at),
        "expires": moment(job.expires_at),
        "node": job.node,
        "unique": job.unique,
        "slots": ", ".join(f"{slot.name} (of {slot.capacity})" for slot in job.slots),
        "depends on": ", ".join(job.depends_on),
        "arguments": _text(job.payload),
        "progress": _text(job.progress),
        "result": _text(job.result),
    }


def queue_rows(queues: tuple[QueueCounts, ...]) -> list[RenderableType]:
    """A list of queues."""
    states = ("queued", "running", "scheduled", "blocked", "dead")
    rows = [
        (
            counts.queue,
            "paused" if counts.paused else "open",
            "" if counts.rate is None else rate(counts.rate),
            *(counts.states.get(JobState(state), 0) for state in states),
            span(counts.oldest),
        )
        for counts in queues
    ]
    columns = ("queue", "claims", "rate", *states, "oldest waits")
    return [table(columns, rows) if rows else words("no queues: nothing was ever enqueued here")]


def _state(job: Job) -> str:
    ending = " (ending)" if job.cancelling and job.state is JobState.RUNNING else ""
    return f"{job.state.value}{f' ({job.reason})' if job.reason else ''}{ending}"


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="backslashreplace")


def _last_error(job: Job) -> str:
    last = job.attempts[-1] if job.attempts else None
    if last is None:
        return ""
    return ": ".join(part for part in (last.error, last.message) if part) or last.ended


def _attempt_line(attempt: Attempt) -> str:
    ran = None if attempt.started_at is None else (attempt.ended_at - attempt.started_at) / MICROSECONDS
    after = "" if ran is None else f" after {span(max(0.0, ran))}"
    error = ": ".join(part for part in (attempt.error, attempt.message) if part)
    ended = f"attempt {attempt.number} {attempt.ended}{after} at {moment(attempt.ended_at)} on {attempt.node}"
    return f"{ended}{f': {error}' if error else ''}"
