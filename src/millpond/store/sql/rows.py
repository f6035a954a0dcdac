"""Between rows and records: the columns of a job, in one order, for every statement that returns jobs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from millpond.job import Attempt, Job, JobOptions, JobState, NewJob, Slot
from millpond.store.sql.query import Row

_slots = msgspec.json.Decoder(tuple[Slot, ...])
_names = msgspec.json.Decoder(tuple[str, ...])
_options = msgspec.json.Decoder(JobOptions)
_attempts = msgspec.json.Decoder(Attempt)
_encode = msgspec.json.Encoder().encode
_states = {state.value: state for state in JobState}
DEFAULTS = JobOptions()
FIRST_LINES, LAST_LINES = 10, 90  # of the attempts of a job: one that snoozes for ever must not grow for ever

# The columns a claim returns, in the order of Job's fields; a whole job has four more behind them.
CLAIMED = (
    "id, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at, "
    "expires_at, attempt, errors, crashes, lost, token, node, alone, cancelling, unique_key, slots, "
    "depends_on, options, payload"
)
CLAIMS = CLAIMED.count(",") + 1
WHOLE = f"{CLAIMED}, result, progress, attempts, parked"


class Damaged(Exception):
    """A row cannot be read as a job."""


def job_of(row: Row) -> Job:
    """The job in a row of CLAIMED or WHOLE columns. Raises Damaged if somebody has broken it."""
    try:
        (
            id_, task, queue, state, reason, priority, rank, run_at, created_at, started_at, finished_at,
            expires_at, attempt, errors, crashes, lost, token, node, alone, cancelling, unique, slots,
            depends_on, options, payload,
        ) = row[:CLAIMS]  # fmt: skip
        job = Job(
            id_, task, queue, _states[state], reason, priority, rank, run_at, created_at, started_at,
            finished_at, expires_at, attempt, errors, crashes, lost, token, node, bool(alone),
            bool(cancelling), unique,
            () if slots is None else _slots.decode(slots),
            () if depends_on is None else _names.decode(depends_on),
            DEFAULTS if options == "{}" else _options.decode(options),
            bytes(payload),
        )  # fmt: skip
        return job if len(row) == CLAIMS else with_ends(job, *row[CLAIMS:])
    except (KeyError, ValueError, TypeError, msgspec.MsgspecError) as error:
        raise Damaged(str(error)) from error


def with_ends(
    job: Job, result: bytes | None, progress: bytes | None, attempts: str, parked: str | None
) -> Job:
    """The job with what a claim leaves out."""
    return msgspec.structs.replace(
        job,
        result=None if result is None else bytes(result),
        progress=None if progress is None else bytes(progress),
        attempts=tuple(_attempts.decode(line) for line in attempts.split("\n") if line),
        parked=parked,
    )


def kept_lines(attempts: str) -> str:
    """The lines about a job's attempts that are kept: the first ones and the last ones."""
    lines = attempts.split("\n")  # each line ends with one: behind the last there is nothing
    if len(lines) <= FIRST_LINES + LAST_LINES + 1:
        return attempts
    return "\n".join(lines[:FIRST_LINES] + lines[-LAST_LINES - 1 :])


def readable(rows: Iterable[Row]) -> list[Job]:
    """The jobs in rows; of one that somebody has broken, what can still be read, if anything."""
    jobs = []
    for row in rows:
        for attempt in (row, _mended(row)):
            try:
                jobs.append(job_of(attempt))
                break
            except Damaged:
                continue
    return jobs


def _mended(row: Row) -> Row:
    """Without slots, depends_on, options and attempts: what a hand in the database may have broken."""
    result_and_progress, parked = row[25:27], row[28:]
    attempts = ("",) if parked else ()
    return (*row[:21], None, None, "{}", row[24], *result_and_progress, *attempts, *parked)


def slot_names(slots: str | None) -> list[str]:
    """The names in a slots column; Damaged if it cannot be read."""
    if slots is None:
        return []
    try:
        return list(dict.fromkeys(slot.name for slot in _slots.decode(slots)))
    except msgspec.MsgspecError as error:
        raise Damaged(str(error)) from error


def new_row(
    job: NewJob, *, state: str, rank: int, run_at: int, now: int, waits: int, parked: str | None
) -> Row:
    """The parameters of an insert."""
    return (
        job.id,
        job.task,
        job.queue,
        state,
        job.priority,
        rank,
        run_at,
        now,
        None if job.expires is None else now + round(job.expires * 1_000_000),
        job.unique,
        None if job.unique is None else str(job.unique_for),
        _encode(job.slots).decode() if job.slots else None,
        _encode(job.depends_on).decode() if job.depends_on else None,
        waits,
        parked,
        "{}" if job.options == DEFAULTS else _encode(job.options).decode(),
        job.payload,
    )
