"""Routes about jobs: list, show, enqueue, cancel, retry, discard; one by one or many by filter."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from millpond.api.context import Desk, Seat
from millpond.api.job_documents import job_document, job_row
from millpond.api.job_search import Wanted, find, wanted
from millpond.api.json_route import Answer, Route
from millpond.api.problems import Problem
from millpond.api.routes.bulk import change
from millpond.api.schemas import responses
from millpond.api.schemas.requests import Bulk, Enqueue, JobId, JobQuery, Nothing
from millpond.api.security.audit import note
from millpond.handle import shortages
from millpond.job import ENDS, Job, JobState
from millpond.options import check_id
from millpond.rules.jobs.explain import why
from millpond.rules.jobs.known_tasks import live
from millpond.store.protocol import Filter, Retention

router = APIRouter(prefix="/api/v1", route_class=Route, tags=["jobs"])


@router.get("/jobs", name="jobs.list", responses=responses.answer(responses.JobPage))
async def list_jobs(desk: Seat, asked: Annotated[JobQuery, Query()]) -> Answer:
    """Jobs, newest first. A search by text looks at some thousand of them at a time: go on by cursor."""
    said = asked.model_dump(exclude={"limit", "cursor", "state", "id"})
    return await page(desk, wanted(**said, states=asked.state, ids=asked.id), asked.limit, asked.cursor)


async def page(desk: Desk, asked: Wanted, limit: int, cursor: str | None) -> Answer:
    """One page of a list."""

    def look() -> dict[str, Any]:
        found = find(desk.store, asked, limit, cursor, desk.limits)
        return {
            "jobs": [job_row(job) for job in found.jobs],
            "cursor": found.cursor,
            "scanned": found.scanned,
        }

    return await desk.answer(look)


@router.get("/jobs/{job_id}", name="jobs.show", responses=responses.answer(responses.Job))
async def show_job(desk: Seat, job_id: JobId) -> Answer:
    """Everything about one job, and why it is where it is."""
    counts = (await desk.snapshot()).counts

    def look() -> dict[str, Any]:
        job = existing(desk, job_id)
        parents = desk.store.get(job.depends_on[:100])
        known = [parent for parent in parents if parent is not None]
        short = shortages(node.info for node in counts.nodes)
        said = why(job, known, counts, desk.store.clock.now(), short=short, live=live(counts.nodes))
        return job_document(job, said, parents)

    return await desk.answer(look)


@router.post(
    "/jobs", name="job.enqueue", status_code=201, responses=responses.answer(responses.Enqueued, 201)
)
async def enqueue(desk: Seat, request: Request, said: Enqueue) -> Answer:
    """Store a job of a registered task; its arguments are checked as `task.enqueue(...)` checks them."""
    if not desk.options.knows_tasks:
        raise Problem("no-app", "tasks are known only to a server that was started with their app")
    options = {name: value for name, value in said.options.model_dump().items() if value is not None}
    if "run_at" in options:
        options["at"] = options.pop("run_at")
    args = said.arguments if isinstance(said.arguments, list) else []
    kwargs = said.arguments if isinstance(said.arguments, dict) else {}

    def store() -> Any:
        return desk.app.get_task(said.task).using(**options).enqueue(*args, **kwargs)

    handle = await desk.ask(store)
    note(request.scope, handle.id, task=said.task, created=handle.created)
    document = {"id": handle.id, "created": handle.created, "task": said.task}
    return Answer(document, 201 if handle.created else 200)


@router.post("/jobs/bulk", name="jobs.bulk", responses=responses.answer(responses.Changed))
async def bulk(desk: Seat, request: Request, said: Bulk) -> Answer:
    """Cancel, replay or discard up to `limit` jobs; go on by cursor until it is null."""
    return await change(desk, request, said.action, said)


@router.post("/jobs/{job_id}/cancel", name="job.cancel", responses=responses.answer(responses.Cancelled))
async def cancel(desk: Seat, request: Request, job_id: JobId, _: Nothing) -> Answer:
    """End a job: at once if it waits, soon if it runs."""

    def end() -> None:
        job = existing(desk, job_id)
        if job.state in ENDS or not desk.store.cancel(Filter(ids=(job.id,))):
            raise Problem("conflict", f"job {job.id} has ended already: it is {job.state}")

    note(request.scope, job_id)
    await desk.ask(end)
    return Answer({"id": job_id, "cancelled": True})


@router.post("/jobs/{job_id}/retry", name="job.retry", responses=responses.answer(responses.Replayed))
async def retry(desk: Seat, request: Request, job_id: JobId, _: Nothing) -> Answer:
    """Run a dead job again, with fresh budgets."""

    def again() -> None:
        job = existing(desk, job_id)
        if job.state is not JobState.DEAD or not desk.store.replay(Filter(ids=(job.id,))):
            raise Problem(
                "conflict", f"only a dead job can be run again: {job.id} is {job.state} ({job.reason})"
            )

    note(request.scope, job_id)
    await desk.ask(again)
    return Answer({"id": job_id, "replayed": True})


@router.post("/jobs/{job_id}/discard", name="job.discard", responses=responses.answer(responses.Discarded))
async def discard(desk: Seat, request: Request, job_id: JobId, _: Nothing) -> Answer:
    """Delete a job that has ended."""

    def delete() -> None:
        job = existing(desk, job_id)
        if job.state not in ENDS or not desk.store.prune(Retention(), Filter(ids=(job.id,))):
            raise Problem("conflict", f"only a job that has ended can be discarded: {job.id} is {job.state}")

    note(request.scope, job_id)
    await desk.ask(delete)
    return Answer({"id": job_id, "discarded": True})


def existing(desk: Desk, job_id: str) -> Job:
    """The job of that id, or the Problem that there is none."""
    (job,) = desk.store.get([check_id(job_id)])
    if job is None:
        raise Problem(
            "unknown-job", f"no job {job_id} is in {desk.store.url}: it never was, or it was pruned"
        )
    return job
