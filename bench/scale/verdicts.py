"""Ours beside the best of the others at one p95: what is saved, what could be at all, and the verdict."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from millpond.simulate.compare import hours_at

Points = Sequence[tuple[float, float]]  # p95, worker-hours
YES, NO, NO_LAW_CAN = "yes", "**no**", "no law can"
ROUNDING = 1e-9  # per cent


class Saved(NamedTuple):
    """Worker-hours of one day at one p95."""

    work: float  # what the jobs themselves take
    mine: float | None  # None: not kept
    theirs: Mapping[str, float]  # of those laws that keep it

    @property
    def best(self) -> float | None:
        """Of the others."""
        return min(self.theirs.values(), default=None)

    @property
    def fewer(self) -> float | None:
        """Per cent that ours needs fewer than the best of the others; None if one of them is missing."""
        return None if self.mine is None or self.best is None else 100 * (1 - self.mine / self.best)

    @property
    def possible(self) -> float | None:
        """Per cent that a law would need fewer whose workers never idle: no law spends less than the work."""
        return None if self.best is None else 100 * (1 - self.work / self.best)

    def verdict(self, needed: float) -> str:
        """Is it as many per cent fewer as was hoped for? Who keeps a wait that nobody else keeps need not be
        cheaper than anybody; who does not keep it has not met it."""
        if self.mine is None:
            return NO
        if self.fewer is None or self.possible is None or self.fewer >= needed - ROUNDING:
            return YES
        return NO_LAW_CAN if self.possible < needed else NO


def saved(work: float, ours: Points, others: Mapping[str, Points], wait: float) -> Saved:
    """Compare the fronts at this p95."""
    found = {name: hours_at(points, wait) for name, points in others.items()}
    kept = {name: hours for name, hours in found.items() if hours is not None}
    return Saved(work, hours_at(ours, wait), kept)


def worst(verdicts: Sequence[str]) -> str:
    """Of several days."""
    return next(word for word in (NO, NO_LAW_CAN, YES) if word in verdicts)
