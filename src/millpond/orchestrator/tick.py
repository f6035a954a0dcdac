"""A tick on its way into the store: the row, and the job it makes unless it is skipped."""

from __future__ import annotations

from typing import Any, NamedTuple

from millpond.job import MICROSECONDS, Instant, NewJob
from millpond.orchestrator.tick_ids import tick_id
from millpond.recurring import ONCE, RecurringTask
from millpond.rules.recurring.due_ticks import expires_after
from millpond.store.protocol import Tick

SECOND = 1  # microsecond by which the second name of an instant differs from the first
SHORTEST = 0.001  # seconds until a tick that is too late already expires


class Draft(NamedTuple):
    """The verdict on one tick."""

    task: RecurringTask[..., Any]
    at: Instant
    due_at: Instant
    reason: str = ""  # why it is skipped; empty: it runs
    instants: int = 1  # that this verdict is about
    since: Instant | None = None  # the first of them, if there are several
    payload: bytes | None = None  # of a trigger
    is_held: bool = False  # it was held back until now
    is_second: bool = False  # the instant was skipped by a clock that was wrong, and bears another name

    @property
    def second(self) -> Draft:
        """The same tick under the one other name that its instant can have."""
        return self._replace(at=self.at + SECOND, is_second=True)

    def tick(self, now: Instant) -> Tick:
        """As the store takes it."""
        job = None if self.reason else tick_job(self, now)
        return Tick(self.task.name, self.at, job)


def tick_job(draft: Draft, now: Instant) -> NewJob:
    """The job of a tick. Its place in line is that of the instant it was due; of one that was held back, that
    of the moment it was let go: no pool is late with a job that it could not have had."""
    task, due_at = draft.task, draft.due_at
    expires = expires_after(task.policy)
    if expires is not None:
        expires = max(SHORTEST, expires - max(0, now - due_at) / MICROSECONDS)
    return NewJob(
        id=tick_id(task.name, draft.at),
        task=task.name,
        payload=task.no_arguments if draft.payload is None else draft.payload,
        queue=task.queue,
        priority=task.priority,
        run_at=now if draft.is_held else min(due_at, now),
        expires=expires,
        unique=ONCE if task.policy.overlap == "skip" else None,
        unique_for="done",
        slots=task.exclusion,
        options=task._job_options,
    )
