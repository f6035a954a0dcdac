"""Recurring tasks on real nodes: inside a program, across restarts, and on the way down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from millpond import App, Node, OptionError, current_job
from millpond.node.events import BreakerOpened
from millpond.orchestrator.tick_ids import instant_of, tick_id
from millpond.store.protocol import Filter
from tests.node.waiting import until


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
