"""Jobs as documents: instants as text, stored JSON as values, every secret hidden.

What a job carries is hostile text of unknown size. Rows of a list show the start of it; only the page of one
job shows it whole.
"""

from __future__ import annotations

import json
import math
from typing import Any

from millpond.job import ENDS, MICROSECONDS, WAITING, Attempt, Instant, Job, JobState
from millpond.node.redaction import HIDDEN, names_a_secret, without_secrets
from millpond.options import iso_text

PREVIEW = 200  # characters of the arguments in a row
MESSAGE = 300  # characters of an error's message in a row
PARSED = 16_384  # bytes of arguments that are read for a row; of longer ones the start is shown
TEXT = 100_000  # characters of one traceback
DEPTH = 64


moment = iso_text  # as answers have it


def redacted(value: Any, depth: int = 0) -> Any:
    """JSON with everything hidden that is called like a secret or looks like one."""
    if isinstance(value, str):
        return without_secrets(value)
    if depth >= DEPTH:
        return HIDDEN
    if isinstance(value, list):
        return [redacted(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            key: HIDDEN if names_a_secret(key) and item is not None else redacted(item, depth + 1)
            for key, item in value.items()
        }
    return value


def stored(data: bytes | None) -> Any:
    """The value in stored JSON, redacted; what cannot be read is shown as text."""
    if data is None:
        return None
    try:
        return redacted(json.loads(data, parse_constant=str, parse_float=_number))
    except (ValueError, RecursionError):
        return without_secrets(data.decode(errors="backslashreplace"))


def _number(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _preview(payload: bytes) -> str:
    if len(payload) <= PARSED:
        text = json.dumps(stored(payload), ensure_ascii=False)
    else:
        text = without_secrets(payload[: 4 * PREVIEW].decode(errors="replace"))
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "…"


def _cut(text: str | None, most: int) -> str | None:
    if text is None:
        return None
    text = without_secrets(text[: 4 * most])
    return text if len(text) <= most else text[:most] + "…"


def job_row(job: Job) -> dict[str, Any]:
    """A job in a list."""
    last = job.attempts[-1] if job.attempts else None
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "state": job.state.value,
        "reason": _cut(job.reason, MESSAGE),
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.options.max_attempts,
        "created_at": moment(job.created_at),
        "run_at": moment(job.run_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
        "node": job.node,
        "cancelling": job.cancelling,
        "parked": job.parked,
        "arguments": _preview(job.payload),
        "error": None if last is None else _cut(last.error, MESSAGE),
        "message": None if last is None else _cut(last.message, MESSAGE),
        **_times(job, last),
        "progress": None if job.progress is None else stored(job.progress),
    }


def _times(job: Job, last: Attempt | None) -> dict[str, float | None]:
    """How long it waited and ran. Of a job that ended, its last attempt knows better: a quick one begins and
    ends in one exchange."""
    began, ended = job.started_at, job.finished_at
    if last is not None and last.started_at is not None and job.state is not JobState.RUNNING:
        began, ended = last.started_at, last.ended_at
    is_waiting = job.state in WAITING
    return {
        "wait": None if is_waiting else _between(job.run_at, began),
        "run": None if is_waiting else _between(began, ended),
    }


def job_document(job: Job, why: str, parents: list[Job | None]) -> dict[str, Any]:
    """Everything about one job."""
    return {
        **job_row(job),
        "why": why,
        "payload": stored(job.payload),
        "result": stored(job.result),
        "attempts": [_attempt(attempt) for attempt in job.attempts],
        "unique": None if job.unique is None else without_secrets(job.unique),
        "slots": [{"name": slot.name, "capacity": slot.capacity} for slot in job.slots],
        "depends_on": list(job.depends_on),
        "parents": [
            {"id": parent.id, "task": parent.task, "state": parent.state.value}
            for parent in parents
            if parent is not None
        ],
        "options": {name: getattr(job.options, name) for name in job.options.__struct_fields__},
        "expires_at": moment(job.expires_at),
        "errors": job.errors,
        "crashes": job.crashes,
        "lost": job.lost,
        "token": job.token,
        "rank": job.rank,
        "alone": job.alone,
        "can": {
            "cancel": job.state not in ENDS and not job.cancelling,
            "retry": job.state is JobState.DEAD and job.reason != "damaged",
            "discard": job.state in ENDS,
        },
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "node": attempt.node,
        "worker": attempt.worker,
        "started_at": moment(attempt.started_at),
        "ended_at": moment(attempt.ended_at),
        "ended": attempt.ended,
        "error": _cut(attempt.error, MESSAGE),
        "message": _cut(attempt.message, TEXT),
        "traceback": _cut(attempt.traceback, TEXT),
        "run": _between(attempt.started_at, attempt.ended_at),
    }


def _between(start: Instant | None, end: Instant | None) -> float | None:
    if start is None or end is None:
        return None
    return max(0.0, (end - start) / MICROSECONDS)
