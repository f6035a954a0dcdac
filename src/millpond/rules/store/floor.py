"""When to look at a line from its very beginning, where dead index entries may stand before the first job.

While any transaction in the database is open, PostgreSQL keeps the index entries of all jobs that were
claimed since it began, and each look at the head of the line passes over all of them again. A look that
begins at the rank where the last one found a job passes over none. It misses a job that has come in front of
that rank (one of a higher priority, one that came back), so a look from the beginning must follow soon.
"""

from __future__ import annotations

from typing import NamedTuple

SLOW = 0.01  # seconds beyond the quickest look: so long is not chance, if it happens again and again
IN_A_ROW = 5
SHARE = 10  # looks from the beginning take one part in so many of the time
LONGEST = 5.0  # seconds that a job in front of the floor may be missed, unless one look takes a tenth of that


class Looks(NamedTuple):
    """What looks from the beginning have cost lately."""

    at: float = float("-inf")  # the last one
    took: float = 0.0
    slow: int = 0  # so many in a row were slow
    quickest: float = float("inf")  # of all looks, from wherever they began


def is_slow(looks: Looks) -> bool:
    """Is it worth while to begin elsewhere than at the beginning?"""
    return looks.slow >= IN_A_ROW


def begins_at_floor(looks: Looks, now: float) -> bool:
    """May the next look leave out what stands before the floor?"""
    pause = max(min(LONGEST, SHARE * looks.took), looks.took)
    return is_slow(looks) and now - looks.at < pause


def looked(looks: Looks, now: float, took: float, *, at_floor: bool) -> Looks:
    """With one more look."""
    quickest = min(looks.quickest, took)
    if at_floor:
        return looks._replace(quickest=quickest)
    slow = looks.slow + 1 if took > quickest + SLOW else 0
    return Looks(now, took, slow, quickest)
