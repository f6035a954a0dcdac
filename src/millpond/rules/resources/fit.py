"""Which of the jobs that need something may start now, on what a node has left.

Memory and named tokens are hard limits, cores a soft one. Memory that a running job was promised and has
not touched yet counts as used. The first job in line that does not fit gets a reservation: those behind it
may start only if that does not put it off. Pure: what was measured and `now` in, names of jobs out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MB = 1_000_000
HEADROOM = 256 * MB  # what is left free of a limit that others use too, or a twentieth of it if that is more
SMALLEST_SHARE = 8  # ... but never more than this part of a small one
EPSILON = 1e-9  # sums of fractions are not exact


class Need(NamedTuple):
    """What a job needs. Cores may be a fraction; tokens are those of the node."""

    cpu: float = 0.0
    memory: int = 0
    tokens: Mapping[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self.cpu or self.memory or self.tokens)


class Budget(NamedTuple):
    """What a node may use at this moment, and what of the memory is used, whoever uses it."""

    memory: int
    used: int = 0
    cpu: float = math.inf
    tokens: Mapping[str, float] = {}


class Started(NamedTuple):
    """A job that runs or is about to."""

    need: Need
    used: int = 0  # the memory that it holds now
    ends_at: float = 0.0  # projected; an instant in the past where nobody knows


class Candidate(NamedTuple):
    """A job that could start."""

    name: str
    rank: int  # the place in line, smallest first
    need: Need
    run: float | None = None  # how long nearly all of its kind take; None while nobody knows
    first: bool = False  # nothing else of its pool runs: for want of cores alone it is not held up


class Free(NamedTuple):
    """What is left."""

    memory: int
    cpu: float
    tokens: Mapping[str, float]

    def has(self, need: Need, *, first: bool = False) -> bool:
        """Is there room for it?"""
        return self.lacks(need, first=first) is None

    def lacks(self, need: Need, *, first: bool = False) -> str | None:
        """What there is too little of, if anything."""
        if need.memory > self.memory and need.memory:
            return "memory"
        for name, number in need.tokens.items():
            if number > self.tokens.get(name, 0.0) + EPSILON:
                return name
        if need.cpu and not first and need.cpu > self.cpu + EPSILON:
            return "cpu"
        return None

    def without(self, need: Need) -> Free:
        """What is left when a job that needs so much has started."""
        return self._changed(need.memory, need, -1)

    def with_end_of(self, job: Started) -> Free:
        """What there is when that one has ended."""
        return self._changed(max(job.need.memory, job.used), job.need, 1)

    def _changed(self, memory: int, need: Need, sign: int) -> Free:
        tokens = self.tokens
        if need.tokens:
            tokens = dict(tokens)
            for name, number in need.tokens.items():
                tokens[name] = tokens.get(name, 0.0) + sign * number
        return Free(self.memory + sign * memory, self.cpu + sign * need.cpu, tokens)


class Reservation(NamedTuple):
    """The first job in line that does not fit: when it should, and what is left beside it then."""

    name: str
    at: float
    beside: Free
    lacks: str


class Fit(NamedTuple):
    """Who may start, in order, and for whom room is being made."""

    start: tuple[str, ...]
    reserved: Reservation | None
    free: Free  # after those have started


def headroom(limit: int) -> int:
    """How much of a limit stays free for what nobody announced."""
    return min(max(limit // 20, HEADROOM), limit // SMALLEST_SHARE)


def free(budget: Budget, started: Iterable[Started]) -> Free:
    """What is left: memory counts as used when it is, and when it has been promised."""
    memory, cpu, tokens = budget.memory - budget.used, budget.cpu, dict(budget.tokens)
    for job in started:
        memory -= max(job.need.memory - job.used, 0)
        cpu -= job.need.cpu
        for name, number in job.need.tokens.items():
            tokens[name] = tokens.get(name, 0.0) - number
    return Free(memory, cpu, tokens)


def fit(budget: Budget, started: Sequence[Started], waiting: Iterable[Candidate], now: float) -> Fit:
    """Who may start now, first in line first."""
    left = free(budget, started)
    reserved: Reservation | None = None
    begin: list[str] = []
    running = list(started)
    for job in sorted(waiting, key=lambda one: (one.rank, one.name)):
        lacks = left.lacks(job.need, first=job.first)
        if lacks is not None:
            reserved = reserved or reservation(job, lacks, left, running)
            continue
        if reserved is not None:
            if not _in_nobodys_way(job, reserved, now):
                continue
            if reserved.beside.has(job.need, first=job.first):
                reserved = reserved._replace(beside=reserved.beside.without(job.need))
        begin.append(job.name)
        left = left.without(job.need)
        running.append(Started(job.need, 0, now + (job.run or 0.0)))
    return Fit(tuple(begin), reserved, left)


def _in_nobodys_way(job: Candidate, reserved: Reservation, now: float) -> bool:
    """Over before the room is needed, or small enough to run beside."""
    if job.run is not None and now + job.run <= reserved.at:
        return True
    return reserved.beside.has(job.need, first=job.first)


def reservation(job: Candidate, lacks: str, left: Free, started: Iterable[Started]) -> Reservation | None:
    """When the running ones will have made room; None if even their end would not: then it is others who
    use the machine, and holding the node's own jobs back would not help."""
    for other in sorted(started, key=lambda one: one.ends_at):
        left = left.with_end_of(other)
        if left.has(job.need, first=job.first):
            return Reservation(job.name, other.ends_at, left.without(job.need), lacks)
    return None


def never_fits(capacity: Budget, need: Need) -> str | None:
    """What a node that has nothing else to do would still have too little of, if anything."""
    whole = Free(capacity.memory, math.inf, capacity.tokens)
    return whole.lacks(need)


def how_many(left: Free, need: Need, most: int) -> int:
    """How many jobs like this would fit, at most `most`."""
    counts = [float(most)]
    if need.memory:
        counts.append(left.memory / need.memory)
    if need.cpu:
        counts.append((left.cpu + EPSILON) / need.cpu)
    counts += [
        (left.tokens.get(name, 0.0) + EPSILON) / number for name, number in need.tokens.items() if number
    ]
    return max(0, int(min(counts)))


def places(left: Free, wants: Iterable[Need], running: int, most: int) -> tuple[int, str] | None:
    """How many jobs can run at once, those that do with them, where one more may be any of these; and what
    there is too little of for more. None if there is room for all `most`."""
    more, scarce = min(((how_many(left, need, most), need) for need in wants), key=lambda one: one[0])
    if running + more >= most:
        return None
    for _ in range(more):
        left = left.without(scarce)
    return running + more, left.lacks(scarce) or "memory"


# --- cores: how far more may be promised than there are ---------------------------------------------------
LEAST_OVERCOMMIT, MOST_OVERCOMMIT = 1.0, 4.0
STEP = 0.25
BACK = 0.7
BUSY, CALM = 0.20, 0.05  # shares of the time in which somebody waited for a core


def overcommit(factor: float, pressure: float | None, *, waiting: bool) -> float:
    """The next factor, after some seconds in which so much time was lost for want of cores.

    Grows slowly while jobs wait and nobody feels it, falls back fast; 1 where pressure is not measured.
    """
    if pressure is None:
        return LEAST_OVERCOMMIT
    if pressure > BUSY:
        return max(LEAST_OVERCOMMIT, factor * BACK)
    if pressure < CALM and waiting:
        return min(MOST_OVERCOMMIT, factor + STEP)
    return factor
