"""What there is to say about recurring tasks: frozen records for programs, made from what is stored."""

from __future__ import annotations

from typing import Literal, NamedTuple

from millpond.job import Instant

State = Literal["idle", "waiting", "running", "disabled", "open", "retired"]


class RecurringStatus(NamedTuple):
    """One recurring task at one moment."""

    name: str
    mode: str  # scheduled, triggered, continuous; empty once retired
    cadence: str  # in words
    state: State
    enabled: bool
    running: int
    waiting: int
    breaker: str  # closed, open, half-open
    consecutive_failures: int
    last_run_at: Instant | None
    last_success_at: Instant | None
    last_failure_at: Instant | None
    last_error: str
    last_job: str
    last_skip: str
    late: float  # seconds by which the last tick was enqueued late
    next_due_at: Instant | None
    why: str


class OrchestratorStatus(NamedTuple):
    """All of them, and who plans."""

    leader: str | None  # the node that plans; None: nobody, or not seen yet
    term: int
    running: int
    max_concurrent: int | None
    tasks: dict[str, RecurringStatus]

    @property
    def state(self) -> Literal["running", "stopped"]:
        """Does anybody plan?"""
        return "stopped" if self.leader is None else "running"


class TickRecord(NamedTuple):
    """A line of a task's history."""

    at: Instant  # the scheduled instant
    outcome: str  # running, queued, completed, dead, cancelled, skipped ...
    reason: str  # why it was skipped, or how it failed
    job: str | None
    started_at: Instant | None
    finished_at: Instant | None
    late: float | None  # seconds from due to enqueued
    instants: int  # that this line is about
