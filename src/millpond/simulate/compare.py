"""Compares policies at the same wait: each one's knob is turned until the wait is just kept.

What is compared are fronts, not points: the fewest worker-hours at a wait, between two settings what the line
says that joins them. A law is never judged by a setting that was made for other jobs or another wait.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from millpond.rules.scaling.policies import ScaleForWait
from millpond.simulate.figures import Bound, Report, report
from millpond.simulate.other_autoscalers import KNOBS, Knob
from millpond.simulate.records import Law, Setting, Workload
from millpond.simulate.simulation import simulate

OURS = "wait"
MOST_TRIED = 8  # settings of one law
STRIDE = 4.0  # from one setting to the next while the wait is not yet between two
CLOSE = 1.03  # settings so near each other need none in between


class Candidate(NamedTuple):
    """A law with a setting of its knob."""

    family: str
    knob: float
    law: Law

    @property
    def name(self) -> str:
        """Family and knob."""
        return f"{self.family} {self.knob:g}"


class Best(NamedTuple):
    """What a law makes of a wait."""

    report: Report  # its cheapest setting that keeps the wait; if none does, the one that comes nearest
    hours: float | None  # worker-hours at exactly this wait; None if it cannot be kept
    is_edge: bool = False  # no looser setting was tried, or there is none: the front may go on beyond

    def document(self) -> dict[str, Any]:
        """For JSON."""
        hours = None if self.hours is None else round(self.hours, 4)
        return {**self.report.document(), "hours_at_wait": hours, "is_edge": self.is_edge}


def ours(wait: float) -> Candidate:
    """Our law, asked for this wait."""
    return Candidate(OURS, wait, ScaleForWait(wait))


def other(name: str, knob: float) -> Candidate:
    """Another law with this setting."""
    return Candidate(name, knob, KNOBS[name].law(knob))


def candidates(waits: Iterable[float], families: Iterable[str] = KNOBS) -> list[Candidate]:
    """Ours for each wait that is asked for, and every setting of the others that the benchmark sweeps."""
    return [*map(ours, waits), *(other(name, knob) for name in families for knob in KNOBS[name].swept)]


def measured(candidate: Candidate, workload: Workload, setting: Setting, bound: Bound) -> Report:
    """One point of a front."""
    return report(candidate.name, simulate(workload, candidate.law, setting), setting, bound)


def family(name: str) -> str:
    """Which law a report is of."""
    return name.split(" ", maxsplit=1)[0]


# --- at the same wait --------------------------------------------------------------------------------------
def cheapest(reports: Iterable[Report], wait: float) -> Report | None:
    """The point with the fewest worker-hours of those whose p95 is within the wait."""
    within = [found for found in reports if found.p95_wait <= wait]
    return min(within, key=lambda found: found.worker_hours, default=None)


def hours_at(points: Iterable[tuple[float, float]], wait: float) -> float | None:
    """The fewest worker-hours of a front of (p95, worker-hours) at this p95; None if no point keeps it.

    Between the last point that keeps it and the first that does not, what the line between these two says.
    """
    everything = list(points)
    within = [point for point in everything if point[0] <= wait]
    beyond = [point for point in everything if point[0] > wait]
    if not within:
        return None
    fewest = min(hours for _, hours in within)
    if not beyond:
        return fewest
    last, hours = max(within, key=lambda point: (point[0], -point[1]))
    following, next_hours = min(beyond)
    return min(fewest, hours + (wait - last) / (following - last) * (next_hours - hours))


# --- finding the setting -----------------------------------------------------------------------------------
def compared(
    run: Callable[[Sequence[Candidate]], Sequence[Report]], wait: float, service: float
) -> list[Best]:
    """Ours at half the wait, at the wait and at twice, then each other law at its best for this wait. `run`
    simulates candidates; `service` is the mean run time of the jobs."""
    asked = [ours(wait / 2), ours(wait), ours(wait * 2)]
    found: dict[str, dict[float, Report]] = {OURS: {}, **{name: {} for name in KNOBS}}
    todo = [*asked, *(other(name, knob) for name in KNOBS for knob in first(KNOBS[name], wait, service))]
    while todo:
        for candidate, point in zip(todo, run(todo), strict=True):
            found[candidate.family][candidate.knob] = point
        todo = [
            other(name, knob)
            for name in KNOBS
            if (knob := following(KNOBS[name], _kept(found[name], wait))) is not None
        ]
    points = [found[OURS][candidate.knob] for candidate in asked]
    return [
        *(Best(point, point.worker_hours if point.p95_wait <= wait else None) for point in points),
        *(best(KNOBS[name], found[name], wait) for name in KNOBS),
    ]


def best(knob: Knob, tried: Mapping[float, Report], wait: float) -> Best:
    """Of these settings of a law."""
    hours = hours_at([(found.p95_wait, found.worker_hours) for found in tried.values()], wait)
    chosen = cheapest(tried.values(), wait)
    if chosen is None:
        return Best(min(tried.values(), key=lambda found: found.p95_wait), hours)
    kept, loose = _split(knob, _kept(tried, wait))
    return Best(chosen, hours, is_edge=bool(kept) and not loose)


def first(knob: Knob, wait: float, service: float) -> list[float]:
    """The settings to begin with: they grow with the wait, or with the jobs that it has room for. Where a
    knob has an end that means something, the loosest: if that keeps the wait, none is cheaper."""
    middles = {"jobs": 1.0 + wait / max(service, 1e-3), "wait": wait}
    if knob.unit not in middles:
        return [knob.loose]
    found = [_within(knob, middles[knob.unit] * share) for share in (0.25, 0.5, 1.0)]
    return list(dict.fromkeys(found))


def following(knob: Knob, kept: Mapping[float, bool]) -> float | None:
    """The setting to try after these, of which some kept the wait: until it lies between two near each other,
    or at an end of the knob. None if there is no need, or if it has been enough."""
    if len(kept) >= MOST_TRIED:
        return None
    strict, loose = _split(knob, kept)
    if strict and loose:
        low, high = strict[-1], loose[0]
        near = max(low, high) / min(low, high) <= CLOSE
        chosen = None if near else _within(knob, math.sqrt(low * high))
    else:
        is_up = bool(strict) == (knob.strict < knob.loose)  # looser while all keep it, else stricter
        last = strict[-1] if strict else loose[0]
        chosen = _within(knob, last * STRIDE if is_up else last / STRIDE)
    return None if chosen in kept else chosen


def _kept(tried: Mapping[float, Report], wait: float) -> dict[float, bool]:
    return {knob: found.p95_wait <= wait for knob, found in tried.items()}


def _split(knob: Knob, kept: Mapping[float, bool]) -> tuple[list[float], list[float]]:
    """Settings up to the loosest that keeps the wait, and those beyond it; each from strict to loose."""
    order = sorted(kept, reverse=knob.strict > knob.loose)
    number = max((place for place, setting in enumerate(order, start=1) if kept[setting]), default=0)
    return order[:number], order[number:]


def _within(knob: Knob, setting: float) -> float:
    """Between the knob's ends, with as few digits as people would write."""
    low, high = sorted((knob.strict, knob.loose))
    return min(max(float(f"{setting:.3g}"), low), high)
