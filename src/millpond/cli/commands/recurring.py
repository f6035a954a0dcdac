"""`millpond recurring`: how recurring tasks stand, why they wait, what became of them; and steering them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.job_selection import ListByDefault
from millpond.cli.output import facts, instant, moment, number_of, span, table, words
from millpond.cli.recurring_calendar import calendar_document, picture
from millpond.errors import OptionError
from millpond.node.audit import person
from millpond.rules.recurring import exclusion
from millpond.rules.recurring.due_ticks import REASONS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.orchestrator.status import OrchestratorStatus, RecurringStatus, TickRecord
    from millpond.recurring import RecurringTask

INSTANTS = ("last_run_at", "last_success_at", "last_failure_at", "next_due_at")


@click.group("recurring", cls=ListByDefault)
def command() -> None:
    """Look at recurring tasks; trigger, enable, disable them. Without a word more: list."""


@command.command("list")
@shared
@click.pass_obj
def list_tasks(session: Session) -> None:
    """List recurring tasks: when they are due, how they stand."""
    status = session.app.orchestrator.status()
    document = {
        "leader": status.leader,
        "term": status.term,
        "running": status.running,
        "max_concurrent": status.max_concurrent,
        "tasks": [_document(row) for row in status.tasks.values()],
    }
    session.answer(document, lambda: _rows(status))


@command.command("show")
@click.argument("name")
@shared
@click.pass_obj
def show(session: Session, name: str) -> None:
    """Show everything about a recurring task, and why it runs or does not run now."""
    row = session.app.orchestrator.status_of(name)
    task = session.app.orchestrator.tasks.get(row.name)
    session.answer(_document(row), lambda: [facts(_page(row, task))])


@command.command("history")
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many lines.")
@shared
@click.pass_obj
def history(session: Session, name: str, limit: int) -> None:
    """Show what became of the last ticks: how each ended, or why it did not run."""
    lines = session.app.orchestrator.history(name, limit)
    session.answer({"ticks": [_tick(line) for line in lines]}, lambda: _lines(lines))


@command.command("calendar")
@click.option("--hours", type=click.IntRange(1, 168), default=24, show_default=True, help="How far to look.")
@shared
@click.pass_obj
def calendar(session: Session, hours: int) -> None:
    """Draw when recurring tasks are due in the next 24 hours."""
    orchestrator = session.app.orchestrator
    now = orchestrator.now()
    fires = orchestrator.upcoming(hours * 3600)
    document = calendar_document(fires, now, hours)
    session.answer(document, lambda: picture(document))


@command.command("trigger")
@click.argument("name")
@click.option("--payload", help="A JSON value for a triggered task.")
@click.option("--key", default="", help="Triggers with the same key are gathered.")
@click.option("--wait", help="Wait for the end of the run, such as 30s.")
@shared
@click.pass_obj
def trigger(session: Session, name: str, payload: str | None, key: str, wait: str | None) -> None:
    """Run a recurring task now. Exit code 1 if it runs already and may not overlap."""
    accepted = session.app.orchestrator.trigger(name, _value(payload), key=key, wait=wait)
    if accepted:
        session.audit("recurring.trigger", name)
    said = (
        "triggered"
        if accepted
        else "not triggered: it runs already, or is in line, and may not overlap; or its breaker is open"
    )
    session.answer({"name": name, "triggered": accepted}, lambda: [words(f"{name}: {said}")])
    if not accepted:
        raise click.exceptions.Exit(1)


def _value(payload: str | None) -> Any:
    if payload is None:
        return None
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"--payload must be a JSON value, such as 5 or '\"text\"': {error}") from None


@command.command("enable")
@click.argument("name")
@shared
@click.pass_obj
def enable(session: Session, name: str) -> None:
    """Let a recurring task run again; resets its breaker."""
    session.app.orchestrator.enable(name, by=person())
    session.audit("recurring.enable", name)
    _turned(session, name)


@command.command("disable")
@click.argument("name")
@shared
@click.pass_obj
def disable(session: Session, name: str) -> None:
    """Let no more ticks of a recurring task run until it is enabled."""
    session.app.orchestrator.disable(name, by=person())
    session.audit("recurring.disable", name)
    _turned(session, name)


@command.command("forget")
@click.argument("name")
@shared
@click.pass_obj
def forget(session: Session, name: str) -> None:
    """Remember a task no longer that is not in the code any more."""
    session.app.orchestrator.forget(name)
    session.audit("recurring.forget", name)
    session.answer({"name": name, "forgotten": True}, lambda: [words(f"{name}: forgotten")])


def _turned(session: Session, name: str) -> None:
    row = session.app.orchestrator.status_of(name)
    said = "enabled" if row.enabled else "disabled; what runs goes on"
    session.answer(_document(row), lambda: [words(f"{row.name}: {said}")])


# --- documents -------------------------------------------------------------------------------------------
def _document(row: RecurringStatus) -> dict[str, Any]:
    return {name: instant(value) if name in INSTANTS else value for name, value in row._asdict().items()}


def _tick(line: TickRecord) -> dict[str, Any]:
    times = ("at", "started_at", "finished_at")
    return {name: instant(value) if name in times else value for name, value in line._asdict().items()}


# --- for people ------------------------------------------------------------------------------------------
def _rows(status: OrchestratorStatus) -> list[RenderableType]:
    if not status.tasks:
        return [words('no recurring tasks: decorate a function with @app.recurring(every="60s")')]
    rows = [
        (row.name, row.cadence, row.state, row.consecutive_failures or "", moment(row.next_due_at), row.why)
        for row in status.tasks.values()
    ]
    planner = f"planned by {status.leader}, term {status.term}" if status.leader else "nobody plans them now"
    return [
        table(("task", "when", "state", "failures", "next due (UTC)", "why"), rows, most=120),
        words(f"{number_of(len(rows), 'recurring task')}; {planner}"),
    ]


def _page(row: RecurringStatus, task: RecurringTask[..., Any] | None) -> list[tuple[str, object]]:
    said: list[tuple[str, object]] = [
        ("name", row.name),
        ("when", row.cadence),
        ("state", row.state),
        ("why", row.why),
        *(_relations(task) if task is not None else ()),
        ("breaker", f"{row.breaker}, {number_of(row.consecutive_failures, 'failure')} in a row"),
        ("next due", moment(row.next_due_at)),
        ("last run", moment(row.last_run_at)),
        ("last success", moment(row.last_success_at)),
        ("last failure", moment(row.last_failure_at)),
        ("last error", row.last_error),
        ("last skip", REASONS.get(row.last_skip, row.last_skip)),
        ("last job", row.last_job),
        ("late", f"{row.late:.3f} s"),
    ]
    return [(name, value) for name, value in said if value not in ("", None)]


def _relations(task: RecurringTask[..., Any]) -> list[tuple[str, object]]:
    """What it waits for, and what it does not run beside."""
    depends = (f"{dependency.on} ({dependency.mode})" for dependency in task.dependencies)
    held = (f"{slot.name} ({slot.capacity} at a time)" for slot in task.shared)
    others = exclusion.conflicts(task.app.orchestrator.exclusions.pairs).get(task.name, ())
    return [
        ("depends on", ", ".join(depends)),
        ("never beside", ", ".join(others)),
        ("slots", ", ".join(held)),
    ]


def _lines(lines: list[TickRecord]) -> list[RenderableType]:
    if not lines:
        return [words("no ticks yet")]
    rows = [
        (
            moment(line.at),
            line.outcome if line.instants == 1 else f"{line.outcome} x {line.instants}",
            "" if line.late is None else f"{line.late:.2f} s",
            _length(line),
            line.job or "",
            REASONS.get(line.reason, line.reason),
        )
        for line in lines
    ]
    return [table(("due (UTC)", "outcome", "late", "ran for", "job", "reason"), rows, most=100)]


def _length(line: TickRecord) -> str:
    if line.started_at is None or line.finished_at is None:
        return ""
    return span((line.finished_at - line.started_at) / 1_000_000)
