"""Connects a node's work to those who watch it: what ended becomes an event, and a span when traced.

Both are told only once the store has taken the end. Costs one look-up a job where nobody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond.job import Outcome, Settlement
from millpond.node import tracing
from millpond.node.events import JobCompleted, of_pool

if TYPE_CHECKING:
    from millpond.events import Event
    from millpond.node.monitoring import Monitoring
    from millpond.node.settle import End
    from millpond.node.state import NodeState


def connect(state: NodeState, monitoring: Monitoring) -> None:
    """Have the claim loop's news reach events and spans."""
    jobs = monitoring.jobs
    traced: dict[tuple[str, int], tuple[End, Outcome]] = {}

    def told(end: End, outcome: Outcome, said: Settlement, worker: int | None) -> None:
        jobs.note(end.task.job, outcome, said, worker)
        if end.task.job.options.trace and tracing.is_on():
            traced[said.id, said.token] = (end, outcome)

    def accepted(said: Settlement, is_valid: bool) -> None:
        jobs.accepted(said, is_valid)
        if traced:
            found = traced.pop((said.id, said.token), None)
            if found is not None and is_valid:
                _settled(*found, state)

    def forget() -> None:
        jobs.forget()
        traced.clear()

    state.line.told, state.accepted, state.forget_news = told, accepted, forget
    state.line.listens = lambda job: bool(job.options.trace) or monitoring.events.wanted(JobCompleted)
    state.has_news = lambda: bool(traced) or jobs.waits()


def _settled(end: End, outcome: Outcome, state: NodeState) -> None:
    job = end.task.job
    tracing.settled(
        job.options.trace,
        outcome,
        job=job.id,
        task=job.task,
        queue=job.queue,
        attempt=job.attempt + 1,
        times=(end.begun_at, end.ended_at, state.store_now() - state.offset()),
    )


def pool_news(monitoring: Monitoring, pool: str) -> Callable[[Event], object]:
    """What a pool tells, as an event of the node."""
    return lambda event: monitoring.events.publish(of_pool(pool, event))
