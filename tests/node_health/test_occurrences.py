"""Rare events, counted for the metrics."""

from __future__ import annotations

from millpond.node.observability.counters import Occurrences
from millpond.node.observability.events import NodeEvents, ScaledUp, WorkerGone, WorkerStartFailed, WorkerUp
from millpond.orchestrator.events import TickMissed


def test_events_are_counted_by_kind_and_by_whom_they_are_about():
    events = NodeEvents()
    counted = Occurrences(events)
    for pid in (1, 2):
        events.publish(WorkerUp("mail", pid))
    events.publish(WorkerUp("images", 3))
    events.publish(WorkerGone("mail", 1, "died", None, 9))
    events.publish(WorkerGone("mail", 2, "idle", 0, None))
    events.publish(WorkerStartFailed("images", "no memory", 1, 0.5))
    events.publish(ScaledUp("mail", 1, 2, "mail 1 -> 2: more came"))
    events.publish(TickMissed("tick", 0, "missed", 7))
    assert events.close(10)
    assert counted.number(WorkerUp, "mail") == 2
    assert counted.number(WorkerUp, "images") == 1
    assert counted.number(WorkerUp, "other") == 0
    assert counted.ends("mail") == {"died": 1, "idle": 1}
    assert counted.ends("images") == {}
    assert counted.number(WorkerStartFailed, "images") == 1
    assert counted.number(ScaledUp, "mail") == 1
    assert counted.total(TickMissed) == 7
