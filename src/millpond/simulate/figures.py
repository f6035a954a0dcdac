"""The figures of a simulation: waits, worker-hours, the ratio to the bound, what starting cost."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from millpond.simulate import bounds
from millpond.simulate.records import UNBOUNDED, Run, Setting, Usage, Workload


class Bound(NamedTuple):
    """What a clairvoyant operator would have spent, in seconds."""

    work: float
    zero_wait: float


class Report(NamedTuple):
    """One policy on one workload. Waits are seconds."""

    policy: str
    workload: str
    jobs: int
    max_wait: float
    p50_wait: float
    p95_wait: float
    p99_wait: float
    worst_wait: float
    worker_hours: float
    bound_hours: float
    ratio_to_bound: float
    work_hours: float
    utilisation: float
    starts: int
    starts_share: float  # of the worker-hours
    reversals: int
    reversals_per_hour: float
    slo_miss_minutes: int  # minutes in which more than 5 of 100 jobs began too late
    most_workers: int
    work_lost: float
    decisions: int
    held: int
    usage: Usage | None = None  # with a budget

    def document(self) -> dict[str, Any]:
        """For JSON."""
        figures = {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in self._asdict().items()
            if name != "usage"
        }
        return figures if self.usage is None else {**figures, "resources": _document(self.usage)}


def _document(usage: Usage) -> dict[str, Any]:
    budget = usage.budget
    has = {"memory": budget.memory, "cpu": budget.cpu, **budget.tokens}
    return {
        "budget": {name: number for name, number in has.items() if number < UNBOUNDED},
        "peak": {name: round(most, 4) for name, most in usage.peak.items()},
        "waited": {name: round(seconds, 4) for name, seconds in usage.waited.items()},
        "binding": usage.binding,
    }


def bound(workload: Workload, start_cost: float) -> Bound:
    """The bounds of a workload."""
    return Bound(bounds.work(workload), bounds.zero_wait(workload, start_cost))


def report(policy: str, run: Run, setting: Setting, bound: Bound) -> Report:
    """The figures of a run."""
    waits = array("d", sorted(run.waits))
    hours = run.last_end / 3600
    cost = setting.limits.start_cost
    begun = _begun(run)
    return Report(
        policy=policy,
        workload=run.workload,
        jobs=len(waits),
        max_wait=setting.max_wait,
        p50_wait=quantile(waits, 0.5),
        p95_wait=quantile(waits, 0.95),
        p99_wait=quantile(waits, 0.99),
        worst_wait=waits[-1] if waits else 0.0,
        worker_hours=run.worker_seconds / 3600,
        bound_hours=bound.zero_wait / 3600,
        ratio_to_bound=run.worker_seconds / bound.zero_wait if bound.zero_wait else 1.0,
        work_hours=bound.work / 3600,
        utilisation=run.busy_seconds / run.worker_seconds if run.worker_seconds else 0.0,
        starts=run.starts,
        starts_share=run.starts * cost / run.worker_seconds if run.worker_seconds else 0.0,
        reversals=run.reversals,
        reversals_per_hour=run.reversals / hours if hours else 0.0,
        slo_miss_minutes=sum(
            minute.late > 0.05 * max(1, count) for minute, count in zip(run.minutes, begun, strict=True)
        ),
        most_workers=run.most_workers,
        work_lost=run.lost_seconds,
        decisions=run.decisions,
        held=run.held,
        usage=run.usage,
    )


def _begun(run: Run) -> list[int]:
    """Jobs that began in each minute: those that arrived, less those that joined the line."""
    before, begun = 0, []
    for minute in run.minutes:
        begun.append(minute.arrivals + before - minute.waiting)
        before = minute.waiting
    return begun


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that this share of the ordered ones does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
