"""How pools share a machine that is too small for what all of them want.

Weighted max-min fairness: every pool first gets its guaranteed minimum, then the next worker always goes to
the pool that has least of what it deserves. What a pool deserves grows with its weight and with how badly one
more worker is missed there, so that a promise that is about to be broken comes first. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple


class Claimant(NamedTuple):
    """A pool that wants workers."""

    pool: str
    least: int
    wanted: int
    weight: float = 1.0
    urgency: float = 1.0  # see `rules.scale.urgency`


def share(capacity: int, claimants: Iterable[Claimant]) -> dict[str, int]:
    """How many workers each pool may have. Minimums are given even where they exceed the capacity."""
    everyone = sorted(claimants)
    wanted = [claimant.wanted for claimant in everyone]
    given = [max(0, min(claimant.least, claimant.wanted)) for claimant in everyone]
    left = capacity - sum(given)
    if sum(wanted) - sum(given) > left > 0:
        _deal(left, given, wanted, [1.0 / max(one.weight * one.urgency, 1e-9) for one in everyone])
    elif left > 0:
        given = wanted
    return {claimant.pool: number for claimant, number in zip(everyone, given, strict=True)}


def _deal(left: int, given: list[int], wanted: list[int], steps: list[float]) -> None:
    """Give out what is left, each time to whoever has least, with one worker more, of what it deserves."""
    line = [
        ((has + 1) * step, index)
        for index, (has, most, step) in enumerate(zip(given, wanted, steps, strict=True))
        if has < most
    ]
    heapify(line)
    for _ in range(left):
        index = line[0][1]
        given[index] = has = given[index] + 1
        if has < wanted[index]:
            heapreplace(line, ((has + 1) * steps[index], index))
        else:
            heappop(line)
