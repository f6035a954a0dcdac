"""Routes about pools: their sizes, what was decided about them, and the bounds that somebody sets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from millpond.api.context import Desk, Seat
from millpond.api.fleet import workers_of
from millpond.api.json_route import Answer, Route
from millpond.api.overview import Document
from millpond.api.problems import Problem
from millpond.api.schemas import responses
from millpond.api.schemas.requests import After, Limit, Name, Nothing, QueueName
from millpond.api.schemas.requests import Bounds as Wished
from millpond.api.security.audit import note
from millpond.node.scaling.overrides import Bounds, checked, write_bounds

router = APIRouter(prefix="/api/v1", route_class=Route, tags=["pools"])
SHOWN = 50  # decisions on the page of a pool


@router.get("/pools", name="pools.list", responses=responses.answer(responses.Pools))
async def list_pools(desk: Seat) -> Answer:
    """Every pool of the live nodes, added up over them."""
    overview = await desk.overview()
    return await desk.answer(lambda: {"pools": overview["pools"]})


@router.get("/pools/{pool}", name="pools.show", responses=responses.answer(responses.Pool))
async def show_pool(desk: Seat, pool: QueueName) -> Answer:
    """One pool with its workers and what was decided about it."""
    snapshot = await desk.snapshot()
    overview = await desk.overview_of(snapshot)

    def make() -> Document:
        found = one(overview, pool)
        workers = [row for node in snapshot.counts.nodes for row in workers_of(node) if row["pool"] == pool]
        decisions = [line for line in reversed(snapshot.decisions) if line["pool"] == pool]
        return {**found, "worker_items": workers, "decisions": decisions[:SHOWN]}

    return await desk.answer(make)


@router.put("/pools/{pool}/workers", name="pool.resize", responses=responses.answer(responses.Pool))
async def resize(desk: Seat, request: Request, pool: QueueName, said: Wished) -> Answer:
    """How many workers a pool may have on each node, whatever the app says."""
    return await _set(desk, request, pool, checked(pool, (said.min, said.max)))


@router.delete("/pools/{pool}/workers", name="pool.reset", responses=responses.answer(responses.Pool))
async def reset(desk: Seat, request: Request, pool: QueueName, _: Nothing) -> Answer:
    """Back to what the app says."""
    return await _set(desk, request, pool, None)


async def _set(desk: Desk, request: Request, pool: str, bounds: Bounds | None) -> Answer:
    facts: dict[str, Any] = {} if bounds is None else {"min": bounds.least, "max": bounds.most}
    note(request.scope, pool, **facts)
    one(await desk.overview(), pool)
    await desk.ask(write_bounds, desk.store, pool, bounds)
    desk.gathering.forget()
    return Answer(one(await desk.overview(), pool))


def one(overview: Document, pool: str) -> Document:
    """The pool of that name, or the Problem that there is none."""
    for found in overview["pools"]:
        if found["pool"] == pool:
            return dict(found)
    raise Problem("unknown-pool", f"no live node has a pool {pool!r}")


@router.get("/decisions", name="decisions.list", responses=responses.answer(responses.Decisions))
async def decisions(
    desk: Seat,
    pool: Annotated[Name | None, Query()] = None,
    after: After = 0,
    limit: Limit = 100,
) -> Answer:
    """What was decided about the size of pools and why, newest first."""
    snapshot = await desk.snapshot()

    def make() -> Document:
        lines = [
            line
            for line in reversed(snapshot.decisions)
            if line["number"] > after and (pool is None or line["pool"] == pool)
        ]
        last = snapshot.decisions[-1]["number"] if snapshot.decisions else 0
        return {"decisions": lines[:limit], "last": last}

    return await desk.answer(make)
