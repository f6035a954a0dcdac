"""Counts of what a pool did, for the metrics: how attempts ended, how long jobs waited and ran.

Cheap enough for every job: a few additions. Written by the claim loop's thread alone; a reader may find a job
in one number and not yet in another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from millpond.job import ENDS, MICROSECONDS, Outcome, Released, Settlement, Snoozed

BITS = 72  # more than the difference of any two stored instants has
OUTCOMES = ("completed", "retried", "snoozed", "dead", "cancelled", "released")


class Timing(NamedTuple):
    """Durations so far: how many were of each power of two of microseconds, and their sum in seconds."""

    counts: tuple[int, ...] = (0,) * BITS  # [b]: below 2**b microseconds, and not below 2**(b - 1)
    seconds: float = 0.0


class Durations:
    """Durations being counted."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * BITS
        self.total = 0  # microseconds

    def add(self, microseconds: int) -> None:
        """One more; a clock that went back makes it none at all."""
        microseconds = max(microseconds, 0)
        self.counts[microseconds.bit_length()] += 1
        self.total += microseconds

    def timing(self) -> Timing:
        """As they are now."""
        return Timing(tuple(self.counts), self.total / MICROSECONDS)


class Tally:
    """What one pool did since its node started."""

    __slots__ = ("completed", "ends", "runs", "waits")

    def __init__(self) -> None:
        self.completed = 0  # by the short way
        self.ends = dict.fromkeys(OUTCOMES, 0)
        self.waits = Durations()
        self.runs = Durations()

    def returned(self, wait: int, run: int) -> None:
        """A job completed; both in microseconds. Said for every job, so it calls nothing more."""
        waits, runs = self.waits, self.runs
        if wait < 0:  # noqa: PLR1730  max() is a call
            wait = 0
        if run < 0:  # noqa: PLR1730
            run = 0
        waits.counts[wait.bit_length()] += 1
        waits.total += wait
        runs.counts[run.bit_length()] += 1
        runs.total += run
        self.completed += 1

    def ended(self, said: Settlement, outcome: Outcome) -> None:
        """An attempt ended in any other way, or never began."""
        self.ends[_word(said, outcome)] += 1
        if said.wait is not None and said.run is not None:
            self.waits.add(round(said.wait * MICROSECONDS))
            self.runs.add(round(said.run * MICROSECONDS))

    def told(self) -> Mapping[str, int]:
        """How many ended in which way."""
        return {**self.ends, "completed": self.ends["completed"] + self.completed}


def _word(said: Settlement, outcome: Outcome) -> str:
    if isinstance(outcome, Released):
        return "released"
    if isinstance(outcome, Snoozed):
        return "snoozed"
    state = said.transition.state
    return state.value if state in ENDS else "retried"
