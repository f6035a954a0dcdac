"""Compares policies at the same wait: each one's knob is swept, the cheapest point that keeps it counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from millpond.rules.scale import ScaleForWait
from millpond.simulate.engine import simulate
from millpond.simulate.measure import Bound, Report, report
from millpond.simulate.records import Law, Setting, Workload
from millpond.simulate.rivals import KNOBS

OURS = "wait"


class Candidate(NamedTuple):
    """A law with a setting of its knob."""

    family: str
    knob: float
    law: Law

    @property
    def name(self) -> str:
        """Family and knob."""
        return f"{self.family} {self.knob:g}"


def candidates(waits: Iterable[float], families: Iterable[str] = KNOBS) -> list[Candidate]:
    """Ours for each wait that is asked for, and every setting of the others."""
    ours = [Candidate(OURS, wait, ScaleForWait(wait)) for wait in waits]
    others = [Candidate(name, knob, KNOBS[name][0](knob)) for name in families for knob in KNOBS[name][1]]
    return ours + others


def measured(candidate: Candidate, workload: Workload, setting: Setting, bound: Bound) -> Report:
    """One point of a front."""
    return report(candidate.name, simulate(workload, candidate.law, setting), setting, bound)


def cheapest(reports: Iterable[Report], wait: float) -> Report | None:
    """The point with the fewest worker-hours of those whose p95 is within the wait."""
    within = [found for found in reports if found.p95_wait <= wait]
    return min(within, key=lambda found: found.worker_hours, default=None)


def family(name: str) -> str:
    """Which law a report is of."""
    return name.split(" ", maxsplit=1)[0]
