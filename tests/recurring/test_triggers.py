"""Triggers that were accepted lead to a run, or are told where people look: at once, by key, or gathered."""

from __future__ import annotations

from typing import Any

import pytest

from millpond import App
from millpond.orchestrator import triggers
from millpond.orchestrator.events import Happening, TriggersDropped
from tests.recurring.planners import align, plan, planner_of
from tests.recurring.test_named_slots import Fleet
from tests.recurring.test_planning import after

ran: list[object] = []


@pytest.fixture
def app() -> App:
    ran.clear()
    return App("memory://")


def index_of(app: App, **options: Any) -> Any:
    """A task that notes its payloads, and fails when told to."""

    @app.recurring(mode="triggered", name="index", **options)
    def index(payloads: list[int]) -> None:
        if payloads == [-1]:
            raise ValueError("no")
        ran.append(payloads)

    return index


@pytest.mark.parametrize(
    ("options", "key"), [({}, ""), ({}, "k"), ({"debounce": 1}, "")], ids=["at once", "by key", "gathered"]
)
def test_a_trigger_runs_a_disabled_task_however_it_is_triggered(app, options, key):
    index = index_of(app, **options)
    with app.testing() as jobs:
        jobs.run_due()
        app.orchestrator.disable(index)
        assert app.orchestrator.trigger(index, 5, key=key)
        after(jobs, 2)
    assert ran == [[5]]


def test_a_burst_of_more_payloads_than_a_run_takes_is_several_runs(app):
    index = index_of(app, debounce=5)
    with app.testing() as jobs:
        jobs.run_due()
        for number in range(240):
            assert app.orchestrator.trigger(index, number)
        after(jobs, 6)
    assert [len(payloads) for payloads in ran if isinstance(payloads, list)] == [100, 100, 40]
    assert [number for payloads in ran if isinstance(payloads, list) for number in payloads] == [*range(240)]


def test_two_keys_of_a_task_that_may_not_overlap_run_one_after_the_other(app):
    index = index_of(app)
    with app.testing() as jobs:
        jobs.run_due()
        for key, number in (("a", 1), ("b", 2)):
            assert app.orchestrator.trigger(index, number, key=key)
        after(jobs, 1)
    assert sorted(map(str, ran)) == ["[1]", "[2]"]


def test_gathered_triggers_that_meet_a_run_wait_for_its_end(store, monkeypatch):
    """A run that another process has begun, and has not made known yet."""
    app = App(store)
    index = index_of(app)
    align(store)
    planner, fleet = planner_of(app), Fleet(store)
    with monkeypatch.context() as unheard:
        unheard.setattr(app.orchestrator, "_say", lambda _: None)
        assert app.orchestrator.trigger(index, 1)
    assert app.orchestrator.trigger(index, 2, key="k")
    plan(store, planner, after=1)
    (first,) = fleet.claim()
    plan(store, planner, after=1)
    assert fleet.claim() == []
    fleet.end(first)
    plan(store, planner, after=1)
    plan(store, planner, after=1)
    (second,) = fleet.claim()
    assert index.signature.arguments(second.payload) == {"payloads": [2]}
    fleet.end(second)
    plan(store, planner, after=1)
    assert fleet.claim() == [], "once"


def test_what_a_broken_task_would_not_run_is_refused_at_once_or_told(app):
    index = index_of(app, debounce=5, max_failures=1)
    with app.testing() as jobs:
        told: list[Happening] = []
        jobs._planner._tell = told.append
        jobs.run_due()
        app.orchestrator.trigger(index, -1)
        after(jobs, 5)
        jobs.run_due()
        assert app.orchestrator.status_of(index).breaker == "open"
        assert not app.orchestrator.trigger(index, 1)
        app.orchestrator.enable(index)
        jobs.run_due()
        for number in (-1, 2, 3):
            assert app.orchestrator.trigger(index, number, key=str(number))
            after(jobs, 4 if number < 0 else 0.9)
        jobs.run_due()
        after(jobs, 9)
        assert ran == []
        dropped = [one for one in told if isinstance(one, TriggersDropped)]
        assert dropped == [TriggersDropped("index", 1, "its breaker was open")] * 2
        assert app.orchestrator.status_of(index).last_skip == "its breaker was open; triggers dropped: 1"


def test_triggers_that_left_the_log_before_anybody_read_them_are_told(memory, monkeypatch):
    monkeypatch.setattr(triggers, "KEEP", 5)
    app = App(memory)
    index = index_of(app, debounce=5)
    told: list[Happening] = []
    align(memory)
    planner = planner_of(app, tell=told.append)
    app.orchestrator.trigger(index, 0)
    plan(memory, planner)
    assert told == []
    for number in range(20):
        app.orchestrator.trigger(index, number)
    plan(memory, planner)
    assert told == [TriggersDropped(triggers.ANY, 15, "more than 5 came before they were read")]


def test_no_more_triggers_are_kept_than_a_planner_can_hold_and_that_is_told(memory, monkeypatch):
    monkeypatch.setattr(triggers, "MOST", 3)
    app = App(memory)
    index = index_of(app, debounce=5)
    told: list[Happening] = []
    align(memory)
    planner, fleet = planner_of(app, tell=told.append), Fleet(memory)
    for number in range(5):
        app.orchestrator.trigger(index, number)
    plan(memory, planner)
    (dropped,) = told
    assert isinstance(dropped, TriggersDropped)
    assert dropped[:2] == ("index", 2)
    assert app.orchestrator.status_of(index).last_skip.endswith("triggers dropped: 2")
    plan(memory, planner, after=5)
    (job,) = fleet.claim()
    assert index.signature.arguments(job.payload) == {"payloads": [0, 1, 2]}
    app.orchestrator.trigger(index, 5)
    fleet.end(job)
    plan(memory, planner)
    plan(memory, planner, after=5)
    assert len(fleet.claim()) == 1, "there is room again"
