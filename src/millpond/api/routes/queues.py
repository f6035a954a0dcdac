"""Routes about queues: how they stand, and who may claim from them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from millpond.api.context import Desk, Seat
from millpond.api.json_route import Answer, Route
from millpond.api.overview import Document
from millpond.api.problems import Problem
from millpond.api.schemas import responses
from millpond.api.schemas.requests import Nothing, QueueName, Rate
from millpond.api.security.audit import note

router = APIRouter(prefix="/api/v1/queues", route_class=Route, tags=["queues"])


@router.get("", name="queues.list", responses=responses.answer(responses.Queues))
async def list_queues(desk: Seat) -> Answer:
    """Every queue with its counts, ages and rates."""
    overview = await desk.overview()
    return await desk.answer(lambda: {"queues": overview["queues"]})


@router.get("/{queue}", name="queues.show", responses=responses.answer(responses.Queue))
async def show_queue(desk: Seat, queue: QueueName) -> Answer:
    """One queue with the pools that serve it and the tasks that go there."""
    overview = await desk.overview()

    def make() -> Document:
        found = one(overview, queue)
        tasks = sorted(task.name for task in list(desk.app.tasks.values()) if task.queue == queue)
        pools = [pool for pool in overview["pools"] if queue in pool["queues"]]
        return {**found, "pool_items": pools, "tasks": tasks}

    return await desk.answer(make)


@router.post("/{queue}/pause", name="queue.pause", responses=responses.answer(responses.Queue))
async def pause(desk: Seat, request: Request, queue: QueueName, _: Nothing) -> Answer:
    """Stop claiming from a queue. What runs goes on."""
    return await _configure(desk, request, queue, paused=True)


@router.post("/{queue}/resume", name="queue.resume", responses=responses.answer(responses.Queue))
async def resume(desk: Seat, request: Request, queue: QueueName, _: Nothing) -> Answer:
    """Claim from a queue again."""
    return await _configure(desk, request, queue, paused=False)


@router.put("/{queue}/rate", name="queue.rate", responses=responses.answer(responses.Queue))
async def rate(desk: Seat, request: Request, queue: QueueName, said: Rate) -> Answer:
    """Limit how many jobs of a queue start in a second."""
    return await _configure(desk, request, queue, rate=said.rate or 0.0)


async def _configure(desk: Desk, request: Request, queue: str, **settings: Any) -> Answer:
    note(request.scope, queue, **settings)
    one(await desk.overview(), queue)  # a typing error shall not make a queue
    await desk.ask(desk.store.configure, queue=queue, **settings)
    desk.gathering.forget()
    return Answer(one(await desk.overview(), queue))


def one(overview: Document, queue: str) -> Document:
    """The queue of that name, or the Problem that there is none."""
    for found in overview["queues"]:
        if found["queue"] == queue:
            return dict(found)
    raise Problem("unknown-queue", f"no job is in a queue {queue!r}, and no node serves one")
