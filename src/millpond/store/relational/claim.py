"""Claiming: the first jobs in line that may run, slots taken, in one step with everything due.

Greedy by (rank, id). The head of the line that needs no slots is claimed in one statement. A job that
finds a slot full is parked out of the line, so that it is looked at once and not at every claim; when the
slot has room again, the best of those parked at it step back first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from millpond.job import Instant, Job, JobState
from millpond.rules.rate import Bucket, allowed, fill
from millpond.store.protocol import Claim
from millpond.store.relational import ends
from millpond.store.relational.query import Many, Query, Row, Steps
from millpond.store.relational.rows import Damaged, job_of
from millpond.store.relational.tallies import PARKED, moves, tell

WINDOW = 200  # jobs looked at together beyond those wanted
_encode = msgspec.json.Encoder().encode


class Candidate(msgspec.Struct, frozen=True):
    """A job at the head of the line, as it will be when it is ours."""

    job: Job
    unique_for: str | None


class Outlook(NamedTuple):
    """What a claim may have to do besides claiming; most of it is rare."""

    queue: str
    paused: bool
    rate: float | None
    expired: bool  # some job has waited for too long
    due: bool  # the time of some job has come
    roomy: bool  # some slot with jobs parked at it has room
    asked: bool  # somebody asked for the end of a job of this node
    stands: bool  # some job stands in line, though perhaps not for this node

    def is_over(self) -> bool:
        """Is there nothing in this queue, and nothing that could be put into it now?"""
        return self.paused or not (self.stands or self.due or self.roomy)


def claim(node: str, entries: Sequence[Claim], now: Instant) -> Steps[tuple[list[Job], bool]]:
    """Serve each entry in turn. Also says whether the end of a job that this node runs was asked for."""
    names = sorted({entry.queue for entry in entries})
    rows = yield Query("outlook", (names, now, node))
    outlooks = {row[0]: Outlook(*row) for row in rows}
    any_queue = outlooks[names[0]]
    if any_queue.expired:
        yield from ends.expire(now)
    if any_queue.due:
        rows = yield Query("promote", (now,))
        yield from tell(moves((row[0], "scheduled", "queued", int(row[1])) for row in rows), now)
    jobs: list[Job] = []
    for entry in entries:
        outlook = outlooks[entry.queue]
        if outlook.is_over() or entry.limit <= 0:
            continue  # who comes in this moment is told of, and claimed next time
        if outlook.rate is None:
            jobs += yield from _from_queue(node, entry, entry.limit, now, roomy=any_queue.roomy)
        else:
            jobs += yield from _within_rate(node, entry, now, roomy=any_queue.roomy)
    return jobs, bool(any_queue.asked)


def is_vain(node: str, entries: Sequence[Claim], now: Instant) -> Steps[bool]:
    """Would these claims get nothing, do nothing, and tell nothing? Only looks."""
    names = sorted({entry.queue for entry in entries})
    rows = yield Query("outlook", (names, now, node))
    outlooks = [Outlook(*row) for row in rows]
    if any(one.expired or one.due or one.roomy or one.asked for one in outlooks):
        return False
    shut = {one.queue for one in outlooks if one.is_over()}
    for one in outlooks:
        if one.rate is not None and not (yield from _allowed(one.queue, now)):
            shut.add(one.queue)
    for entry in entries:
        if entry.queue not in shut and (yield _peek(entry, 1)):
            return False
    return True


def _allowed(queue: str, now: Instant) -> Steps[int]:
    """How many jobs a queue's rate lets begin now."""
    rows = yield Query("lock_rate", (queue,))
    return allowed(fill(Bucket(*rows[0]), now))


def is_usual(entries: Sequence[Claim]) -> bool:
    """May these be served by one statement?"""
    queues = {entry.queue for entry in entries}
    return len(queues) == len(entries) and all(entry.limit > 0 and not entry.without for entry in entries)


def claim_at_once(
    node: str, sequence: int, entries: Sequence[Claim], now: Instant
) -> Steps[tuple[list[Job], list[str]] | None]:
    """Speak and claim by a single statement, where a round trip costs more than the work: the jobs, and the
    ids of those that cannot be read, to be buried. None, and nothing has happened, if there is more to do."""
    queues, limits = [entry.queue for entry in entries], [entry.limit for entry in entries]
    rows = yield Query("claim_at_once", (node, sequence, queues, limits, now))
    if not rows:
        return None
    found, damaged = _read([row for row in rows if row[0] is not None])
    place = {queue: number for number, queue in enumerate(queues)}
    jobs = [candidate.job for candidate in found]
    return sorted(jobs, key=lambda job: (place[job.queue], job.rank, job.id)), damaged


def rest(entries: Sequence[Claim], got: Sequence[Job]) -> list[Claim]:
    """What is still wanted of each queue."""
    numbers = Counter(job.queue for job in got)
    return [Claim(entry.queue, entry.limit - numbers[entry.queue], entry.without) for entry in entries]


def _within_rate(node: str, entry: Claim, now: Instant, *, roomy: bool) -> Steps[list[Job]]:
    rows = yield Query("lock_rate", (entry.queue,))
    bucket = fill(Bucket(*rows[0]), now)
    jobs = yield from _from_queue(node, entry, min(entry.limit, allowed(bucket)), now, roomy=roomy)
    yield Query("spend_rate", (entry.queue, bucket.tokens - len(jobs), bucket.filled_at))
    return jobs


def _from_queue(node: str, entry: Claim, limit: int, now: Instant, *, roomy: bool) -> Steps[list[Job]]:
    if limit <= 0:
        return []
    jobs: list[Job] = []
    is_all = False
    if not roomy and not entry.without:
        jobs, is_all = yield from _take_head(node, entry.queue, limit, now)
    if len(jobs) < limit and not is_all:
        jobs += yield from _look_on(node, entry, limit - len(jobs), now, roomy=roomy)
    return sorted(jobs, key=lambda job: (job.rank, job.id))


def _take_head(node: str, queue: str, limit: int, now: Instant) -> Steps[tuple[list[Job], bool]]:
    """Claim the first in line, up to the first that needs a slot: what needs none takes nothing from
    anybody, so there is nothing to choose. Also says whether these were all that stood there; if not, it may
    have claimed less than it could."""
    rows = yield Query("claim_head", (queue, limit, node))
    found, damaged = _read([row[:-1] for row in rows])
    yield from tell(moves([(queue, "queued", "running", len(rows))]), now)
    yield from _let_go(found)
    yield from bury(damaged, "running", now)
    is_all = bool(rows) and not rows[0][-1] and not damaged
    return [candidate.job for candidate in found], is_all


def _look_on(node: str, entry: Claim, limit: int, now: Instant, *, roomy: bool) -> Steps[list[Job]]:
    """One window after the other: those that may run are claimed, the others parked."""
    jobs: list[Job] = []
    rows: list[Row] = []
    while len(jobs) < limit:
        back = (yield from _step_back(entry, now)) if roomy or rows else set()
        wanted = limit - len(jobs)
        window = wanted + WINDOW if rows else wanted
        rows = yield _peek(entry, window)
        found, damaged = _read([_as_claimed(row, node) for row in rows])
        chosen, parked = yield from _choose(found, wanted, back)
        if parked:
            yield Many("park", parked)
            yield Many("count_parked", sorted(Counter(slot for _, slot in parked).items()))
            yield from tell(moves([(entry.queue, None, PARKED, len(parked))]), now)
        jobs += yield from _take(node, chosen, now)
        yield from bury(damaged, "queued", now)
        nothing_left = len(rows) < window and not parked
        if nothing_left or not rows:
            break
    return jobs


def _peek(entry: Claim, limit: int) -> Query:
    if entry.without:
        return Query("peek_without", (entry.queue, limit, list(entry.without)))
    return Query("peek", (entry.queue, limit))


def _step_back(entry: Claim, now: Instant) -> Steps[set[str]]:
    """Those parked at slots that have room again, the best of each, stand in line again."""
    rows = yield Query("roomy_slots", (entry.queue,))
    if not rows:
        return set()
    without = _encode(entry.without).decode()
    back = yield Many("step_back", [(name, entry.queue, free, without) for name, free in rows])
    returned = Counter(row[1] for row in back)
    if returned:
        yield Many("count_parked", [(name, -number) for name, number in sorted(returned.items())])
        yield from tell(moves([(entry.queue, PARKED, None, len(back))]), now)
    return {row[0] for row in back}


def _as_claimed(row: Row, node: str) -> Row:
    """A row of the line with state, started_at, token and node as the claim will set them."""
    return (*row[:3], "running", *row[4:9], None, *row[10:16], row[16] + 1, node, *row[18:])


def _read(rows: Sequence[Row]) -> tuple[list[Candidate], list[str]]:
    """The candidates, and the ids of what cannot be read: those end dead instead of stopping the claim."""
    found: list[Candidate] = []
    damaged: list[str] = []
    for row in rows:
        try:
            found.append(Candidate(job_of(row[:-1]), row[-1]))
        except Damaged:
            damaged.append(row[0])
    return found, damaged


def _choose(
    found: Sequence[Candidate], wanted: int, back: set[str]
) -> Steps[tuple[list[Candidate], list[Row]]]:
    """Which candidates may run, and which must be parked and at what."""
    names = sorted({slot.name for candidate in found for slot in candidate.job.slots})
    if not names:  # nothing to take, nothing to park: the usual case
        return list(found[:wanted]), []
    free: dict[str, int] = dict((yield Query("lock_slots", (names,))))
    chosen: list[Candidate] = []
    parked: list[Row] = []
    used: Counter[str] = Counter()
    for candidate in found:
        needed = {slot.name for slot in candidate.job.slots}
        full = next((name for name in sorted(needed) if free.get(name, 0) <= used[name]), None)
        if full is not None:
            parked.append((candidate.job.id, full))
            if candidate.job.id in back:  # then the next one parked where it was comes before all behind it
                break
        elif len(chosen) < wanted:
            chosen.append(candidate)
            used.update(needed)
    if used:
        yield Many("take_slots", sorted(used.items()))
    return chosen, parked


def _take(node: str, chosen: Sequence[Candidate], now: Instant) -> Steps[list[Job]]:
    """Make these jobs ours."""
    if not chosen:
        return []
    yield Many("claim", [(candidate.job.id, node) for candidate in chosen])
    yield from tell(moves([(chosen[0].job.queue, "queued", "running", len(chosen))]), now)
    yield from _let_go(chosen)
    return [candidate.job for candidate in chosen]


def _let_go(claimed: Sequence[Candidate]) -> Steps[None]:
    """Keys that are held only while a job waits."""
    short = [
        (candidate.job.task, candidate.job.unique, candidate.job.id)
        for candidate in claimed
        if candidate.unique_for == "waiting"
    ]
    if short:
        yield Many("release_unique", sorted(short))


def bury(ids: Sequence[str], before: str, now: Instant) -> Steps[None]:
    """End jobs that cannot be read."""
    if ids:
        rows = yield Many("bury", [(job, now) for job in ids])
        yield from tell(moves((row[2], before, "dead", 1) for row in rows), now)
        yield from ends.after_all([ends.Ending(*row) for row in rows], JobState.DEAD, now)
