"""Which changes of a pool's size are worth a line in a log: those that lead somewhere new.

A pool that has nothing to do but a job every few seconds goes 0 -> 1 -> 0 all day, and is right to. Within a
minute of its last line a change between sizes that were told already is only counted; at the end of the
minute one line tells how many there were. Values in, values out.
"""

from __future__ import annotations

from typing import NamedTuple

WINDOW = 60.0  # seconds


class Sizes(NamedTuple):
    """The sizes of a pool that were told lately."""

    low: int
    high: int
    until: float
    changes: int = 0  # between these, that got no line


def changed(sizes: Sizes | None, before: int, after: int, now: float) -> tuple[Sizes, bool]:
    """What was told lately after this change, and whether the change is worth a line."""
    if sizes is None:
        return Sizes(min(before, after), max(before, after), now + WINDOW), True
    if sizes.low <= after <= sizes.high:
        return sizes._replace(changes=sizes.changes + 1), False
    return sizes._replace(low=min(sizes.low, after), high=max(sizes.high, after)), True


def passed(sizes: Sizes | None, now: float) -> tuple[Sizes | None, int]:
    """What was told lately at this moment, and how many changes a line should tell of. A pool that goes on as
    before needs no other line; one that was quiet for a whole window begins anew."""
    if sizes is None or now < sizes.until:
        return sizes, 0
    if not sizes.changes:
        return None, 0
    return sizes._replace(until=now + WINDOW, changes=0), sizes.changes
