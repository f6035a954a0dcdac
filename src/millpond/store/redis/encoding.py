"""Between the Redis store's hashes and records: jobs on their way in, verdicts, and jobs on their way out.

Arguments travel as one MessagePack value. Redis cannot read its binary type, so bytes go as text of unknown
encoding, which is what a Redis string is. Whole numbers that may exceed 2^53 go as decimal text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from millpond.job import (
    MICROSECONDS,
    Attempt,
    Job,
    JobOptions,
    JobState,
    NewJob,
    Settlement,
    Slot,
    Transition,
)
from millpond.rules.histogram import bucket
from millpond.rules.jobs.lifecycle import rank
from millpond.store.sql.rows import Damaged

_slots = msgspec.json.Decoder(tuple[Slot, ...])
_attempts = msgspec.json.Decoder(Attempt)
_json = msgspec.json.Encoder().encode
_states = {state.value: state for state in JobState}
_running, _completed = JobState.RUNNING, JobState.COMPLETED
_ends = frozenset({JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED})
DEFAULTS = JobOptions()
ZEROS = (0, 0, 0, 0)
REMEMBERED = 1000

pack = msgspec.msgpack.Encoder().encode


def text_of(data: bytes) -> msgspec.Raw:
    """Bytes as a MessagePack string, whatever they are."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)


class Spec(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What never changes about a job and no script looks at."""

    unique: str | None = None
    depends_on: tuple[str, ...] = ()
    options: JobOptions = DEFAULTS


def _body(job: NewJob) -> bytes:
    spec = pack(Spec(job.unique, job.depends_on, job.options))
    return b"%d %b%b" % (len(spec), spec, job.payload)


def new_job(job: NewJob) -> tuple[Any, ...]:
    """A job as `storing.lua` takes it."""
    lasts = job.unique_for
    return (
        job.id,
        job.task,
        job.queue,
        job.priority,
        None if job.run_at is None else str(job.run_at),
        None if job.run_at is None else str(rank(job.run_at, job.priority)),
        round(job.delay * MICROSECONDS) if job.delay else 0,
        None if job.expires is None else round(job.expires * MICROSECONDS),
        job.unique,
        lasts[0] if isinstance(lasts, str) else "t",
        None if isinstance(lasts, str) else round(lasts * MICROSECONDS),
        text_of(_json(job.slots)) if job.slots else None,
        job.slots or None,
        tuple(dict.fromkeys(job.depends_on)) or None,
        text_of(_body(job)),
    )


_spec = msgspec.msgpack.Decoder(Spec).decode
_specs: dict[bytes, Spec] = {}  # most jobs are like others before them
_places: dict[bytes, tuple[str, str]] = {}


def _rest(spec: bytes) -> Spec:
    if len(_specs) > REMEMBERED:
        _specs.clear()
    return _specs.setdefault(spec, _spec(spec))


def _place(where: bytes) -> tuple[str, str]:
    queue, _, task = where.decode().partition("\0")
    if len(_places) > REMEMBERED:
        _places.clear()
    return _places.setdefault(where, (queue, task))


@lru_cache(maxsize=256)
def _numbers(text: bytes) -> tuple[int, int, int, int]:
    """The times and ranks of jobs that were stored together are the same."""
    first, second, third, fourth = text.split()
    return int(first), int(second), int(third), int(fourth)


def verdict(settlement: Settlement) -> tuple[Any, ...]:
    """A settlement as `settling.lua` takes it."""
    wait, run, chosen = settlement.wait, settlement.run, settlement.transition
    waited, ran = None if wait is None else bucket(wait), None if run is None else bucket(run)
    if chosen.state is _completed:
        return settlement.id, str(settlement.token), "completed", _end(chosen), waited, ran
    return (*transition(settlement.id, settlement.token, chosen), waited, ran)


def _end(chosen: Transition) -> msgspec.Raw:
    """All that is told about a job that has completed: counters, the line about the attempt, the result."""
    return text_of(
        b"%d %d %d %d\n%b\n%b"
        % (chosen.attempt, chosen.errors, chosen.crashes, chosen.lost, chosen.line, chosen.result or b"")
    )


def transition(job: str, token: int, chosen: Transition) -> tuple[Any, ...]:
    """A verdict without its durations."""
    ends = chosen.state in _ends
    return (
        job,
        str(token),
        chosen.state.value,
        chosen.reason,
        None if chosen.result is None else text_of(chosen.result),
        None if ends else str(chosen.rank),
        None if ends else str(chosen.run_at),
        f"{chosen.attempt} {chosen.errors} {chosen.crashes} {chosen.lost}",
        chosen.alone,
        text_of(chosen.line) if chosen.line else None,
    )


def claimed_job(row: Sequence[Any], node: str | None) -> Job:
    """A job that was just claimed, from the answer of `exchange.lua`."""
    try:
        if len(row) == 5:  # of most jobs there is no more to tell
            tally = alone = expires_at = slots = None
            id_, where, place, token, body = row
        else:
            id_, where, place, tally, token, alone, expires_at, slots, body = row
        queue, task = _places.get(where) or _place(where)
        rank_, run_at, created_at, priority = _numbers(place)
        attempt, errors, crashes, lost = _numbers(tally) if tally else ZEROS
        length, _, both = body.partition(b" ")
        cut = int(length)
        spec = both[:cut]
        rest = _specs.get(spec) or _rest(spec)
        return Job(
            id_.decode(),
            task,
            queue,
            _running,
            None,
            priority,
            rank_,
            run_at,
            created_at,
            None,
            None,
            int(expires_at) if expires_at else None,
            attempt,
            errors,
            crashes,
            lost,
            int(token),
            node,
            alone == b"1",
            False,
            rest.unique,
            _slots.decode(slots) if slots else (),
            rest.depends_on,
            rest.options,
            both[cut:],
        )
    except (ValueError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise Damaged(str(error)) from error


def sorted_out(rows: Sequence[Any], node: str | None) -> tuple[list[Job], list[Any]]:
    """The jobs that were claimed, and the rows that cannot be read."""
    jobs, damaged = [], []
    for row in rows:
        try:
            jobs.append(claimed_job(row, node))
        except Damaged:
            damaged.append(row)
    return jobs, damaged


def by_queue(rows: Sequence[Any]) -> Counter[str]:
    """How many were claimed of which queue, without reading them."""
    raw = Counter([row[1].partition(b"\0")[0] for row in rows])
    return Counter({queue.decode(errors="replace"): number for queue, number in raw.items()})


class Unread(Sequence[Job]):
    """Claimed jobs that are read when somebody first looks at one."""

    def __init__(self, rows: Sequence[Any], read: Callable[[Sequence[Any]], list[Job]]) -> None:
        self._rows = rows
        self._read = read
        self._jobs: list[Job] | None = None

    def __len__(self) -> int:
        return len(self._rows if self._jobs is None else self._jobs)

    def __getitem__(self, index: Any) -> Any:
        if self._jobs is None:
            self._jobs = self._read(self._rows)
        return self._jobs[index]

    def __iter__(self) -> Iterator[Job]:
        return iter(self[:])


def whole_job(row: Sequence[Any], *, ends: bool = True) -> Job:
    """A job with everything it has; without `ends`, as a claim would have it."""
    (
        id_, head, where, place, tally, alone, expires_at, slots, body, started_at, finished_at,
        reason, cancelling, result, progress, attempts, parked, told,
    ) = row  # fmt: skip
    try:
        if told:
            head_line, line, result = told.split(b"\n", 2)
            finished_at, _, tally = head_line.partition(b" ")
            attempts, result = (attempts or b"") + line, result or None
        state, token, node = head.decode().split(" ", 2)
        claimed = claimed_job((id_, where, place, tally, token, alone, expires_at, slots, body), node or None)
        job = msgspec.structs.replace(
            claimed,
            state=_states[state],
            reason=_text(reason),
            started_at=int(started_at) if started_at else None,
            finished_at=int(finished_at) if finished_at else None,
            cancelling=cancelling == b"1",
        )
        return _with_ends(job, result, progress, attempts, parked) if ends else job
    except (KeyError, ValueError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise Damaged(str(error)) from error


def readable(rows: Iterable[Sequence[Any]], *, ends: bool = True) -> list[Job]:
    """The jobs in whole rows; of one that somebody has broken, what can still be read, if anything."""
    jobs = []
    for row in rows:
        for attempt in (row, _mended(row)):
            try:
                jobs.append(whole_job(attempt, ends=ends))
                break
            except Damaged:
                continue
    return jobs


def _mended(row: Sequence[Any]) -> list[Any]:
    """Without slots, depends_on, options and attempts: what a hand in the server may have broken."""
    mended = list(row)
    length, _, both = (row[8] or b"").partition(b" ")
    cut = int(length) if length.isdigit() else 0
    mended[7], mended[8], mended[15] = None, b"1 \x90" + both[cut:], None
    if row[17]:
        head, _, rest = row[17].partition(b"\n")
        mended[17] = head + b"\n\n" + rest.partition(b"\n")[2]
    return mended


def _with_ends(
    job: Job, result: bytes | None, progress: bytes | None, attempts: bytes | None, parked: bytes | None
) -> Job:
    return msgspec.structs.replace(
        job,
        result=result,
        progress=progress,
        attempts=tuple(_attempts.decode(line) for line in _kept((attempts or b"").splitlines())),
        parked=_text(parked) or None,
    )


def _kept(lines: list[bytes]) -> list[bytes]:
    """The first 10 and the last 90: the line in `end` may be one more than the script keeps."""
    return lines if len(lines) <= 100 else lines[:10] + lines[-90:]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
