"""Which tasks the live nodes know, from what each node writes about itself; how long an unknown one waits.

Pure. A node that wrote nothing about its tasks, or not all of them, may know any: only what is certain counts
against a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from millpond.job import DAY, MICROSECONDS, Instant, Job
from millpond.rules.jobs.retry import share

MOST_TEXT = 8_000  # characters of names in a node's record, which is written every few seconds
FIRST, LONGEST = 2.0, 60.0  # seconds until a job that was given back is due again
OFFERS = 3  # times that a job is given back for others to take first
OFFERED = 1.5  # seconds: every node looks for work once a second
GAP = 3600.0  # seconds after which a task that was not met again counts as unknown from the beginning


class Record(Protocol):
    """What must be known of a node's record."""

    @property
    def info(self) -> bytes: ...
    @property
    def lease_left(self) -> float: ...
    @property
    def sealed(self) -> bool: ...


class Crew(msgspec.Struct, frozen=True):
    """One pool of a node, as far as it matters to a job in line."""

    name: str
    queues: tuple[str, ...] = ()
    most: int = 0
    concurrency: int = 1
    running: int = 0
    count: int = 0  # workers
    status: str = "ok"
    reasons: tuple[str, ...] = ()


class _Report(msgspec.Struct, frozen=True):
    pools: tuple[Crew, ...] = ()


class Known(msgspec.Struct, frozen=True):
    """What one node says it serves and knows."""

    queues: tuple[str, ...] | None = None  # None: it does not say
    tasks: tuple[str, ...] | None = None
    tasks_left_out: int = 0  # names for which there was no room
    code: str = ""  # a hash of the app's tasks and of the files they are written in
    unrecorded: dict[str, str] = {}  # jobs whose end the store does not take, and why
    report: msgspec.Raw = msgspec.Raw(b"{}")

    def may_know(self, task: str) -> bool:
        """Does it know the task, as far as it says?"""
        return self.tasks is None or task in self.tasks or self.tasks_left_out > 0

    def may_serve(self, queue: str) -> bool:
        """Does it serve the queue, as far as it says?"""
        return self.queues is None or queue in self.queues

    def crews(self, queue: str) -> list[Crew]:
        """Its pools that serve the queue; none if what it says of them cannot be read."""
        try:
            pools = msgspec.json.decode(self.report, type=_Report).pools
        except msgspec.DecodeError:
            return []
        return [pool for pool in pools if queue in pool.queues]


class Sighting(msgspec.Struct, frozen=True, array_like=True):
    """Since when no live node has known a task, and when a job of it was last met."""

    since: Instant
    seen: Instant


def facts(names: Iterable[str], code: str) -> dict[str, object]:
    """What a node writes about its tasks: the names in order, as many as there is room for."""
    kept: list[str] = []
    room, ordered = MOST_TEXT, sorted(names)
    for name in ordered:
        room -= len(name) + 3
        if room < 0:
            break
        kept.append(name)
    return {"tasks": kept, "tasks_left_out": len(ordered) - len(kept), "code": code}


def live(nodes: Iterable[Record]) -> list[Known]:
    """What the nodes that have a lease say; one whose record cannot be read may know everything."""
    return [_read(node.info) for node in nodes if node.lease_left > 0 and not node.sealed]


def _read(info: bytes) -> Known:
    try:
        return msgspec.json.decode(info, type=Known)
    except (msgspec.DecodeError, RecursionError):
        return Known()


def is_known(nodes: Sequence[Known], task: str) -> bool:
    """May one of these nodes know the task?"""
    return any(node.may_know(task) for node in nodes)


def runs_other_code(nodes: Sequence[Known], own: str, job: Job) -> bool:
    """May one of these nodes get the job, and read with other code what this code cannot?"""
    return any(node.code != own and node.may_serve(job.queue) and node.may_know(job.task) for node in nodes)


def due_since(job: Job) -> Instant:
    """Since when a job has been due. Its rank tells: giving it back keeps that and may change `run_at`."""
    return job.rank + job.priority * DAY


def is_given_up(since: Instant, now: Instant, after: float) -> bool:
    """Has it been like this for longer than is waited for?"""
    return now - since >= after * MICROSECONDS


def back_off(job: Job, times: int) -> float:
    """Seconds until a job that one node has given back so many times is due again: 2, 2, 2, 4, 8 ... 60, and
    up to a quarter longer so that many do not come back together."""
    nominal = min(LONGEST, FIRST * 2.0 ** min(max(0, times - OFFERS), 10))
    return nominal * (1 + 0.25 * share(f"unread:{job.id}:{times}"))


def rest(delay: float, times: int) -> float:
    """Seconds for which that node leaves the task to others, so that one of them gets the job when it is due:
    else the node that cannot read it may be the quickest again and again. Not for ever, since there may be
    jobs of the task that only this node can read."""
    return delay + OFFERED if times <= OFFERS else 0.0


def sighted(before: Sighting | None, now: Instant) -> Sighting:
    """The task was met again, and no live node knows it."""
    if before is None or now - before.seen > GAP * MICROSECONDS:
        return Sighting(now, now)
    return Sighting(before.since, now)
