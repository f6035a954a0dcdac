"""max_concurrent: no more ticks than that at a time, and each gets its turn, whatever its priority."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from millpond import App, Node, Priority
from millpond.rules.recurring import exclusion
from tests.node.waiting import until
from tests.recurring.planners import align, nothing, plan, planner_of
from tests.recurring.test_named_slots import Fleet

Store = Any


def busy() -> None:
    """Longer than the others' period."""
    time.sleep(0.3)


def whys(app: App) -> list[str]:
    """What all tasks wait for."""
    return [task.why for task in app.orchestrator.status().tasks.values()]


def crowd(store: Store) -> App:
    """One place, two tasks of a high priority that fill it, and one of a low priority."""
    app = App(store)
    app.orchestrator.max_concurrent = 1
    for name in ("first", "second"):
        app.orchestrator.register(nothing, name=name, every=10, priority=Priority.HIGH)
    app.orchestrator.register(nothing, name="last", every=10, priority=Priority.LOW)
    return app


def test_a_low_priority_gets_its_turn_after_a_minute_for_each_level_above_it(store):
    app = crowd(store)
    align(store)
    planner, fleet = planner_of(app), Fleet(store)
    ran: list[str] = []
    for _ in range(16):
        plan(store, planner, after=10)
        (job,) = fleet.claim()
        ran.append(job.task)
        fleet.end(job)
    assert ran[:10] == ["first", "second"] * 5, "it waits for its turn, ten seconds for each run"
    assert ran.index("last") in (11, 12, 13), "two levels above it are two minutes"


def test_who_waits_says_for_what(memory):
    app = crowd(memory)
    align(memory)
    plan(memory, planner_of(app), after=10)
    assert app.orchestrator.status_of("last").why == (
        "Its tick waits: max_concurrent is 1, and 'first' runs."
    )


def test_ticks_of_a_queue_that_is_paused_take_no_places(store):
    """Else two of them would stop every recurring task of the app."""
    app = App(store)
    app.orchestrator.max_concurrent = 1
    app.orchestrator.register(nothing, name="a", every=60, queue="paused")
    app.orchestrator.register(nothing, name="b", every=60)
    store.configure(queue="paused", paused=True)
    align(store)
    planner, fleet = planner_of(app), Fleet(store)
    plan(store, planner, after=60)
    assert fleet.claim() == []
    plan(store, planner, after=6)
    assert [job.task for job in fleet.claim()] == ["b"]


def test_a_low_priority_gets_its_turn_on_a_node(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(exclusion, "AGEING", 0.5)  # a minute, sooner
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=3)
    for name in ("first", "second", "third"):
        app.orchestrator.register(busy, name=name, every=0.2, priority=Priority.HIGH)
    app.orchestrator.register(busy, name="last", every=0.2, priority=Priority.LOW, enabled=False)
    with Node(app, grace=5):
        until(lambda: app.orchestrator.status_of("first").last_success_at)
        app.orchestrator.max_concurrent = 1  # a planner that runs takes it up
        until(lambda: "max_concurrent is 1, and '" in "".join(whys(app)))
        app.orchestrator.enable("last")
        until(lambda: app.orchestrator.status_of("last").last_success_at)
    app.store.close()
