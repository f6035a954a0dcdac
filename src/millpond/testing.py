"""What `app.testing()` gives to a user's tests, and the pytest plugin.

A memory store and a clock that stands still: jobs run when the test says so, in this process, through the
same steps as on a node. Timeouts are not enforced. pytest loads this module in every run: it imports
nothing until it is used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    from millpond.app import App
    from millpond.job import Job, NewJob
    from millpond.store.protocol import Exchanged, QueueCounts
    from millpond.task import Task

NODE = "testing"
MOST = 10_000  # jobs in one go; more than that is a job that makes itself anew
MOST_TURNS = 1_000  # of one job; more than that is one that snoozes for ever


class EnqueuedJob(NamedTuple):
    """A job that was enqueued, with its arguments by name."""

    arguments: dict[str, Any]
    job: Job


class Testing:
    """`with app.testing() as jobs:` puts a memory store in the app's place and stops its clock."""

    __test__ = False  # not a test class, whatever its name says to pytest

    def __init__(self, app: App) -> None:
        self._app = app
        self._before: Any = None
        self._store: Any = _NotInUse()
        self._sequence = 0
        self._planner: Any = None  # of recurring tasks, if there are any
        self._queues: set[str] = set()  # where jobs may be: to count them all after every job would be slow

    def __enter__(self) -> Self:
        from millpond.store.open import open_store

        self._store = open_store("memory://")
        self._store.clock.freeze()
        self._store.enqueue = self._noting(self._store.enqueue)
        self._before, self._app.store = self._app.store, self._store
        self._planner = self._make_planner()
        return self

    def __exit__(self, *_: object) -> None:
        self._app.store = self._before
        store, self._store = self._store, _NotInUse()
        store.close()

    def _noting(self, enqueue: Callable[[Any], Any]) -> Callable[..., Any]:
        """Enqueue, noting the queues; without the caller's transaction, which is one of another database."""

        def enqueue_and_note(jobs: Sequence[NewJob], _transaction: object = None) -> Any:
            self._queues.update(job.queue for job in jobs)
            return enqueue(jobs)

        return enqueue_and_note

    # --- looking -------------------------------------------------------------------------------------
    @property
    def now(self) -> datetime:
        """What time it is for the jobs."""
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self._store.clock.now() / 1_000_000, UTC)

    def enqueued(self, task: Task[Any, Any] | None = None) -> list[EnqueuedJob]:
        """Every job that was enqueued, of this task or of all, oldest first, whatever became of it."""
        if task is not None and not hasattr(task, "name"):
            raise TypeError(f"enqueued() takes a task, such as enqueued(resize), not {type(task).__name__}")
        name = None if task is None else task.name
        jobs = sorted(self._all(task=name), key=lambda job: (job.created_at, job.id))
        return [
            EnqueuedJob(self._app.get_task(job.task).signature.arguments(job.payload), job) for job in jobs
        ]

    def _all(self, **chosen: Any) -> Iterator[Job]:
        from millpond.store.protocol import PAGE, Filter

        cursor = None
        while True:
            page = self._store.search(Filter(**chosen), PAGE, cursor)
            yield from page.jobs
            cursor = page.cursor
            if cursor is None:
                return

    # --- time and work -------------------------------------------------------------------------------
    def advance(self, duration: float | timedelta | str) -> None:
        """Let time pass: `advance("1h")`. Nothing runs by itself."""
        from millpond.options import duration as checked

        self._store.clock.shift += round(checked(duration, "advance") * 1_000_000)

    def run_due(self) -> int:
        """Run every job that is due, and those they enqueue that are due as well; returns how many ran."""
        ran = 0
        while (job := self._planned_or_claimed()) is not None:
            self._run(job)
            ran += 1
            if job.token >= MOST_TURNS:
                raise RuntimeError(f"job {job.id} ran {MOST_TURNS:,} times: does {job.task} snooze for ever?")
            if ran >= MOST:
                raise RuntimeError(f"{MOST:,} jobs ran and more are due: does {job.task} enqueue itself?")
        return ran

    def run_until_idle(self) -> int:
        """Run what is due, move on to what is due next, until nothing is left that time would bring."""
        ran = self.run_due()
        while (wait := self._until_next()) is not None:
            self._store.clock.shift += wait
            ran += self.run_due()
            if ran >= MOST:
                raise RuntimeError(f"{MOST:,} jobs ran and more will be due: does one never end?")
        return ran

    def _make_planner(self) -> Any:
        if not any(hasattr(task, "cadence") for task in self._app.tasks.values()):
            return None
        from millpond.orchestrator.planner import Planner

        orchestrator = self._app.orchestrator
        orchestrator.check()
        planner = Planner(self._store, self._app.name, dict(orchestrator.tasks), orchestrator.exclusions)
        planner.begin(0)
        return planner

    def _planned_or_claimed(self) -> Job | None:
        """The next job that is due, once the ticks of recurring tasks that are due are there too."""
        if self._planner is not None:
            self._planner.hurry()
            self._planner.round(self._store.clock.now())
        return self._claim()

    def _claim(self) -> Job | None:
        from millpond.store.protocol import Claim

        self._store.renew(NODE, NODE)
        for queue in sorted(self._queues):
            claimed = self._exchange(claims=[Claim(queue, 1)]).claimed
            if claimed:
                return claimed[0]
        others = {queue.queue for queue in self._store.counts().queues} - self._queues
        self._queues |= others
        return self._claim() if others else None

    def _run(self, job: Job) -> None:
        from millpond.job_runner import run
        from millpond.settlement import settlement
        from millpond.store.protocol import Progress, Started

        def report(data: bytes) -> None:
            self._exchange(progress=[Progress(job.id, job.token, data)])

        self._exchange(started=[Started(job.id, job.token)])
        started_at = self._store.clock.now()
        outcome = run(self._app, job, lambda _: report)
        verdict = settlement(job, outcome, NODE, now=self._store.clock.now(), started_at=started_at)
        self._exchange(settlements=[verdict])

    def _exchange(self, **what: Any) -> Exchanged:
        self._sequence += 1
        return self._store.exchange(NODE, self._sequence, **what)  # type: ignore[no-any-return]

    def _until_next(self) -> int | None:
        """Microseconds until time brings the next job; None if it will bring none."""
        from millpond.job import JobState

        now = self._store.clock.now()
        waits = [job.run_at - now for job in self._all(states=(JobState.SCHEDULED,))]
        waits += [wait for queue in self._store.counts().queues if (wait := _refill(queue))]
        return max(1, min(waits)) if waits else None


class _NotInUse:
    """Stands for the store before and after the block, where an empty list would be a lie."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("jobs are kept inside the block only: `with app.testing() as jobs: ...`")


def _refill(queue: QueueCounts) -> int:
    """Microseconds until the rate of a queue lets its next job through; 0 if it is not what holds it."""
    from millpond.job import JobState

    if queue.paused or not queue.rate or not queue.states.get(JobState.QUEUED):
        return 0
    return round(1_000_000 / queue.rate) + 1


if "pytest" in sys.modules:
    import pytest

    @pytest.fixture
    def millpond_testing() -> Iterator[Callable[[App], Testing]]:
        """Call it with an app, and that app is on a memory store until the test ends."""
        from contextlib import ExitStack

        with ExitStack() as stack:
            yield lambda app: stack.enter_context(app.testing())
