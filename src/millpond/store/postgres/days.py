"""The history of PostgreSQL lies in a table for each day, and a day that is old enough is dropped whole.

Deleting a job costs the server a third of what running it does, and leaves dead rows behind; dropping a day
costs nothing that grows with its jobs but one count. So what completed or was cancelled is kept until the
last job of its day is old enough, up to a day longer than was asked. A retention of less than a day is exact.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec.structs import replace

from millpond.job import DAY, MICROSECONDS, Instant
from millpond.store.protocol import Retention
from millpond.store.sql.job_counts import moves, tell
from millpond.store.sql.query import Query, Steps

BLOCKS = 32_768  # of a table, counted by one statement: 256 MB
AHEAD = 8  # days that have a table: today's, and those of a week in which no node may be there to make one


class Dropped(NamedTuple):
    """A day that was looked at."""

    first: Instant
    jobs: int  # 0 if it could not be dropped now


def make(now: Instant) -> Steps[None]:
    """See that there is a table for today and the next days."""
    yield Query("make_days", (now, AHEAD))


def drop(retention: Retention, behind: Instant, now: Instant) -> Steps[Dropped | None]:
    """Drop the first day behind an instant that is old enough; None if there is none.

    Its jobs are counted some blocks at a time, because a statement has a bound: a day of many million jobs
    that is on the disk takes longer, and would never be dropped. A day that a user's transaction has read
    and keeps is passed over, and dropped by a later prune: deleting its jobs would free nothing, and each
    page would pass over all that were deleted before. Shown by tests/stores/test_days.py,
    test_a_day_that_a_users_transaction_has_read_is_left_to_the_next_prune.
    """
    whole = whole_days(retention, now)
    before = now - round(max(whole.completed, whole.cancelled) * MICROSECONDS)
    rows = yield Query("oldest_day", (before, behind))
    if not rows:
        return None
    ((first,),) = rows
    ((blocks,),) = yield Query("lock_day", (first,))
    if blocks is None:
        return Dropped(first, 0)
    gone: Counter[tuple[str, str]] = Counter()
    for block in range(0, blocks, BLOCKS):
        page = (f"({block},0)", f"({block + BLOCKS},0)")
        for queue, state, number in (yield Query("count_day", (first, first + DAY, *page))):
            gone[queue, state] += number
    ((done,),) = yield Query("drop_day", (first,))
    if not done:
        return Dropped(first, 0)
    yield from tell(moves((queue, state, None, number) for (queue, state), number in gone.items()), now)
    return Dropped(first, gone.total())


def whole_days(retention: Retention, now: Instant) -> Retention:
    """The same, with what completed or was cancelled kept to the end of its day."""
    return replace(
        retention,
        completed=_to_the_day(retention.completed, now),
        cancelled=_to_the_day(retention.cancelled, now),
    )


def _to_the_day(kept: float, now: Instant) -> float:
    length = round(kept * MICROSECONDS)
    if length < DAY:
        return kept
    return (now - (now - length) // DAY * DAY) / MICROSECONDS
