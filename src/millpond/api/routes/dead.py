"""Routes about dead letters: listed, grouped by what they died of, replayed or discarded in numbers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from millpond.api.context import Desk, Seat
from millpond.api.job_documents import MESSAGE, cut, moment, name_of
from millpond.api.job_search import Walk, Wanted, cause_of, general, wanted
from millpond.api.json_route import Answer, Route
from millpond.api.routes.bulk import change
from millpond.api.routes.jobs import page
from millpond.api.schemas import responses
from millpond.api.schemas.requests import DeadQuery, Name, QueueName, Selection
from millpond.disclosure import Disclosure
from millpond.job import Job, JobState

router = APIRouter(prefix="/api/v1/dead", route_class=Route, tags=["dead"])
DEAD = (JobState.DEAD,)
LOOKED_AT = 2_000  # dead jobs, the newest, that are grouped


@router.get("", name="dead.list", responses=responses.answer(responses.JobPage))
async def list_dead(desk: Seat, asked: Annotated[DeadQuery, Query()]) -> Answer:
    """Dead jobs, newest first."""
    said = asked.model_dump(exclude={"limit", "cursor"})
    return await page(desk, wanted(states=DEAD, **said), asked.limit, asked.cursor)


@router.get("/causes", name="dead.causes", responses=responses.answer(responses.Causes))
async def causes(desk: Seat, queue: QueueName | None = None, task: Name | None = None) -> Answer:
    """What the newest dead jobs died of, the most frequent first."""
    counted = (await desk.snapshot()).counts.queues
    total = sum(line.states.get(JobState.DEAD, 0) for line in counted if queue in (None, line.queue))
    return await desk.answer(_grouped, desk, wanted(states=DEAD, queue=queue, task=task), total)


def _grouped(desk: Desk, asked: Wanted, total: int) -> dict[str, Any]:
    walk = Walk(desk.store, asked, None)
    groups: dict[str, dict[str, Any]] = {}
    for job in walk.jobs(LOOKED_AT):
        cause = cause_of(job)
        group = groups.get(cause)
        if group is None:
            group = groups[cause] = _group(job, cause)
        group["count"] += 1
        group["first_at"] = moment(job.finished_at) or group["first_at"]
    is_complete = walk.cursor is None
    return {
        "causes": sorted(groups.values(), key=lambda group: -int(group["count"])),
        "scanned": walk.scanned,
        "total": walk.scanned if is_complete else max(total, walk.scanned),
        "complete": is_complete,
    }


def _group(job: Job, cause: str) -> dict[str, Any]:
    last, may = job.attempts[-1] if job.attempts else None, Disclosure()
    task, queue = name_of(job.task), name_of(job.queue)
    return {
        "cause": cause,
        "task": task,
        "queue": queue,
        "reason": cut(job.reason, MESSAGE, may),
        "error": None if last is None else cut(last.error, MESSAGE, may),
        "message": general(job),
        "count": 0,
        "first_at": moment(job.finished_at),
        "last_at": moment(job.finished_at),
        "example": job.id,
        "filter": {"task": task, "queue": queue, "cause": cause},
    }


@router.post("/replay", name="dead.replay", responses=responses.answer(responses.Changed))
async def replay(desk: Seat, request: Request, said: Selection) -> Answer:
    """Run dead jobs again with fresh budgets, up to `limit` at a time."""
    return await change(desk, request, "replay", said, DEAD)


@router.post("/discard", name="dead.discard", responses=responses.answer(responses.Changed))
async def discard(desk: Seat, request: Request, said: Selection) -> Answer:
    """Delete dead jobs for good, up to `limit` at a time."""
    return await change(desk, request, "discard", said, DEAD)
