"""What answers look like, for the OpenAPI document and for tests that hold answers to it.

Nothing is checked against these while serving: job data of any shape must be shown, not turned into an error.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from millpond.job import JobState

Moment = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$")]
Id = Annotated[str, Field(json_schema_extra={"format": "uuid"})]
Level = Literal["info", "warning", "error"]
Counts = dict[JobState, int]


class Shape(BaseModel):
    """A document; fields may be added in later versions."""

    model_config = ConfigDict(extra="allow")


class Mistake(Shape):
    where: str
    message: str


class Problem(Shape):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    fix: str
    errors: list[Mistake] = []


def answer(shape: type[BaseModel], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """A route's answers: the good one, and problems."""
    problems = {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    return {
        status: {"model": shape, "description": "It worked"},
        **({200: {"model": shape, "description": "It was there already"}} if status == 201 else {}),
        "4XX": {"description": "It was refused", **problems},
        "5XX": {"description": "The server or its store failed", **problems},
    }


# --- jobs ------------------------------------------------------------------------------------------------
class JobRow(Shape):
    id: Id
    task: str
    queue: str
    state: JobState
    reason: str | None
    priority: int
    attempt: int
    max_attempts: int
    errors: int
    created_at: Moment
    run_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    node: str | None
    cancelling: bool
    parked: str | None
    arguments: str
    error: str | None
    message: str | None
    wait: float | None
    run: float | None
    progress: Any


class JobPage(Shape):
    jobs: list[JobRow]
    cursor: str | None
    scanned: int


class Attempt(Shape):
    number: int
    node: str
    worker: int | None
    started_at: Moment | None
    ended_at: Moment
    ended: str
    error: str | None
    message: str | None
    traceback: str | None
    run: float | None


class Can(Shape):
    cancel: bool
    retry: bool
    discard: bool


class Job(JobRow):
    why: str
    payload: Any
    result: Any
    attempts: list[Attempt]
    unique: str | None
    slots: list[dict[str, Any]]
    depends_on: list[Id]
    parents: list[dict[str, str]]
    options: dict[str, Any]
    expires_at: Moment | None
    crashes: int
    lost: int
    token: int
    rank: int
    alone: bool
    can: Can


class Enqueued(Shape):
    id: Id
    created: bool
    task: str


class Cancelled(Shape):
    id: Id
    cancelled: bool


class Replayed(Shape):
    id: Id
    replayed: bool


class Discarded(Shape):
    id: Id
    discarded: bool


class Changed(Shape):
    action: str
    dry_run: bool
    matched: int
    changed: int
    scanned: int
    cursor: str | None
    sample: list[JobRow]


class Cause(Shape):
    cause: str
    task: str
    queue: str
    reason: str | None
    error: str | None
    message: str
    count: int
    first_at: Moment | None
    last_at: Moment | None
    example: Id
    filter: dict[str, str]


class Causes(Shape):
    causes: list[Cause]
    scanned: int
    total: int
    complete: bool


class Parameter(Shape):
    name: str
    annotation: str
    required: bool
    default: str | None


class Task(Shape):
    task: str
    queue: str
    kind: Literal["sync", "async"]
    priority: int
    timeout: float | None
    parameters: list[Parameter]
    recurring: bool


class Tasks(Shape):
    tasks: list[Task]


# --- queues, pools, nodes --------------------------------------------------------------------------------
class Recent(Shape):
    seconds: int
    enqueued: int
    completed: int
    dead: int
    cancelled: int
    retried: int
    per_minute: float
    failed_per_minute: float
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None


class Queue(Shape):
    queue: str
    paused: bool
    rate: float | None
    states: Counts
    oldest: float | None
    max_wait: float | None
    pools: list[str]
    nodes: int
    recent: Recent


class Queues(Shape):
    queues: list[Queue]


class Decision(Shape):
    number: int
    at: Moment
    pool: str | None
    node: str | None
    from_: int | None = Field(alias="from")
    to: int | None
    current: int | None
    target: int | None
    action: Literal["grow", "shrink", "stay"] | None
    queue_depth: int | None
    busy_workers: int | None
    text: str
    shadow: bool
    capped: str | None
    terms: dict[str, Any]


class Decisions(Shape):
    decisions: list[Decision]
    last: int


class Pool(Shape):
    pool: str
    queues: list[str]
    kind: str | None
    concurrency: int | None
    min: int | None
    max: int | None
    workers: int
    busy: int
    idle: int
    starting: int
    draining: int
    running: int
    wanted: int | None
    max_wait: float | None
    timeout: float | None
    oldest_wait: float | None
    waiting: int
    done: int
    failed: int
    crashed: int
    timed_out: int
    recycled: int
    memory: int
    status: Literal["ok", "degraded", "failed"]
    reasons: list[str]
    nodes: list[str]
    policy: str | None
    override: dict[str, Any] | None
    decision: Decision | None


class Pools(Shape):
    pools: list[Pool]


class Recycle(Shape):
    jobs_left: int | None
    memory_left: int | None
    age_left: float | None


class Worker(Shape):
    id: str
    node: str
    pool: str
    pid: int
    state: Literal["starting", "idle", "busy", "draining", "dead"]
    job: str | None
    task: str | None
    running_for: float | None
    rss: int
    cpu: float
    done: int
    completed: int | None
    failed: int
    age: float
    started_at: Moment | None
    job_started_at: Moment | None
    last_seen: float
    last_seen_at: Moment | None
    recycle: Recycle


class Workers(Shape):
    workers: list[Worker]


class NodeRow(Shape):
    id: str
    host: str
    pid: int | None
    state: Literal["live", "silent", "rescued"]
    phase: str | None
    lease_left: float
    running: int
    age: float | None
    started_at: Moment | None
    round_age: float | None
    store_trouble: str | None
    unsettled: int | None
    settled: int | None
    rescued: int | None
    queues: list[str]
    pools: list[str]
    reported_at: Moment | None
    cpu: dict[str, float | None]
    memory: dict[str, float | None]
    worker_count: int


class Node(NodeRow):
    workers: list[Worker]


class Nodes(Shape):
    nodes: list[Node]


class Command(Shape):
    node: str
    command: str
    number: int


# --- the rest --------------------------------------------------------------------------------------------
class Alert(Shape):
    level: Level
    kind: str
    subject: str
    text: str
    since: Moment | None


class Store(Shape):
    url: str
    durability: str
    ok: bool
    trouble: str | None


class Overview(Shape):
    at: Moment
    version: str
    app: str | None
    store: Store
    totals: dict[str, float | None]
    queues: list[Queue]
    pools: list[Pool]
    nodes: list[NodeRow]
    alerts: list[Alert]
    recurring: dict[str, int] | None
    decisions: list[Decision]


class Columns(Shape):
    enqueued: list[int]
    completed: list[int]
    dead: list[int]
    cancelled: list[int]
    retried: list[int]
    open: list[int]
    wait_p50: list[float | None]
    wait_p95: list[float | None]
    run_p50: list[float | None]
    run_p95: list[float | None]


class Statistics(Shape):
    window: str
    step: int
    times: list[int]
    queues: dict[str, Columns]
    other: Columns
    all: Columns


class Event(Shape):
    number: int
    at: Moment
    kind: str | None = None
    level: Level | None = None
    text: str


class Events(Shape):
    events: list[Event]
    last: int


class AuditLine(Shape):
    number: int
    at: Moment
    who: str
    how: str
    action: str
    target: str
    status: int


class Audit(Shape):
    audit: list[AuditLine]


class Session(Shape):
    scope: Literal["none", "read", "admin"]
    open_reads: bool
    expires_at: Moment | None
    actions: bool
    app: str | None
    version: str
    token_file: str | None
    beside: dict[str, str | int] | None


class Recurring(Shape):
    name: str


class RecurringList(Shape):
    recurring: list[Recurring]


class History(Shape):
    history: list[dict[str, Any]]


class Triggered(Shape):
    name: str
    triggered: bool


class Wish(Shape):
    desired_slots: int
    desired_workers: int
    slots: int
    workers: int
    desired_nodes: int


class Scale(Wish):
    nodes: int
    pools: dict[str, Wish]
    queues: dict[str, Wish]
