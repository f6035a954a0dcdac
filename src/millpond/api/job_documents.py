"""Jobs as documents: instants as text, stored JSON as values, every secret hidden.

What a job carries is hostile text of unknown size. Rows of a list show the start of it; the page of one job
shows as much as its budget allows. Nothing here may run on the event loop: redacting takes its time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from millpond.disclosure import Disclosure
from millpond.job import ENDS, MICROSECONDS, WAITING, Attempt, Instant, Job, JobState
from millpond.options import iso_text

PREVIEW = 200  # characters of the arguments in a row
MESSAGE = 300  # characters of an error's message in a row
DOCUMENT = 256_000  # characters of what one job carries on its own page
PARSED = 16_384  # bytes of arguments that are read for a row; of longer ones the start is shown
ROW = 2_000  # characters of what one job carries in a row
NAME = 500  # characters of a name; no `enqueue` takes longer ones, but whoever writes to the store may


moment = iso_text  # as answers have it


def _preview(job: Job, may: Disclosure) -> str:
    if len(job.payload) <= PARSED:
        text = json.dumps(may.stored(job.payload, job.options.hidden), ensure_ascii=False)
    elif job.options.hidden:
        text = f"{len(job.payload):,} bytes"  # it cannot be told from the start alone where they are
    else:
        text = may.plain(job.payload[: 4 * PREVIEW].decode(errors="replace"))
    return text if len(text) <= PREVIEW else text[:PREVIEW] + "…"


def name_of(text: str) -> str:
    """A name as it is, unless it was forged to be endless."""
    return text if len(text) <= NAME else text[:NAME] + "…"


def cut(text: str | None, most: int, may: Disclosure) -> str | None:
    """The start of a text, without its secrets."""
    if text is None:
        return None
    text = may.plain(text[: 2 * most])
    return text if len(text) <= most else text[:most] + "…"


def job_row(job: Job) -> dict[str, Any]:
    """A job in a list."""
    return _row(job, Disclosure(ROW))


def _row(job: Job, may: Disclosure) -> dict[str, Any]:
    arguments = _preview(job, may)  # first: what is hidden in them is hidden in all that follows
    last = job.attempts[-1] if job.attempts else None
    return {
        "id": job.id,
        "task": name_of(job.task),
        "queue": name_of(job.queue),
        "state": job.state.value,
        "reason": cut(job.reason, MESSAGE, may),
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.options.max_attempts,
        "errors": job.errors,
        "created_at": moment(job.created_at),
        "run_at": moment(job.run_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
        "node": job.node,
        "cancelling": job.cancelling,
        "parked": cut(job.parked, MESSAGE, may),
        "arguments": arguments,
        "error": None if last is None else cut(last.error, MESSAGE, may),
        "message": None if last is None else cut(last.message, MESSAGE, may),
        **_times(job, last),
        "progress": may.stored(job.progress),
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
    """Everything about one job. Its arguments come first where not all of it can be shown."""
    may = Disclosure(DOCUMENT)
    payload = may.stored(job.payload, job.options.hidden)
    return {
        **_row(job, may),
        "why": may.plain(why),
        "payload": payload,
        "result": may.stored(job.result),
        "attempts": _attempts(job.attempts, may),
        "unique": cut(job.unique, NAME, may),
        "slots": [{"name": cut(slot.name, NAME, may), "capacity": slot.capacity} for slot in job.slots],
        "depends_on": list(job.depends_on),
        "parents": [
            {"id": parent.id, "task": name_of(parent.task), "state": parent.state.value}
            for parent in parents
            if parent is not None
        ],
        "options": {name: getattr(job.options, name) for name in job.options.__struct_fields__},
        "expires_at": moment(job.expires_at),
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


def _attempts(attempts: Sequence[Attempt], may: Disclosure) -> list[dict[str, Any]]:
    """In their order; the last ones are the first to be shown whole."""
    return [_attempt(attempt, may) for attempt in reversed(attempts)][::-1]


def _attempt(attempt: Attempt, may: Disclosure) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "node": attempt.node,
        "worker": attempt.worker,
        "started_at": moment(attempt.started_at),
        "ended_at": moment(attempt.ended_at),
        "ended": attempt.ended,
        "error": cut(attempt.error, MESSAGE, may),
        "message": None if attempt.message is None else may.text(attempt.message),
        "traceback": None if attempt.traceback is None else may.text(attempt.traceback, keep="end"),
        "run": _between(attempt.started_at, attempt.ended_at),
    }


def _between(start: Instant | None, end: Instant | None) -> float | None:
    if start is None or end is None:
        return None
    return max(0.0, (end - start) / MICROSECONDS)
