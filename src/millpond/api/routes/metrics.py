"""Routes for machines: probes, metrics of the whole fleet, and how many slots it would like to have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from millpond.api.context import Seat
from millpond.api.json_route import Answer, Route
from millpond.api.overview import Document
from millpond.api.schemas import responses
from millpond.node.observability.metrics import CONTENT_TYPE
from millpond.node.scaling.fleet import scale_document, shares_of

if TYPE_CHECKING:
    from prometheus_client import Metric

router = APIRouter(route_class=Route, tags=["machines"])
OK = {"status": "ok"}
MOST_QUEUES = 200  # with series of their own
OTHER = "(other)"  # no queue can be called so


@router.get("/livez", name="live", responses={200: {"description": "It is alive"}})
async def livez() -> Answer:
    """Does the server answer? Asks nobody, and needs no token."""
    return Answer(OK)


@router.get("/readyz", name="ready", responses={503: {"description": "The store does not answer"}})
async def readyz(desk: Seat) -> Answer:
    """Does its store answer? Carries no data, and needs no token."""
    try:
        snapshot = await desk.snapshot()
    except Exception:  # whatever it is, it is not ready
        return Answer({"status": "no", "reason": "store"}, 503)
    return Answer(OK) if snapshot.trouble is None else Answer({"status": "no", "reason": "store"}, 503)


@router.get("/scale", name="scale", responses=responses.answer(responses.Scale))
async def scale(desk: Seat) -> Answer:
    """How many slots the fleet, its pools and its queues would like to have."""
    nodes = (await desk.snapshot()).counts.nodes
    return await desk.answer(lambda: scale_document(shares_of(nodes)))


@router.get("/metrics", name="metrics", responses={200: {"content": {"text/plain": {}}}})
async def metrics(desk: Seat) -> Response:
    """Queues, pools and nodes in the text format of Prometheus."""
    from prometheus_client import generate_latest

    overview = await desk.overview()
    page = await desk.ask(generate_latest, _Families(overview, len(desk.watch)))
    return Response(page, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})


def without_the_many(queues: list[Document]) -> list[Document]:
    """The queues with the most jobs, and all others as one. Each queue is nine series, which are kept for
    years, and any program that enqueues may name as many as it likes."""
    if len(queues) <= MOST_QUEUES:
        return queues
    order = sorted(queues, key=_weight, reverse=True)
    kept, rest = order[:MOST_QUEUES], order[MOST_QUEUES:]
    other = {
        "queue": OTHER,
        "states": {state: sum(queue["states"][state] for queue in rest) for state in rest[0]["states"]},
        "oldest": max(queue["oldest"] or 0 for queue in rest),
        "paused": all(queue["paused"] for queue in rest),
    }
    return [*sorted(kept, key=lambda queue: str(queue["queue"])), other]


def _weight(queue: Document) -> tuple[int, int, str]:
    states = queue["states"]
    waiting = states["queued"] + states["running"] + states["scheduled"] + states["blocked"]
    return (int(waiting), sum(states.values()), queue["queue"])


class _Families:
    """One overview as a collector. Labels are names of queues and pools and fixed words."""

    def __init__(self, overview: Document, streams: int) -> None:
        self.overview = overview
        self.streams = streams

    def collect(self) -> Iterable[Metric]:
        queues, pools, nodes = (self.overview[name] for name in ("queues", "pools", "nodes"))
        queues = without_the_many(queues)
        yield _gauge(
            "millpond_queue_jobs",
            "jobs in a queue by state",
            ("queue", "state"),
            [((q["queue"], state), number) for q in queues for state, number in q["states"].items()],
        )
        yield _of(
            queues, "queue", "millpond_queue_oldest_wait_seconds", "wait of the first in line", "oldest"
        )
        yield _of(queues, "queue", "millpond_queue_paused", "1 while it is paused", "paused")
        yield _gauge(
            "millpond_fleet_workers",
            "workers by pool and state, over all nodes",
            ("pool", "state"),
            [
                ((pool["pool"], state), pool[state])
                for pool in pools
                for state in ("busy", "idle", "starting", "draining")
            ],
        )
        yield _of(pools, "pool", "millpond_fleet_pool_waiting_jobs", "jobs due for a pool", "waiting")
        yield _gauge(
            "millpond_fleet_nodes",
            "nodes by state",
            ("state",),
            [((state,), sum(n["state"] == state for n in nodes)) for state in ("live", "silent", "rescued")],
        )
        yield _gauge("millpond_api_streams", "event streams that are open", (), [((), self.streams)])


def _of(items: list[Document], key: str, name: str, meaning: str, field: str) -> Metric:
    return _gauge(name, meaning, (key,), [((item[key],), float(item[field] or 0)) for item in items])


def _gauge(name: str, meaning: str, labels: tuple[str, ...], values: list[tuple[Any, float]]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, meaning, labels=labels)
    for label, number in values:
        family.add_metric(label, float(number))
    return family
