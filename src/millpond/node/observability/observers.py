"""Connects a node's work to those who watch it: what ended becomes an event, and a span when traced.

Both are told only once the store has taken the end. Costs one look-up a job where nobody listens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from millpond import tracing
from millpond.events import WorkerStarted
from millpond.job import Outcome, Settlement
from millpond.node.observability.events import JobCompleted, of_pool
from millpond.system.boot_clock import microseconds

if TYPE_CHECKING:
    from millpond.events import Event
    from millpond.node.jobs.settle_queue import End
    from millpond.node.observability.monitor import Monitoring
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
                _settled(*found)

    def forget() -> None:
        jobs.forget()
        traced.clear()

    state.line.told, state.accepted, state.forget_news = told, accepted, forget
    state.line.listens = lambda: monitoring.events.wanted(JobCompleted)
    state.has_news = lambda: bool(traced) or jobs.waits()


def _settled(end: End, outcome: Outcome) -> None:
    job = end.task.job
    now = time.time_ns() // 1000
    since_1970 = now - microseconds()  # at the start of the machine
    tracing.settled(
        job.options.trace,
        outcome,
        job=job.id,
        task=job.task,
        queue=job.queue,
        attempt=job.attempt + 1,
        times=(
            None if end.begun_at is None else end.begun_at + since_1970,
            end.ended_at + since_1970,
            now,
        ),
    )


def pool_news(monitoring: Monitoring, pool: str, grown: Callable[[], object]) -> Callable[[Event], object]:
    """What a pool tells, as an event of the node. A worker that is up is told to the claim loop, too: it
    would stand idle until the next look, and may have left by then."""

    def told(event: Event) -> None:
        if type(event) is WorkerStarted:
            grown()
        monitoring.events.publish(of_pool(pool, event))

    return told
