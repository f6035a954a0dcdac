"""Planners and candidates for these tests, several of them on one store, at a time that the test moves."""

from __future__ import annotations

from typing import Any

from millpond import App
from millpond.job import MICROSECONDS
from millpond.orchestrator.leader import Leadership
from millpond.orchestrator.planner import Planner
from millpond.orchestrator.tick_ids import tick_id
from millpond.store.protocol import Filter

Store = Any  # with the clock that only tests have


def nothing() -> None:
    """A task."""


def app_on(store: Store, **options: Any) -> App:
    """An app with one task, `a`, due every minute unless told otherwise."""
    app = App(store)
    app.orchestrator.register(nothing, name="a", **({"every": 60} | options))
    return app


def planner_of(app: App, **options: Any) -> Planner:
    """A planner that has taken up its work."""
    orchestrator = app.orchestrator
    planner = Planner(app.store, app.name, dict(orchestrator.tasks), orchestrator.exclusions, **options)
    planner.begin(0)
    return planner


def align(store: Store, seconds: int = 60) -> int:
    """Move to a second after a whole number of so many; returns that number's instant."""
    store.counts()
    store.clock.freeze()
    store.clock.shift += -store.clock.now() % (seconds * MICROSECONDS) + MICROSECONDS
    return int(store.clock.now()) - MICROSECONDS


def plan(store: Store, *planners: Planner, after: float = 0.0) -> None:
    """Let time pass; then each has its round."""
    store.clock.shift += round(after * MICROSECONDS)
    for planner in planners:
        planner.hurry()
        planner.round(store.clock.now())


def jobs(store: Store) -> list[str]:
    """The ids of all jobs, oldest first."""
    return sorted(job.id for job in store.search(Filter(), 1000).jobs)


def ids(*instants: int) -> list[str]:
    """The ids of the ticks of `a` at these instants."""
    return sorted(tick_id("a", at) for at in instants)


def candidate(store: Store, name: str, lease: float = 10.0, **options: Any) -> Leadership:
    """One that would like to lead."""
    return Leadership(store, "leader", lambda: name, lease=lease, **options)
