"""Jobs as values: what a job is, how an attempt can end, and what a store may be told about it.

Frozen records, nothing else. Instants are integers, microseconds since 1970 in UTC, so that ranks come out
the same in Python, SQL and Lua; durations are seconds. Payloads, results and progress are bytes of JSON
that no store looks into.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal

import msgspec

Instant = int  # microseconds since 1970-01-01 UTC
MICROSECONDS = 1_000_000
DAY = 86_400 * MICROSECONDS


class JobState(StrEnum):
    """Where a job is in its life. The last three are ends."""

    BLOCKED = "blocked"  # waits for other jobs
    SCHEDULED = "scheduled"  # waits for its time
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    DEAD = "dead"  # will not run again unless replayed
    CANCELLED = "cancelled"


ENDS = frozenset({JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED})
WAITING = frozenset({JobState.BLOCKED, JobState.SCHEDULED, JobState.QUEUED})


class Priority(IntEnum):
    """The usual priorities; any whole number from 0 to 9 will do. One step weighs a day of waiting."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    CRITICAL = 3


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """A named capacity in the store; a running job holds one unit of each of its slots."""

    name: str
    capacity: int = 1


class JobOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job carries for those who run it. No store looks into it."""

    timeout: float | None = 3600.0
    max_attempts: int = 5
    max_crashes: int = 3
    max_lost: int = 10
    retry_first: float = 5.0
    retry_factor: float = 2.0
    retry_cap: float = 3600.0
    resources: dict[str, float] = {}
    hidden: tuple[str, ...] = ()  # arguments that are never shown: their parameters are marked as secrets
    trace: dict[str, str] = {}  # the context of whoever enqueued it, for OpenTelemetry


UniqueFor = Literal["waiting", "done"] | float


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job on its way into a store. The store's clock gives it its times."""

    id: str
    task: str
    payload: bytes
    queue: str = "default"
    priority: int = Priority.NORMAL
    run_at: Instant | None = None  # or `delay` seconds from now
    delay: float = 0.0
    expires: float | None = None  # seconds from now until it is too late to begin
    unique: str | None = None  # scoped to the task
    unique_for: UniqueFor = "done"
    slots: tuple[Slot, ...] = ()
    depends_on: tuple[str, ...] = ()
    options: JobOptions = JobOptions()
    fresh: bool = False  # the id was made just now and never sent before: no need to look for it


class Enqueued(msgspec.Struct, frozen=True, array_like=True):
    """What became of a NewJob: its own id, or that of the job it would have doubled."""

    id: str
    created: bool


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One execution of a job, as it is remembered."""

    number: int
    node: str
    ended: str  # returned, raised, timed out, crashed, out of memory, lost, snoozed, cancelled, unknown
    ended_at: Instant
    started_at: Instant | None = None
    worker: int | None = None
    error: str | None = None  # the type
    message: str | None = None
    traceback: str | None = None


class Job(msgspec.Struct, frozen=True):
    """A job as the store has it. A claim leaves out the last four: they are read on demand."""

    id: str
    task: str
    queue: str
    state: JobState
    reason: str | None
    priority: int
    rank: int  # smaller runs first
    run_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    expires_at: Instant | None
    attempt: int  # executions begun and charged or finished so far
    errors: int
    crashes: int
    lost: int
    token: int  # raised by every claim and every rescue, never reset
    node: str | None
    alone: bool  # must run by itself: it was there when a worker with several jobs died
    cancelling: bool  # somebody asked for its end while it runs
    unique: str | None
    slots: tuple[Slot, ...]
    depends_on: tuple[str, ...]
    options: JobOptions
    payload: bytes
    result: bytes | None = None
    progress: bytes | None = None
    attempts: tuple[Attempt, ...] = ()
    parked: str | None = None  # the slot that was full when it was last looked at


# --- how an attempt can end --------------------------------------------------------------------------
class Failure(msgspec.Struct, frozen=True):
    """An exception as text: nothing of it is ever looked up by name."""

    type: str
    message: str
    traceback: str = ""


class Returned(msgspec.Struct, frozen=True, tag=True):
    """The function returned; `refused` says why its value cannot be stored."""

    result: bytes | None = None
    refused: str | None = None


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The function raised. `final`: the retry rules say not to try again; `retry_in` overrides the delay."""

    failure: Failure
    final: bool = False
    retry_in: float | None = None


class TimedOut(msgspec.Struct, frozen=True, tag=True):
    """It ran longer than its timeout and was killed."""

    failure: Failure


class Crashed(msgspec.Struct, frozen=True, tag=True):
    """Its worker died; with `suspects` > 1 other jobs had begun in it and any may be the cause; with 0 the
    cause is known, and another job."""

    failure: Failure
    suspects: int = 1


class OutOfMemory(msgspec.Struct, frozen=True, tag=True):
    """It was killed by the kernel for want of memory, or stopped by its node before that (`preempted`).
    `final`: it had all the memory there is."""

    failure: Failure
    preempted: bool = False
    final: bool = False


class Unsatisfiable(msgspec.Struct, frozen=True, tag=True):
    """It never began: it needs more than any node that runs could ever give it."""

    failure: Failure


class Lost(msgspec.Struct, frozen=True, tag=True):
    """Its node died; `started` if it is known to have begun."""

    started: bool


class Snoozed(msgspec.Struct, frozen=True, tag=True):
    """The function asked to come back later."""

    delay: float


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """It was stopped because somebody asked for it, or the function gave up by itself."""

    reason: str = "cancelled"


class Released(msgspec.Struct, frozen=True, tag=True):
    """It was claimed and given back without having begun; with `retry_in` it is due again after so many
    seconds, at its old place in line."""

    retry_in: float = 0.0


class Unread(msgspec.Struct, frozen=True, tag=True):
    """The code at hand does not know its task or cannot read its arguments: nothing of it has run."""

    failure: Failure


class Unknown(msgspec.Struct, frozen=True, tag=True):
    """No live node has known its task for longer than `unknown_after`."""

    failure: Failure


Outcome = (
    Returned
    | Raised
    | TimedOut
    | Crashed
    | OutOfMemory
    | Unsatisfiable
    | Lost
    | Snoozed
    | Cancelled
    | Released
    | Unread
    | Unknown
)


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on an attempt: the only thing a store is ever told about how a job goes on."""

    state: JobState
    rank: int
    run_at: Instant
    attempt: int
    errors: int
    crashes: int
    lost: int
    reason: str | None = None
    result: bytes | None = None
    alone: bool = False
    line: bytes = b""  # an Attempt in JSON, appended to the job's history


class Settlement(msgspec.Struct, frozen=True):
    """A verdict, fenced: it counts only while the job is held by this node under this token."""

    id: str
    token: int
    transition: Transition
    wait: float | None = None  # seconds from due to begun, for the statistics
    run: float | None = None
