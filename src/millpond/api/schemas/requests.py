"""What a request may say: every field with its bounds, and nothing besides."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from millpond.job import JobState

Name = Annotated[str, Field(min_length=1, max_length=200)]
QueueName = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,64}$")]
JobId = Annotated[str, Field(min_length=32, max_length=45, json_schema_extra={"format": "uuid"})]
Cursor = Annotated[str | None, Field(max_length=45)]
Text = Annotated[str, Field(min_length=1, max_length=200)]
Duration = Annotated[float, Field(ge=0)] | Annotated[str, Field(max_length=40)]

Limit = Annotated[int, Query(ge=1, le=500)]
After = Annotated[int, Query(ge=0, le=2**53)]


def _as_text(value: Any) -> Any:
    """A number would be taken for seconds since 1970: `created_after: 0` chose every job there is."""
    if not isinstance(value, str) or not re.match(r"\d{4}-", value):
        raise ValueError("must be text such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_as_text, json_schema_input_type=AwareDatetime)]


class Said(BaseModel):
    """A body: what is not known is an error."""

    model_config = ConfigDict(extra="forbid")


class Paged(Said):
    """A page of a list."""

    limit: Annotated[int, Field(ge=1, le=500)] = 50
    cursor: Cursor = None


class JobQuery(Paged):
    """Which jobs to list; everything that is given must hold."""

    state: Annotated[list[JobState], Field(max_length=7)] = []
    queue: QueueName | None = None
    task: Name | None = None
    id: Annotated[list[JobId], Field(max_length=100)] = []
    created_after: Moment | None = None
    created_before: Moment | None = None
    text: Text | None = None


class DeadQuery(Paged):
    """Which dead jobs to list."""

    queue: QueueName | None = None
    task: Name | None = None
    reason: Text | None = None
    error: Text | None = None
    cause: Text | None = None
    text: Text | None = None


class Nothing(Said):
    """A change that needs no more words."""


class Login(Said):
    """A token to be exchanged for a session."""

    token: Annotated[str, Field(min_length=1, max_length=1_000)]


class EnqueueOptions(Said):
    """As in `task.using(...)`."""

    queue: QueueName | None = None
    priority: Annotated[int, Field(ge=0, le=9)] | None = None
    delay: Duration | None = None
    run_at: Moment | None = None
    unique: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    timeout: Duration | None = None
    expires: Duration | None = None
    id: JobId | None = None


class Enqueue(Said):
    """One call of a registered task."""

    task: Name
    arguments: dict[str, Any] | list[Any] = {}
    options: EnqueueOptions = EnqueueOptions()


class Filter(Said):
    """Which jobs; everything that is given must hold."""

    state: Annotated[list[JobState], Field(max_length=7)] = []
    queue: QueueName | None = None
    task: Name | None = None
    reason: Text | None = None
    error: Text | None = None
    cause: Text | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    text: Text | None = None


class Selection(Said):
    """Jobs by id, or by filter; an empty filter only with `all`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["ids"]}, {"required": ["filter"]}]}
    )

    ids: Annotated[list[JobId], Field(min_length=1, max_length=1_000)] | None = None
    filter: Filter | None = None
    all: bool = False
    dry_run: bool = False
    limit: Annotated[int, Field(ge=1, le=1_000)] = 500
    cursor: Cursor = None


class Bulk(Selection):
    """What to do with many jobs."""

    action: Literal["cancel", "replay", "discard"]


class Rate(Said):
    """Jobs a second that a queue may start; none for no limit."""

    rate: Annotated[float, Field(ge=0, le=1_000_000_000)] | None


class Bounds(Said):
    """How many workers a pool may have on each node; `max` is at least `min`."""

    min: Annotated[int, Field(ge=0, le=1_024)]
    max: Annotated[int, Field(ge=1, le=1_024)]


class Drain(Said):
    """How long running jobs may finish."""

    grace: Annotated[float, Field(ge=0, le=86_400)] | None = None
