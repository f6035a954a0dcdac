"""How pools share a machine that is too small for what all of them want.

Weighted max-min fairness: every pool first gets its guaranteed minimum, then the next worker always goes to
the pool that has least of what it deserves. What a pool deserves grows with its weight and with how badly one
more worker is missed there, so that a promise that is about to be broken comes first. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple


class Claimant(NamedTuple):
    """A pool that wants workers."""

    pool: str
    least: int
    wanted: int
    weight: float = 1.0
    urgency: float = 1.0  # see `rules.scale.urgency`
    cost: float = 1.0  # of one worker, in the unit of the capacity


def share(capacity: float, claimants: Iterable[Claimant]) -> dict[str, int]:
    """How many workers each pool may have. Minimums are given even where they exceed the capacity."""
    everyone = sorted(claimants)
    given = {claimant.pool: max(0, min(claimant.least, claimant.wanted)) for claimant in everyone}
    left = capacity - sum(given[claimant.pool] * claimant.cost for claimant in everyone)
    if sum((claimant.wanted - given[claimant.pool]) * claimant.cost for claimant in everyone) <= left:
        return {claimant.pool: max(given[claimant.pool], claimant.wanted) for claimant in everyone}
    line = [
        (_has(claimant, given[claimant.pool]), index)
        for index, claimant in enumerate(everyone)
        if given[claimant.pool] < claimant.wanted
    ]
    heapify(line)
    while line:
        _, index = heappop(line)
        claimant = everyone[index]
        if claimant.cost > left + 1e-9:
            continue  # this one does not fit any more; a cheaper one may
        left -= claimant.cost
        given[claimant.pool] += 1
        if given[claimant.pool] < claimant.wanted:
            heappush(line, (_has(claimant, given[claimant.pool]), index))
    return given


def _has(claimant: Claimant, workers: int) -> float:
    """How much it would have of what it deserves, with one worker more."""
    return (workers + 1) * claimant.cost / max(claimant.weight * claimant.urgency, 1e-9)
