"""Routes about recurring tasks: how they stand, their history, and the switches."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from millpond.api.context import Desk, Seat, caller_of
from millpond.api.json_route import Answer, Route
from millpond.api.problems import Problem
from millpond.api.recurring_documents import document, status, tick_document
from millpond.api.schemas import responses
from millpond.api.schemas.requests import Limit, Name, Nothing
from millpond.api.security.audit import note
from millpond.errors import UnknownTask
from millpond.orchestrator.orchestrator import Orchestrator

router = APIRouter(prefix="/api/v1/recurring", route_class=Route, tags=["recurring"])
SHOWN = 20  # lines of history on the page of a task


@router.get("", name="recurring.list", responses=responses.answer(responses.RecurringList))
async def list_recurring(desk: Seat) -> Answer:
    """Every recurring task: when it is due, how its last ticks went, what it waits for."""
    if not desk.options.knows_tasks:
        return Answer({"recurring": [], "enabled": False})
    return await desk.answer(lambda: {"recurring": status(desk.app), "enabled": True})


@router.get("/{name}", name="recurring.show", responses=responses.answer(responses.Recurring))
async def show(desk: Seat, name: Name) -> Answer:
    """One recurring task with its last ticks."""

    def look() -> dict[str, Any]:
        found = _known(desk, name)
        lines = [tick_document(tick) for tick in desk.app.orchestrator.history(name, SHOWN)]
        return {**found, "history": lines}

    return await desk.answer(look)


@router.get("/{name}/history", name="recurring.history", responses=responses.answer(responses.History))
async def history(desk: Seat, name: Name, limit: Limit = 50) -> Answer:
    """What came of its last ticks, newest first."""

    def look() -> dict[str, Any]:
        _known(desk, name)
        return {"history": [tick_document(tick) for tick in desk.app.orchestrator.history(name, limit)]}

    return await desk.answer(look)


@router.post("/{name}/trigger", name="recurring.trigger", responses=responses.answer(responses.Triggered))
async def trigger(desk: Seat, request: Request, name: Name, _: Nothing) -> Answer:
    """Run a tick now; false if it runs already and may not overlap."""
    note(request.scope, name)
    await desk.ask(_known, desk, name)
    return Answer({"name": name, "triggered": await desk.ask(_orchestrator(desk).trigger, name)})


@router.post("/{name}/enable", name="recurring.enable", responses=responses.answer(responses.Recurring))
async def enable(desk: Seat, request: Request, name: Name, _: Nothing) -> Answer:
    """Let a task run again: a closed breaker, no failures counted."""
    return await _turn(desk, request, name, is_on=True)


@router.post("/{name}/disable", name="recurring.disable", responses=responses.answer(responses.Recurring))
async def disable(desk: Seat, request: Request, name: Name, _: Nothing) -> Answer:
    """Let no more ticks run until it is enabled; what runs goes on."""
    return await _turn(desk, request, name, is_on=False)


async def _turn(desk: Desk, request: Request, name: str, *, is_on: bool) -> Answer:
    note(request.scope, name)
    by = caller_of(request.scope).scope

    def turn() -> dict[str, Any]:
        _known(desk, name)
        orchestrator = _orchestrator(desk)
        (orchestrator.enable if is_on else orchestrator.disable)(name, by=by)
        return _known(desk, name)

    return await desk.answer(turn)


def _orchestrator(desk: Desk) -> Orchestrator:
    if not desk.options.knows_tasks:
        raise Problem("no-app", "recurring tasks are known only to a server that was started with their app")
    return desk.app.orchestrator


def _known(desk: Desk, name: str) -> dict[str, Any]:
    """The task of that name, or the Problem that there is none."""
    orchestrator = _orchestrator(desk)
    try:
        row = orchestrator.status_of(name)
    except UnknownTask as error:
        raise Problem("unknown-recurring", str(error)) from None
    return document(row, orchestrator.tasks.get(row.name))
