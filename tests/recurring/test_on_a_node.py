"""Recurring tasks on real nodes: inside a program, across restarts, and on the way down."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, cast

import pytest

from millpond import App, JobState, Node, OptionError, current_job
from millpond.node.observability.events import BreakerOpened
from millpond.orchestrator.ledger import Entry
from millpond.orchestrator.read_status import Scene, status_of
from millpond.orchestrator.tick_ids import instant_of, tick_id
from millpond.store.protocol import Filter
from tests.node.waiting import until
from tests.stores.acting import AnyStore
from tests.stores.acting import Node as Hand


def nothing() -> None:
    """A task."""


def fails() -> None:
    raise ValueError("no")


def forever() -> None:
    while not current_job().cancelled:
        time.sleep(0.01)


def stubborn() -> None:
    time.sleep(3600)


in_memory = App("memory://")
in_memory.pool("default", workers=2)


@in_memory.recurring(mode="triggered", overlap="queue")
def told(payloads: list[str]) -> list[str]:
    return payloads


@in_memory.recurring(mode="triggered", debounce="0.1s")
def gathered(payloads: list[str]) -> list[str]:
    return payloads


@in_memory.task()
def tells(text: str) -> bool:
    in_memory.orchestrator.trigger(gathered, text)
    in_memory.orchestrator.disable("told")
    in_memory.orchestrator.enable("told")
    return in_memory.orchestrator.trigger(told, text)


def test_a_node_that_died_neither_plans_nor_runs_anything(tmp_path):
    """Its record stays in the store until another node rescues its jobs; there may be none."""
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    task = app.orchestrator.register(nothing, every=60, name="a")
    app.store.record(app.orchestrator.leader_document(), b'{"node": "n1", "term": 1}', 0)
    dead = Hand(cast("AnyStore", app.store), "n1", lease=0.001)
    assert app.orchestrator.trigger(task)
    (job,) = dead.claim()
    dead.start(job)
    found = app.orchestrator.status()
    assert found.leader is None
    assert "No node is running" in found.tasks["a"].why
    jobs = {one.id: one for one in app.store.get([job.id]) if one is not None}
    at = instant_of(job.id, "a") or 0
    for living, state in ((frozenset({"n1"}), "running"), (frozenset(), "waiting")):
        scene = Scene(app.store.clock.now(), {}, jobs, living)
        assert status_of("a", task, Entry(unfinished=(at,)), scene).state == state
    app.store.close()


def test_a_tick_is_known_by_its_task_and_instant():
    job = tick_id("shop.fetch", 1_794_808_175_123_456)
    assert instant_of(job, "shop.fetch") == 1_794_808_175_123_456
    assert instant_of(job, "shop.other") is None


@pytest.mark.parametrize("place", ["memory", "sqlite"])
def test_layer_three_alone_is_an_app_with_a_node_inside_the_program(place, tmp_path):
    app = App("memory://" if place == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=2)
    tick = app.orchestrator.register(nothing, every=0.2)
    app.orchestrator.register(fails, every=0.2, max_failures=2)
    told: list[object] = []
    with Node(app, grace=5) as node:
        node.subscribe(told.append, [BreakerOpened])
        until(lambda: app.orchestrator.status_of(tick).last_success_at)
        until(lambda: told)
        assert app.orchestrator.trigger(tick, wait=20) in (True, False)
        status = app.orchestrator.status()
    (event,) = told
    assert isinstance(event, BreakerOpened)
    assert (event.failures, event.error) == (2, "ValueError: no")
    assert status.state == "running"
    assert status.leader is not None
    assert app.orchestrator.status().leader is None  # given up, so that another begins at once


def test_a_job_may_trigger_and_switch_recurring_tasks_also_in_memory():
    def results(task: Any) -> list[object]:
        handles = in_memory.store.search(Filter(task=task.name)).jobs
        return [json.loads(job.result) for job in handles if job.result is not None]

    with Node(in_memory, grace=5):
        assert tells.enqueue("hello").result(timeout=20) is True
        until(lambda: results(told) == [["hello"]] == results(gathered))
        assert in_memory.orchestrator.status_of(told).enabled


def test_what_was_learnt_survives_the_node(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    for number in range(2):
        app = App(url)
        task = app.orchestrator.register(fails, every=0.2, max_failures=2)
        assert_opens(app, task, number)
        app.store.close()


def assert_opens(app: App, task: Any, number: int) -> None:
    with Node(app, grace=5):
        until(lambda: app.orchestrator.status_of(task).breaker == "open")
        assert app.orchestrator.status_of(task).consecutive_failures == 2, number


@pytest.mark.parametrize("function", [forever, stubborn])
def test_a_continuous_task_ends_when_its_node_drains_and_goes_on_elsewhere(function, tmp_path: Path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=2)
    task = app.orchestrator.register(function, mode="continuous")
    for number in range(2):
        with Node(app, grace=3600):  # it does not wait for that
            until(lambda: app.orchestrator.status_of(task).running)
            assert app.orchestrator.status_of(task).running == 1
            if number == 1 and function is forever:
                app.orchestrator.disable(task)
                until(lambda: not app.orchestrator.status_of(task).running)


def test_a_node_refuses_to_start_with_tasks_that_wait_for_nobody():
    app = App("memory://")
    app.orchestrator.register(nothing, every=60, depends_on=["nobody"])
    with pytest.raises(OptionError, match="'nobody', which is not a recurring task"):
        Node(app).start()


@pytest.mark.parametrize("place", ["memory", "sqlite"])
@pytest.mark.parametrize("has_others", [True, False])
def test_a_task_that_is_registered_while_a_node_runs_runs(place: str, has_others: bool, tmp_path: Path):
    """The planner takes it up, and so do workers that were started before."""
    app = App("memory://" if place == "memory" else f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=(1, 1))
    app.task(name="plain")(nothing)
    if has_others:
        first = app.orchestrator.register(nothing, every=0.2, name="first")
    with Node(app, grace=5):
        assert app.get_task("plain").enqueue().result(timeout=20) is None  # its worker is up
        if has_others:
            until(lambda: app.orchestrator.status_of(first).last_success_at)
        later = app.orchestrator.register(lambda: None, every=0.2, name="later")
        until(lambda: app.orchestrator.status_of(later).last_success_at)
        status = app.orchestrator.status_of(later)
        assert (status.breaker, status.consecutive_failures) == ("closed", 0)


def test_another_cadence_given_while_a_node_runs_is_obeyed(tmp_path: Path):
    """A task that is registered anew takes its own place, also with the planner and the workers."""
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=(1, 1))
    marks = tmp_path / "marks"

    def register(text: str, **options: Any) -> Any:
        def mark() -> None:
            with marks.open("a") as file:
                file.write(f"{text}\n")

        return app.orchestrator.register(mark, name="mark", **options)

    register("old", every=0.2)
    with Node(app, grace=5):
        until(lambda: marks.exists() and "old" in marks.read_text())
        register("new", every=0.3)
        until(lambda: "new" in marks.read_text())


def crashes() -> None:
    os._exit(1)


def test_each_crash_of_a_continuous_task_is_a_start_of_its_own(tmp_path: Path):
    """Else it would be started three times within each tick, and a limit of ten would be one of thirty."""
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=1)
    task = app.orchestrator.register(crashes, mode="continuous")
    with Node(app, grace=5):
        until(lambda: len(app.store.search(Filter(task=task.name, states=(JobState.DEAD,))).jobs) >= 2)
        found = app.store.search(Filter(task=task.name)).jobs
        dead = [job for job in app.store.get([job.id for job in found]) if job and job.state is JobState.DEAD]
        assert [(job.reason, len(job.attempts)) for job in dead] == [("crashed", 1)] * len(dead)
    app.store.close()
