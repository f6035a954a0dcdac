"""Recurring tasks and the bounds of pools, as the overview shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.api.fleet import pool_documents
from millpond.api.job_documents import moment
from millpond.job import MICROSECONDS
from millpond.node.scaling.overrides import read_bounds
from millpond.orchestrator.status import RecurringStatus, TickRecord
from millpond.recurring import RecurringTask
from millpond.shown_text import shown
from millpond.store.protocol import Counts, Store

if TYPE_CHECKING:
    from millpond.app import App


def overrides(store: Store, counts: Counts) -> dict[str, dict[str, Any]]:
    """The bounds that somebody has set, by pool."""
    found = {}
    for pool in pool_documents(counts.nodes):
        bounds = read_bounds(store, pool)
        if bounds is not None:
            found[pool] = {"min": bounds.least, "max": bounds.most}
    return found


def status(app: App) -> list[dict[str, Any]]:
    """Every recurring task of the app, and those that it once had."""
    orchestrator = app.orchestrator
    tasks = orchestrator.tasks
    if not tasks:
        return []
    return [document(row, tasks.get(name)) for name, row in orchestrator.status().tasks.items()]


def document(row: RecurringStatus, task: RecurringTask[..., Any] | None) -> dict[str, Any]:
    """One recurring task; what only the code knows is empty once it is retired."""
    return {
        "name": row.name,
        "task": row.name,
        "queue": None if task is None else task.queue,
        "mode": row.mode,
        "cadence": row.cadence,
        "state": row.state,
        "enabled": row.enabled,
        "disabled_by": _disabled_by(row),
        "breaker": row.breaker,
        "failures": row.consecutive_failures,
        "max_failures": None if task is None else getattr(task.breaker_rule, "max_failures", None),
        "next_at": moment(row.next_due_at),
        "last_at": moment(row.last_run_at),
        "last_success_at": moment(row.last_success_at),
        "last_failure_at": moment(row.last_failure_at),
        "last_error": shown(row.last_error),
        "last_job": row.last_job or None,
        "last_skip": shown(row.last_skip),
        "late": round(row.late, 3),
        "running": row.running,
        "waiting": row.waiting,
        "depends_on": [
            {"name": dependency.on, "mode": dependency.mode}
            for dependency in (() if task is None else task.dependencies)
        ],
        "blocks": [] if task is None else list(task.blocks),
        "slots": {} if task is None else {slot.name: slot.capacity for slot in task.shared},
        "why": row.why,
    }


def _disabled_by(row: RecurringStatus) -> str | None:
    if not row.enabled:
        return "admin"
    return "breaker" if row.breaker == "open" else None


def tick_document(tick: TickRecord) -> dict[str, Any]:
    """A line of a task's history."""
    ran = None if tick.started_at is None or tick.finished_at is None else tick.finished_at - tick.started_at
    return {
        "at": moment(tick.at),
        "state": tick.outcome,
        "reason": shown(tick.reason),
        "job": tick.job,
        "started_at": moment(tick.started_at),
        "finished_at": moment(tick.finished_at),
        "run": None if ran is None else max(0.0, ran / MICROSECONDS),
        "late": tick.late,
        "count": tick.instants,
    }
