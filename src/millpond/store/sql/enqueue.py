"""Storing jobs: all or none, no id twice, no unique key twice, children behind their parents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from millpond.errors import StoreBusy, UnknownJob
from millpond.ids import is_id
from millpond.job import MICROSECONDS, Enqueued, Instant, JobState, NewJob
from millpond.rules.jobs.lifecycle import first_state, rank
from millpond.store.sql import after_end, slots
from millpond.store.sql.job_counts import PARKED, moves, tell
from millpond.store.sql.query import Hint, Many, Query, Row, Steps
from millpond.store.sql.rows import new_row
from millpond.store.sql.statistics import count

QUEUE, STATE, SLOT = 2, 3, 14  # columns of a row as it is inserted
TRIES = 5  # of a unique key that its holder lets go while it is asked for


def is_plain(jobs: Sequence[NewJob]) -> bool:
    """Can these be stored by one statement, with nothing to look up?"""
    return not any(job.unique is not None or job.depends_on or job.slots or not job.fresh for job in jobs)


def enqueue_plain(jobs: Sequence[NewJob], now: Instant) -> Steps[list[Enqueued]]:
    """Store jobs that concern nobody else."""
    rows = {job.id: job_row(job, now) for job in jobs}
    created = {row[0] for row in (yield Many("insert", list(rows.values())))}
    yield from _count([rows[job] for job in created], now)
    return [Enqueued(job.id, job.id in created) for job in jobs]


def enqueue_at_once(jobs: Sequence[NewJob], now: Instant) -> Steps[list[Enqueued]]:
    """The same by a single statement that also counts, where a round trip costs more than the work."""
    created = {row[0] for row in (yield Many("insert_plain", [job_row(job, now) for job in jobs]))}
    yield Hint(frozenset(job.queue for job in jobs))
    return [Enqueued(job.id, job.id in created) for job in jobs]


def enqueue(jobs: Sequence[NewJob], now: Instant, *, parks: bool = True) -> Steps[list[Enqueued]]:
    """Store jobs of any sort, all or none. To park one locks its slot, which would hold up every node that
    claims or settles until a caller's transaction ends: there it stands in line, and a claim parks it."""
    answers: list[Enqueued] = []
    for part in _without_doubles(jobs):
        answers += yield from _enqueue_distinct(part, now, parks=parks)
    return answers


def _without_doubles(jobs: Sequence[NewJob]) -> list[list[NewJob]]:
    """Cut where an id comes a second time: what became of the first must be known by then."""
    parts: list[list[NewJob]] = []
    seen: set[str] = set()
    for job in jobs:
        if not parts or job.id in seen:
            parts.append([])
            seen = set()
        parts[-1].append(job)
        seen.add(job.id)
    return parts


def _enqueue_distinct(jobs: Sequence[NewJob], now: Instant, *, parks: bool) -> Steps[list[Enqueued]]:
    known = {row[0] for row in (yield Query("known", ([job.id for job in jobs],)))}
    holders = yield from _take_uniques([job for job in jobs if job.id not in known], now)
    answers: list[Enqueued] = []
    new: dict[str, NewJob] = {}
    for job in jobs:
        holder = job.id if job.unique is None else holders.get((job.task, job.unique), job.id)
        is_new = job.id not in known and holder == job.id
        answers.append(Enqueued(job.id if job.id in known else holder, is_new))
        if is_new:
            new[job.id] = job
    stored = yield from _insert(list(new.values()), now, parks=parks)
    return [Enqueued(answer.id, answer.created and answer.id in stored) for answer in answers]


def _insert(jobs: list[NewJob], now: Instant, *, parks: bool) -> Steps[set[str]]:
    """Returns which were stored: all, but those that somebody else has stored since we looked."""
    waits, doomed = yield from _wait_for_parents(jobs)
    parked = (yield from slots.park(jobs, now)) if parks else {}
    rows = [job_row(job, now, waits=len(waits.get(job.id, ())), parked=parked.get(job.id)) for job in jobs]
    if not rows:
        return set()
    stored = {row[0] for row in (yield Many("insert", rows))}
    yield from _count([row for row in rows if row[0] in stored], now)
    # A job that falls in this very step stands behind nothing: a parent that ended before the job came does
    # not end again, and the link would stay for as long as the job. See tests/stores/test_dependencies.py.
    links = [(parent, job) for job, parents in waits.items() if job not in doomed for parent in parents]
    if links:
        yield Many("link", links)
    if waits:
        mothers = {parent for parents in waits.values() for parent in parents} & {job.id for job in jobs}
        if mothers:  # of this very batch: they are there only now
            yield Query("parents", (sorted(mothers),))
    left_out = Counter(slot for job, slot in parked.items() if job in stored)
    if left_out:
        yield Many("count_parked", sorted(left_out.items()))
    yield from after_end.cancel_waiting(sorted(doomed & stored), "dependency", now)
    return stored


def _count(rows: Sequence[Row], now: Instant) -> Steps[None]:
    """Rows that were inserted: so many more came, and there are so many more."""
    yield from count(Counter((row[QUEUE], "enqueued", 0) for row in rows), now)
    yield Hint(frozenset(row[QUEUE] for row in rows))
    told = moves((row[QUEUE], None, row[STATE], 1) for row in rows)
    told.update((row[QUEUE], PARKED) for row in rows if row[SLOT] is not None)
    yield from tell(told, now)


def job_row(job: NewJob, now: Instant, *, waits: int = 0, parked: str | None = None) -> Row:
    """A job as the statements that insert it take it."""
    run_at = now + round(job.delay * MICROSECONDS) if job.run_at is None else job.run_at
    state = first_state(run_at, now, blocked=waits > 0)
    if state is not JobState.QUEUED:
        parked = None
    return new_row(
        job,
        state=state.value,
        rank=rank(run_at, job.priority),
        run_at=run_at,
        now=now,
        waits=waits,
        parked=parked,
    )


def _take_uniques(jobs: Sequence[NewJob], now: Instant) -> Steps[dict[tuple[str, str], str]]:
    """Who holds each unique key after this: the first of ours that wants it, or a job from before."""
    wanted: dict[tuple[str, str], Row] = {}
    for job in jobs:
        if job.unique is not None:
            lasts = job.unique_for
            until = None if isinstance(lasts, str) else now + round(lasts * MICROSECONDS)
            wanted.setdefault((job.task, job.unique), (job.task, job.unique, job.id, until, now))
    if not wanted:
        return {}
    holders: dict[tuple[str, str], str] = {}
    # Between two of these statements the job that holds a key may end and let it go: then the key is free,
    # and is tried again. Without that the new job would be taken for stored under a holder that is gone.
    for _ in range(TRIES):
        missing = [wanted[key] for key in sorted(wanted) if key not in holders]
        for request in (
            Many("take_unique", missing),
            Many("take_lapsed", missing),
            Many("unique_holder", [row[:2] for row in missing]),
        ):
            rows = yield request
            for task, key, job in rows:
                holders.setdefault((task, key), job)
            if len(holders) == len(wanted):
                return holders
    raise StoreBusy("a unique key changed hands again and again; nothing was stored: enqueue again")


def _wait_for_parents(jobs: Sequence[NewJob]) -> Steps[tuple[dict[str, list[str]], set[str]]]:
    """The unfinished parents of each job, and which jobs have one that will never complete."""
    parents = sorted(set(chain.from_iterable(job.depends_on for job in jobs)))
    if not parents:
        return {}, set()
    if not all(map(is_id, parents)):
        raise UnknownJob(f"no job can have the id {next(one for one in parents if not is_id(one))!r}")
    states = {job.id: "blocked" for job in jobs}  # those of this batch cannot have finished
    states.update({row[0]: row[1] for row in (yield Query("parents", (parents,)))})
    # A parent that ends between the two looks is found by the second, one that is replayed by the third
    for name in ("ended_parents", "parents"):
        missing = [parent for parent in parents if parent not in states]
        if missing:
            states.update({row[0]: row[1] for row in (yield Query(name, (missing,)))})
    waits: dict[str, list[str]] = {}
    doomed: set[str] = set()
    for job in jobs:
        for parent in dict.fromkeys(job.depends_on):
            state = states.get(parent)
            if state is None:
                raise UnknownJob(f"job {job.id} depends on {parent}, which is not in the store")
            if state != JobState.COMPLETED:
                waits.setdefault(job.id, []).append(parent)
            if state in (JobState.DEAD, JobState.CANCELLED):
                doomed.add(job.id)
    return waits, doomed
