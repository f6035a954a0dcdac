"""Claiming: the first jobs in line that may run, slots taken, in one step with everything due.

Greedy by (rank, id). The head of the line that needs no slots is claimed in one statement. A job that
finds a slot full is parked out of the line, so that it is looked at once and not at every claim; when the
slot has room again, the best of those parked at it step back first.

A claim waits for no lock. A job, slot or rate that another transaction has locked is passed over and found by
the next claim. An exchange holds the slots that it freed; two that waited for each other's would stand still
until the server ends one of them, again and again. Shown by tests/proof_stores/test_keyed_crowd.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from millpond.job import Instant, Job, JobState
from millpond.rules.jobs.rate_limit import Bucket, allowed, fill
from millpond.store.protocol import Claim
from millpond.store.sql import after_end, slots
from millpond.store.sql.job_counts import PARKED, moves, tell
from millpond.store.sql.query import Many, Query, Row, Steps
from millpond.store.sql.rows import Damaged, job_of

WINDOW = 200  # jobs looked at together beyond those wanted
DUE = 10_000  # jobs whose time has come that one claim puts in line
LOOKED = 2000  # jobs that one claim looks at beyond those it gets
_encode = msgspec.json.Encoder().encode


class Candidate(msgspec.Struct, frozen=True):
    """A job at the head of the line, as it will be when it is ours."""

    job: Job
    unique_for: str | None


class Claimed(NamedTuple):
    """What a claim got."""

    jobs: list[Job]
    asked: bool  # the end of a job that this node runs was asked for
    more: bool  # the claim stopped at a bound and may find more at once


NOTHING = Claimed([], True, False)


class Outlook(NamedTuple):
    """What a claim may have to do besides claiming; most of it is rare."""

    queue: str
    paused: bool
    rate: float | None
    expired: bool  # some job has waited for too long
    due: bool  # the time of some job has come
    roomy: bool  # some slot with jobs parked at it has room
    cascading: bool  # some job ended with more dependents than one step reaches
    asked: bool  # the end of a job of this node was asked for
    stands: bool  # some job stands in line, though perhaps not for this node

    def is_over(self) -> bool:
        """Is there nothing in this queue, and nothing that could be put into it now?"""
        return self.paused or not (self.stands or self.due or self.roomy)


def claim(node: str, entries: Sequence[Claim], now: Instant) -> Steps[Claimed]:
    """Serve each entry in turn."""
    names = sorted({entry.queue for entry in entries})
    rows = yield Query("outlook", (names, now, node))
    outlooks = {row[0]: Outlook(*row) for row in rows}
    any_queue = outlooks[names[0]]
    more = bool(any_queue.cascading) and (yield from after_end.go_on(now)) > 0
    expired = bool(any_queue.expired) and (yield from after_end.expire(now))
    if any_queue.due:
        more = (yield from _promote(now)) or more
    jobs: list[Job] = []
    for entry in entries:
        outlook = outlooks[entry.queue]
        if outlook.is_over() or entry.limit <= 0:
            continue  # a job that comes in this moment is announced, and claimed next time
        demand = Demand(node, entry, now, roomy=bool(any_queue.roomy), expired=expired)
        if outlook.rate is None:
            found, stopped = yield from _from_queue(demand, entry.limit)
        else:
            found, stopped = yield from _within_rate(demand)
        jobs += found
        more = more or stopped
    return Claimed(jobs, bool(any_queue.asked), more or expired)


def _promote(now: Instant) -> Steps[bool]:
    """Put a page of the jobs whose time has come in line; True if there may be more, perhaps of these queues:
    a node that has nothing to do would otherwise come back only after a second."""
    rows = yield Query("promote", (now, DUE))
    yield from tell(moves((row[0], "scheduled", "queued", int(row[1])) for row in rows), now)
    return sum(int(row[1]) for row in rows) == DUE


class Demand(NamedTuple):
    """What is claimed from one queue, and what stands in the way there."""

    node: str
    entry: Claim
    now: Instant
    roomy: bool  # some slot with parked jobs has room
    expired: bool  # some that stand here may have expired


def is_vain(node: str, entries: Sequence[Claim], now: Instant) -> Steps[bool]:
    """Would these claims get nothing, do nothing, and tell nothing? Only looks."""
    names = sorted({entry.queue for entry in entries})
    rows = yield Query("outlook", (names, now, node))
    outlooks = [Outlook(*row) for row in rows]
    if any(one.expired or one.due or one.roomy or one.cascading or one.asked for one in outlooks):
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
    return allowed(fill(Bucket(*rows[0]), now)) if rows else 0


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


def _within_rate(demand: Demand) -> Steps[tuple[list[Job], bool]]:
    rows = yield Query("lock_rate", (demand.entry.queue,))
    if not rows:  # another node claims from this queue at this moment
        return [], False
    bucket = fill(Bucket(*rows[0]), demand.now)
    jobs, stopped = yield from _from_queue(demand, min(demand.entry.limit, allowed(bucket)))
    yield Query("spend_rate", (demand.entry.queue, bucket.tokens - len(jobs), bucket.filled_at))
    return jobs, stopped


def _from_queue(demand: Demand, limit: int) -> Steps[tuple[list[Job], bool]]:
    """Up to `limit` jobs, and whether the claim stopped at its bound before the end of the line."""
    if limit <= 0:
        return [], False
    jobs: list[Job] = []
    is_all = stopped = False
    if not (demand.roomy or demand.expired or demand.entry.without):
        jobs, is_all = yield from _take_head(demand.node, demand.entry.queue, limit, demand.now)
    if len(jobs) < limit and not is_all:
        found, stopped = yield from _look_on(demand, limit - len(jobs))
        jobs += found
    return sorted(jobs, key=lambda job: (job.rank, job.id)), stopped


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


def _look_on(demand: Demand, limit: int) -> Steps[tuple[list[Job], bool]]:
    """One window after the other: those that may run are claimed, the others parked, the expired cancelled.
    Also says whether the bound on how many are looked at ended it, and there is something new to look at.

    A job whose slot another exchange has locked for a moment stands where it stood: the next window reaches
    beyond all of those. Ending there, a claim of one job would come back empty beside a line full of others,
    and its node rest for a second. Where nothing but such jobs was found, an answer that there may be more
    would keep the node claiming without a pause for as long as the slot is locked. Shown by
    tests/stores/test_locked_slots.py.
    """
    jobs: list[Job] = []
    seen = passed = changed = 0
    while len(jobs) < limit:
        wanted = limit - len(jobs)
        back = (yield from _step_back(demand, wanted)) if demand.roomy or seen else set()
        window = wanted + passed + WINDOW if seen else wanted
        rows = yield _peek(demand.entry, window)
        taken, moved, passed = yield from _through(demand, rows, wanted, back)
        jobs += taken
        seen += len(rows)
        changed += len(taken) + moved
        if len(rows) < window and not moved:
            return jobs, False
        if seen >= limit + LOOKED:
            return jobs, changed > 0
    return jobs, False


def _through(
    demand: Demand, rows: Sequence[Row], wanted: int, back: set[str]
) -> Steps[tuple[list[Job], int, int]]:
    """Claim, park, cancel or bury the jobs of one window; returns those claimed, how many left the line in
    another way, and how many were passed over."""
    found, damaged = _read([_as_claimed(row, demand.node) for row in rows])
    late = [
        one.job.id for one in found if one.job.expires_at is not None and one.job.expires_at <= demand.now
    ]
    if late:
        found = [one for one in found if one.job.id not in set(late)]
    chosen, parked, passed = yield from _choose(found, wanted, back)
    if parked:
        yield Many("park", parked)
        yield Many("count_parked", sorted(Counter(slot for _, slot in parked).items()))
        yield from tell(moves([(demand.entry.queue, None, PARKED, len(parked))]), demand.now)
    jobs = yield from _take(demand.node, chosen, demand.now)
    yield from bury(damaged, "queued", demand.now)
    yield from after_end.cancel_waiting(late, "expired", demand.now)
    return jobs, len(parked) + len(damaged) + len(late), passed


def _peek(entry: Claim, limit: int) -> Query:
    if entry.without:
        return Query("peek_without", (entry.queue, limit, list(entry.without)))
    return Query("peek", (entry.queue, limit))


def _step_back(demand: Demand, wanted: int) -> Steps[set[str]]:
    """Those parked at slots that have room again, the best of each, stand in line again."""
    queue, without = demand.entry.queue, _encode(demand.entry.without).decode()
    rows = yield Query("roomy_slots", (queue, wanted + WINDOW, without))
    if not rows:
        return set()
    back = yield Many("step_back", [(name, queue, min(free, wanted), without) for name, free in rows])
    returned = Counter(row[1] for row in back)
    if returned:
        yield Many("count_parked", [(name, -number) for name, number in sorted(returned.items())])
        yield from tell(moves([(queue, PARKED, None, len(back))]), demand.now)
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
) -> Steps[tuple[list[Candidate], list[Row], int]]:
    """Which candidates may run, which must be parked and at what, and how many were passed over: one that
    needs a slot which another transaction has locked keeps its place in line."""
    if not any(candidate.job.slots for candidate in found):  # the usual case
        return list(found[:wanted]), [], 0
    free = yield from slots.lock([candidate.job for candidate in found])
    chosen: list[Candidate] = []
    parked: list[Row] = []
    used: Counter[str] = Counter()
    passed = 0
    for candidate in found:
        needed = {slot.name for slot in candidate.job.slots}
        if not needed <= free.keys():
            passed += 1
            continue
        full = next((name for name in sorted(needed) if free[name] <= used[name]), None)
        if full is not None:
            parked.append((candidate.job.id, full))
            if candidate.job.id in back:  # then the next one parked where it was comes before all behind it
                break
        elif len(chosen) < wanted:
            chosen.append(candidate)
            used.update(needed)
    if used:
        yield Many("take_slots", sorted(used.items()))
    return chosen, parked, passed


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
        yield from after_end.after_all([after_end.Ending(*row) for row in rows], JobState.DEAD, now)
