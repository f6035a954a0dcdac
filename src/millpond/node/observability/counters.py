"""Counts rare events for the metrics: workers that come and go, sizes that change, ticks that are missed."""

from __future__ import annotations

from collections import Counter

from millpond.node.observability.events import (
    NodeEvent,
    NodeEvents,
    ScaledDown,
    ScaledUp,
    WorkerGone,
    WorkerStartFailed,
    WorkerUp,
)
from millpond.orchestrator.events import BreakerOpened, TickLate, TickMissed

KINDS = (WorkerUp, WorkerGone, WorkerStartFailed, ScaledUp, ScaledDown, BreakerOpened, TickMissed, TickLate)
MOST = 10_000  # things counted apart; every one is the name of a pool or of a task in the code


class Occurrences:
    """What happened on a node so far, by kind and by whom it is about. Counted by the events' thread."""

    def __init__(self, events: NodeEvents) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._ends: Counter[tuple[str, str]] = Counter()  # of workers, by pool and reason
        events.subscribe(self._count, KINDS)

    def _count(self, event: NodeEvent) -> None:
        about = str(getattr(event, "pool", None) or getattr(event, "task", ""))
        key = (type(event).__name__, about)
        if key in self._counts or len(self._counts) < MOST:
            self._counts[key] += getattr(event, "instants", 1)
        if isinstance(event, WorkerGone):
            self._ends[about, event.reason] += 1

    def number(self, kind: type, about: str) -> int:
        """How often this happened to a pool or a task."""
        return self._counts[kind.__name__, about]

    def total(self, kind: type) -> int:
        """How often it happened to any."""
        return sum(number for (name, _), number in list(self._counts.items()) if name == kind.__name__)

    def ends(self, pool: str) -> dict[str, int]:
        """Why workers of a pool ended, and how many."""
        return {reason: number for (name, reason), number in list(self._ends.items()) if name == pool}
