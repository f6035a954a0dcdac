"""How many jobs there are now, by queue and state: what each step adds and takes, never a look at the jobs.

A step says so with the numbers of its minute; whatever a verb says, `gathered` writes once, as the last thing
of its transaction: so nobody holds those rows while he does something else, and two never wait crosswise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from millpond.job import Instant
from millpond.store.sql.query import Many, Request, Row, Steps, T
from millpond.store.sql.statistics import MINUTE

NOW = -1  # in the place of a bucket: a number that stands, not one that happened
PARKED = "parked"  # those in line that wait for a slot; they are counted as queued, too
Moves = Counter[tuple[str, str]]  # (queue, state or PARKED) -> how many more


def moves(found: Iterable[tuple[str, str | None, str | None, int]]) -> Moves:
    """Rows of (queue, state before, state after, number): None where there was or is no job."""
    told: Moves = Counter()
    for queue, before, after, number in found:
        if before is not None:
            told[queue, before] -= number
        if after is not None:
            told[queue, after] += number
    return told


def tell(told: Moves, now: Instant) -> Steps[None]:
    """So many more and fewer there are."""
    rows = [(queue, now // MINUTE, what, NOW, number) for (queue, what), number in told.items() if number]
    if rows:
        yield Many("count", rows)


def gathered(steps: Steps[T]) -> Steps[T]:
    """The same steps, with all that they count written together at their end."""
    value, count = yield from counted(steps)
    if count is not None:
        yield count
    return value


def counted(steps: Steps[T]) -> Steps[tuple[T, Many | None]]:
    """The same steps without what they count, which they return: it is to be the last thing that is sent."""
    gathering: Counter[Row] = Counter()
    try:
        request: Request = next(steps)
        while True:
            if isinstance(request, Many) and request.name == "count":
                for *key, number in request.rows:
                    gathering[tuple(key)] += number
                request = steps.send([])
            else:
                request = steps.send((yield request))
    except StopIteration as end:
        rows = [(*key, number) for key, number in sorted(gathering.items()) if number]
        return end.value, Many("count", rows) if rows else None
