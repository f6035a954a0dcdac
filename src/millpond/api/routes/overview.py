"""Routes that show how things stand: overview, statistics, tasks, the live stream, the audit log."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from millpond.api.context import Seat, caller_of
from millpond.api.job_documents import moment
from millpond.api.json_route import Answer, Route
from millpond.api.log_tail import Tail
from millpond.api.overview import busiest
from millpond.api.routes.session import session_document
from millpond.api.schemas import responses
from millpond.api.schemas.requests import After, Limit, QueueName
from millpond.api.security.audit import address_of
from millpond.api.series import WINDOWS, Series
from millpond.api.snapshot import Snapshot
from millpond.api.stream.broadcaster import message
from millpond.api.stream.sse import Stream
from millpond.job import ENDS
from millpond.node.audit import NAME as AUDIT
from millpond.payload.signature import hints_of
from millpond.rules.http_access import counted_as
from millpond.store.protocol import Store
from millpond.task import Task

router = APIRouter(prefix="/api/v1", route_class=Route, tags=["looking"])
MOST_QUEUES = 30  # with columns of their own in one answer
READ_AT_ONCE = 60  # minutes of statistics


@router.get("/overview", name="overview.show", responses=responses.answer(responses.Overview))
async def overview(desk: Seat) -> Answer:
    """All that the first page shows, in one document."""
    return await desk.answer(dict, await desk.overview())


@router.get("/statistics", name="statistics.show", responses=responses.answer(responses.Statistics))
async def statistics(
    desk: Seat,
    window: Literal["1h", "6h", "24h"] = "1h",
    queue: Annotated[list[QueueName] | None, Query(max_length=MOST_QUEUES)] = None,
) -> Answer:
    """What happened, by minute or by five, as columns for charts: of the queues that are named, else of the
    busiest; `other` are all others together."""
    return await desk.answer(statistics_document, desk.store, await desk.snapshot(), window, queue)


def statistics_document(
    store: Store, snapshot: Snapshot, window: str, asked: list[str] | None
) -> dict[str, Any]:
    """Columns out of the store's statistics, which are read an hour at a time."""
    named = busiest(snapshot, MOST_QUEUES) if asked is None else asked
    until, back = int(snapshot.at // 60), WINDOWS[window].minutes + WINDOWS[window].step
    series = Series(WINDOWS[window], until, named)
    for begin in range(until - back, until + 1, READ_AT_ONCE):
        for minute in store.statistics(begin, min(begin + READ_AT_ONCE, until + 1)):
            if asked is None or minute.queue in asked:
                series.add(minute)
    open_now = {
        counts.queue: sum(number for state, number in counts.states.items() if state not in ENDS)
        for counts in snapshot.counts.queues
        if asked is None or counts.queue in asked
    }
    return {"window": window, **series.document(open_now)}


@router.get("/events", name="events.stream", responses={200: {"content": {"text/event-stream": {}}}})
async def events(
    desk: Seat, request: Request, last_event_id: Annotated[int | None, Query(ge=0, le=2**53)] = None
) -> Response:
    """The live stream: server-sent events. Resumes after the id in Last-Event-ID."""
    said = request.headers.get("last-event-id", "")
    last = int(said) if said.isdecimal() and len(said) < 16 else last_event_id
    caller = caller_of(request.scope)
    client = caller.session or counted_as(address_of(request.scope))
    listener, first = await desk.watch.attach(client, last)
    hello = {
        "at": moment(desk.store.clock.now()),
        "version": desk.version,
        "last_event": desk.watch.told,
        "session": session_document(desk, caller),
    }
    return Stream(desk.watch, listener, [message("hello", hello), *first], caller.expires_at)


@router.get("/events/recent", name="events.list", responses=responses.answer(responses.Events))
async def recent_events(desk: Seat, after: After = 0, limit: Limit = 100) -> Answer:
    """The last events, newest first."""
    await desk.snapshot()
    events = desk.gathering.events
    return await desk.answer(lambda: {"events": events.lines(after)[: -limit - 1 : -1], "last": events.last})


@router.get("/audit", name="audit.list", responses=responses.answer(responses.Audit))
async def audit(desk: Seat, after: After = 0, limit: Limit = 100) -> Answer:
    """Who changed what, newest first."""

    def look() -> dict[str, Any]:
        tail = Tail(desk.store, AUDIT, keep=limit)
        tail.last = after
        tail.read()
        return {"audit": tail.lines()[::-1]}

    return await desk.answer(look)


@router.get("/tasks", name="tasks.list", responses=responses.answer(responses.Tasks))
async def tasks(desk: Seat) -> Answer:
    """The registered tasks, with what they take."""
    known = sorted(desk.app.tasks.values(), key=lambda task: task.name) if desk.options.knows_tasks else []
    return await desk.answer(lambda: {"tasks": [_task(task) for task in known]})


def _task(task: Task[..., Any]) -> dict[str, Any]:
    return {
        "task": task.name,
        "queue": task.queue,
        "kind": "async" if task.is_async else "sync",
        "priority": int(task.priority),
        "timeout": task.timeout,
        "parameters": _parameters(task),
        "recurring": hasattr(task, "cadence"),
    }


def _parameters(task: Task[..., Any]) -> list[dict[str, Any]]:
    try:
        signature, hints = inspect.signature(task.function), hints_of(task.function)
    except (TypeError, ValueError):
        return []
    return [
        {
            "name": name,
            "annotation": _said(hints.get(name, Any)),
            "required": parameter.default is parameter.empty,
            "default": None if parameter.default is parameter.empty else repr(parameter.default)[:100],
        }
        for name, parameter in signature.parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]


def _said(hint: Any) -> str:
    return inspect.formatannotation(hint)[:100]
