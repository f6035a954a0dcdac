"""Looks at a node's reports one after the other and publishes what begins and ends to be worrying.

What is worrying, and for how long it must be so, is decided in `rules/node/health.py`.
"""

from __future__ import annotations

from millpond.node.observability.events import (
    NodeEvent,
    NodeEvents,
    PoolHealthy,
    PoolUnhealthy,
    QueueBackingUp,
    QueueCaughtUp,
    StoreBack,
    StoreLost,
    WaitInBounds,
    WaitTooLong,
)
from millpond.node.observability.report import NodeReport
from millpond.rules.node.health import Change, Watch, concerns, observe


class Lookout:
    """Remembers what it has told. Used by one thread."""

    def __init__(self, events: NodeEvents) -> None:
        self._events = events
        self._watch: Watch = {}

    def look(self, report: NodeReport, now: float) -> None:
        """Publish what changed since the last look; `now` is a monotonic clock in seconds."""
        self._watch, changes = observe(self._watch, concerns(report), now)
        for change in changes:
            self._events.publish(_event(change))


def _event(change: Change) -> NodeEvent:
    concern = change.concern
    match concern.kind, change.began:
        case "store", True:
            return StoreLost(concern.sentence)
        case "store", False:
            return StoreBack(change.lasted)
        case "backing_up", True:
            return QueueBackingUp(concern.pool, int(concern.amount), concern.sentence)
        case "backing_up", False:
            return QueueCaughtUp(concern.pool, change.lasted)
        case "wait", True:
            return WaitTooLong(concern.pool, concern.amount, concern.limit)
        case "wait", False:
            return WaitInBounds(concern.pool, change.lasted)
        case _, True:
            return PoolUnhealthy(concern.pool, concern.sentence)
    return PoolHealthy(concern.pool, change.lasted)
