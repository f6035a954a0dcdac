"""Routes about nodes and workers: who runs what, and words to a node: drain, recycle a worker."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from millpond.api.context import Desk, Seat
from millpond.api.fleet import node_document, state_of, workers_of
from millpond.api.json_route import Answer, Route
from millpond.api.problems import Problem
from millpond.api.schemas import responses
from millpond.api.schemas.requests import Drain, Name, Nothing
from millpond.api.security.audit import note
from millpond.node.commands import send
from millpond.store.protocol import NodeRecord

router = APIRouter(prefix="/api/v1", route_class=Route, tags=["nodes"])
Pid = Annotated[int, Path(ge=1, le=2**31)]


@router.get("/nodes", name="nodes.list", responses=responses.answer(responses.Nodes))
async def list_nodes(desk: Seat) -> Answer:
    """Every node that has a lease or is being rescued, with its workers."""
    nodes = sorted((await desk.snapshot()).counts.nodes, key=lambda node: (node.host, node.id))
    return await desk.answer(lambda: {"nodes": [node_document(node, with_workers=True) for node in nodes]})


@router.get("/nodes/{node}", name="nodes.show", responses=responses.answer(responses.Node))
async def show_node(desk: Seat, node: Name) -> Answer:
    """One node with its workers."""
    return await desk.answer(node_document, await _known(desk, node), with_workers=True)


@router.get("/workers", name="workers.list", responses=responses.answer(responses.Workers))
async def list_workers(desk: Seat) -> Answer:
    """Every worker of every node."""
    nodes = (await desk.snapshot()).counts.nodes
    return await desk.answer(lambda: {"workers": [worker for node in nodes for worker in workers_of(node)]})


@router.post(
    "/nodes/{node}/drain",
    name="node.drain",
    status_code=202,
    responses=responses.answer(responses.Command, 202),
)
async def drain(desk: Seat, request: Request, node: Name, said: Drain) -> Answer:
    """Have a node finish what runs, give back the rest, and stop."""
    facts = {} if said.grace is None else {"grace": said.grace}
    return await _tell(desk, request, node, "drain", **facts)


@router.post(
    "/nodes/{node}/workers/{pid}/recycle",
    name="worker.recycle",
    status_code=202,
    responses=responses.answer(responses.Command, 202),
)
async def recycle(desk: Seat, request: Request, node: Name, pid: Pid, _: Nothing) -> Answer:
    """Replace a worker once what it runs has ended."""
    found = await _known(desk, node)
    if pid not in await desk.ask(lambda: {worker["pid"] for worker in workers_of(found)}):
        raise Problem("unknown-worker", f"node {node} has told of no worker {pid}")
    return await _tell(desk, request, node, "recycle", worker=pid)


async def _tell(desk: Desk, request: Request, node: str, command: str, **facts: Any) -> Answer:
    note(request.scope, node, **facts)
    found = await _known(desk, node)
    if state_of(found) != "live":
        raise Problem("conflict", f"node {node} does not answer: its lease has run out")
    number = await desk.ask(send, desk.store, node, command, **facts)
    return Answer({"node": node, "command": command, **facts, "number": number}, 202)


async def _known(desk: Desk, node: str) -> NodeRecord:
    for found in (await desk.snapshot()).counts.nodes:
        if found.id == node:
            return found
    raise Problem("unknown-node", f"no node {node} has a lease")
