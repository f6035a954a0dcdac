"""A claimed job on its way through a pool: the pool's task and the node's record of the job in one.

It settles nothing itself: however it ends, it is put in the line of what the claim loop must settle.
That happens inside the pool's own turn, so it may only append and ring.
"""

from __future__ import annotations

import marshal
import time
from collections.abc import Callable
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED
from typing import TYPE_CHECKING, Any

from millpond.job import Job
from millpond.pool.channel import frames
from millpond.pool.channel.functions import Function
from millpond.pool.future import Owner, PoolFuture
from millpond.pool.options import TaskOptions
from millpond.pool.task import Task

if TYPE_CHECKING:
    from collections import deque

    from millpond.rules.resources.fit import Need

Ended = Callable[["JobTask", Any, BaseException | None], None]
Place = tuple[int, Owner, Ended]  # its number, the engine that runs it, and who hears of its end


class Withdrawn(Exception):
    """It was taken back before it began."""


class JobTask(Task):
    """One claimed job in a pool."""

    begun_at: float | None = None  # on the monotonic clock, once somebody has looked
    told = False  # the store knows that it has begun
    cancelling_at: float | None = None  # since when its end is wanted
    stopped = False  # by this node, which ends
    interrupted = False  # by a CancelledError where it waits, or by SIGTERM, for whatever reason
    disowned = False  # the store gave it to somebody else
    need: Need | None = None  # what the node's budget has set aside for it, or will
    peak = 0  # the most memory that its worker was seen with, beyond that of a fresh one
    preempted = ""  # why this node stopped it for want of memory

    def __init__(
        self,
        place: Place,
        options: TaskOptions,
        job: Job,
        function: Function,
        definition: bytes | None = None,
    ) -> None:
        number, self._owner, self._ended = place
        self.number = number
        self.options = options
        self.submitted = submitted = time.monotonic_ns()
        self.job = job
        if job.slots:
            self.fenced = True
        self.function = function
        order = (job.task, job.payload, job.id, job.queue, job.attempt, job.token, job.options.trace or None)
        data = marshal.dumps(order if definition is None else (*order, definition))
        self.body = frames.TASK.pack(number, submitted, function.number, len(data), frames.PLAIN) + data

    @property
    def name(self) -> str:
        """The job, for messages."""
        return f"job {self.job.id} ({self.job.task})"

    def settle(
        self, result: Any, exception: BaseException | None, later: deque[PoolFuture[Any]] | None
    ) -> None:
        """The end, by whatever way."""
        self._state = FINISHED
        self.body = None
        self._ended(self, result, exception)

    def abandon(self, later: deque[PoolFuture[Any]]) -> None:
        """Taken back before it began."""
        self._state = CANCELLED_AND_NOTIFIED
        self.body = None
        self._ended(self, None, Withdrawn())

    def mark_cancelled(self) -> None:
        """The same, while it was still in line."""
        self._state = CANCELLED
        self._ended(self, None, Withdrawn())
