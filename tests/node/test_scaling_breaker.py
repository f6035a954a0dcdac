"""Work that may not run attracts no workers: ticks behind an open breaker, and those of a paused queue."""

from __future__ import annotations

from typing import Any

import pytest

from millpond import App, Node
from millpond.node.observability.events import ScaledUp
from tests.node.waiting import until

pytestmark = pytest.mark.timeout(60)


def fails() -> None:
    raise ValueError("no")


def nothing() -> None:
    """A task."""


def workers(node: Node) -> int:
    (pool,) = node.report().pools
    return len(pool.workers)


def idle_decisions(node: Node, number: int = 3) -> list[Any]:
    """The next decisions about the pool, of which none wants anybody."""
    found: list[Any] = [node._scaling.decision_of("default")]

    def look() -> bool:
        last = node._scaling.decision_of("default")
        if last is not found[-1]:
            found.append(last)
        return len(found) > number

    until(look, f"{number} decisions")
    return [(decision.wanted, decision.demand) for decision in found[1:]]


def test_ticks_behind_an_open_breaker_attract_no_workers(local: App, start: Any) -> None:
    local.pool("default", workers=(0, 3), max_wait="0.1s")
    task = local.orchestrator.register(fails, every=0.1, max_failures=2)
    node = start(local)
    until(lambda: local.orchestrator.status_of(task).breaker == "open", "the breaker to open")
    until(lambda: workers(node) == 0, "the workers to leave")
    started: list[object] = []
    node.subscribe(started.append, [ScaledUp])
    assert set(idle_decisions(node)) == {(0, 0)}  # meanwhile many ticks were due
    assert not started
    assert local.orchestrator.status_of(task).state == "open"
    local.orchestrator.enable(task)
    until(lambda: started, "a worker for the tick that may run again")


def test_a_tick_in_a_paused_queue_attracts_no_workers_until_it_goes_on(local: App, start: Any) -> None:
    local.pool("default", workers=(0, 3), max_wait="0.1s")
    local.store.configure(queue="default", paused=True)
    task = local.orchestrator.register(nothing, every=0.1)
    node = start(local)
    until(lambda: local.orchestrator.status_of(task).waiting, "a tick in line")
    assert set(idle_decisions(node)) == {(0, 0)}
    assert workers(node) == 0
    assert not local.orchestrator.status_of(task).last_run_at
    local.store.configure(queue="default", paused=False)
    until(lambda: local.orchestrator.status_of(task).last_success_at, "the tick to run")
