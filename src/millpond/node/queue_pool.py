"""One pool of a node: the workers of a queue (or a few), and the jobs they hold.

Gives jobs to its workers and knows how many more fit. It never talks to the store; what ends is put in
the node's line by the jobs themselves.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from millpond.errors import PoolClosed
from millpond.events import Subscriber
from millpond.job import Crashed, Job, Outcome, Raised, TimedOut
from millpond.node.execute import ID, aexecute, execute, install, texecute
from millpond.node.inflight import Ended, JobTask
from millpond.node.source import Source
from millpond.pool.crew_control import CrewControl
from millpond.pool.executor import Pool
from millpond.pool.functions import Function
from millpond.pool.options import TaskOptions, task_options
from millpond.pool_settings import PoolSettings
from millpond.rules import ahead
from millpond.rules.restart import Respawns
from millpond.store.protocol import Claim

FUNCTIONS = {"process": execute, "async": aexecute, "thread": texecute}
NEVER = 2**63
MOST_TASKS = 10_000  # names remembered: a store may hold any number of unknown ones
GOES_ALONE = 1  # workers for jobs that must have a worker for themselves


class QueuePool:
    """The workers of a queue."""

    def __init__(
        self, settings: PoolSettings, source: Source, ended: Ended, subscriber: Subscriber | None = None
    ) -> None:
        self.settings = settings
        self.held: dict[str, JobTask] = {}
        self.promised = 0  # jobs claimed and about to be taken
        self.run: float | None = None  # what a job takes here, by measurement
        self.done = self.failed = self.crashed = self.timed_out = 0
        self.notes: dict[str, bytes] = {}  # the last progress of each job that told any
        self._source = source
        self._ended = ended
        self._subscriber = subscriber
        self._is_up = False
        self._turns = itertools.count()
        self._options: dict[tuple[int, float | None], TaskOptions] = {}
        self._crew = self._made(settings, settings.concurrency)
        self._loner: _Crew | None = None

    # --- taking jobs --------------------------------------------------------------------------------
    def claims(self, round_trip: float) -> list[Claim]:
        """What to ask the store for."""
        queues, settings = self.settings.queues, self.settings
        want = ahead.wanted(settings.most, settings.concurrency, self.run, round_trip)
        held = len(self.held) + self.promised
        limit = ahead.to_claim(want, held, settings.most * settings.concurrency)
        if not limit or self.is_broken or not self._may_begin():
            return []
        parts = ahead.share(limit, len(queues), next(self._turns) if len(queues) > 1 else 0)
        return [Claim(queue, part) for queue, part in zip(queues, parts, strict=True) if part]

    def _may_begin(self) -> bool:
        """Before the first worker is up others could begin these jobs sooner; a pool that starts with none
        must have a job to start one."""
        self._is_up = self._is_up or any(link.ready for link in list(self._crew.engine.links.values()))
        return self._is_up or (not self.settings.least and not self.held)

    @property
    def is_broken(self) -> bool:
        """Can no worker be started at all?"""
        return self._crew.engine.degraded

    def take(self, jobs: Iterable[Job]) -> None:
        """Give claimed jobs to the workers."""
        loners: list[Job] = []
        together: list[Job] = []
        for job in jobs:
            (loners if job.alone and self.settings.concurrency > 1 else together).append(job)
        if together:
            self._hand(self._crew, together)
        if loners:
            if self._loner is None:
                alone = self.settings._replace(least=0, most=GOES_ALONE)
                self._loner = self._made(alone, 1)
                self._loner.engine.fence = self._crew.engine.fence
            self._hand(self._loner, loners)

    def _made(self, settings: PoolSettings, concurrency: int) -> _Crew:
        crew = _Crew(settings, self._source, concurrency, self._noted)
        if self._subscriber is not None:
            crew.engine.events.subscribe(self._subscriber)
        return crew

    def _hand(self, crew: _Crew, jobs: Sequence[Job]) -> None:
        tasks = [self._task(crew, job) for job in jobs]
        self.held.update({task.job.id: task for task in tasks})
        try:
            crew.engine.accept(tasks)
        except (PoolClosed, OSError) as error:  # the second: out of descriptors, when it had to be started
            for task in tasks:
                if not task.done():
                    task.settle(None, PoolClosed(str(error)), None)

    def _task(self, crew: _Crew, job: Job) -> JobTask:
        key = (job.priority, job.options.timeout)
        options = self._options.get(key)
        if options is None:
            if len(self._options) > 1000:  # every job may bring a timeout of its own
                self._options.clear()
            options = task_options(TaskOptions(), {"priority": key[0], "timeout": key[1]})
            self._options[key] = options
        place = (next(crew.engine.numbers), crew.engine, self._ended)
        return JobTask(place, options, job, crew.function_for(job.task))

    def _noted(self, note: bytes) -> None:
        job_id, told = note[:ID].decode(), note[ID:]
        self.notes[job_id] = told  # nothing in between: the claim loop may take the notes at any call

    # --- giving them up -----------------------------------------------------------------------------
    def learn(self, run: float) -> None:
        """A job has returned after so many seconds."""
        self.run = ahead.learn(self.run, run)

    def count(self, outcome: Outcome) -> None:
        """Keep the books."""
        self.done += 1
        if isinstance(outcome, Raised):
            self.failed += 1
        elif isinstance(outcome, Crashed):
            self.crashed += 1
        elif isinstance(outcome, TimedOut):
            self.timed_out += 1

    def withdraw(self) -> None:
        """Take back what has not begun."""
        for crew in self._crews():
            crew.engine.withdraw()

    def begun(self) -> list[tuple[JobTask, float]]:
        """The jobs that run, and since when on the monotonic clock."""
        found: list[Any] = []
        for crew in self._crews():
            found += crew.engine.begun()
        return found

    def kill(self, task: JobTask) -> None:
        """Stop one job wherever it is."""
        crew: Any = task._owner
        crew.kill(task)

    def close(self, timeout: float | None) -> None:
        """Accept no more; end the workers when they are done, or after `timeout`."""
        for crew in self._crews():
            crew.engine.shutdown(wait=False, cancel=True, timeout=timeout)

    def join(self, until: float) -> bool:
        """Wait until the workers are gone."""
        return all(
            crew.engine.finished.wait(max(0.0, until - time.monotonic()))
            for crew in self._crews()
            if crew.engine.dispatcher is not None
        )

    # --- looking ------------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the template and the first workers."""
        self._crew.engine.start()

    def move_fence(self, until: int) -> None:
        """Jobs that hold slots may run until then, in ns since boot."""
        for crew in self._crews():
            crew.engine.move_fence(until)

    def resize(self, settings: PoolSettings) -> None:
        """Other bounds from now on."""
        self.settings = self.settings._replace(least=settings.least, most=settings.most)
        self._crew.engine.resize(settings.least, settings.most)

    def templates(self) -> list[int]:
        """The processes whose children the workers are."""
        starters = [getattr(crew.engine.upkeep, "starter", None) for crew in self._crews()]
        return [starter.pid for starter in starters if starter is not None]

    def engines(self) -> list[CrewControl]:
        """What runs the workers, for those who look."""
        return [crew.engine for crew in self._crews()]

    def _crews(self) -> list[_Crew]:
        return [self._crew] if self._loner is None else [self._crew, self._loner]


class _Crew:
    """A pool of workers with the app in them."""

    def __init__(
        self, settings: PoolSettings, source: Source, concurrency: int, noted: Callable[[bytes], None]
    ) -> None:
        shared = settings.kind != "process" and concurrency > 1
        self.pool = Pool(
            settings.most,
            initializer=install,
            initargs=(source.load, concurrency if settings.kind == "thread" else 0, source.doorway),
            min_workers=settings.least,
            kind="process" if not shared else "async",
            **({"concurrency": concurrency} if shared else {}),  # type: ignore[arg-type]
            idle_timeout=settings.idle_timeout,
            max_memory=settings.max_memory,
            max_tasks_per_child=settings.max_tasks_per_child,
            max_age=settings.max_age,
            preload=source.preload,
            name=settings.name,
        )
        engine = self.pool._engine
        assert isinstance(engine, CrewControl)
        self.engine = engine
        self.engine.noted = noted
        self.engine.fence = NEVER
        self.engine.hub = source.hub
        self.engine.respawns = Respawns()  # jobs that kill their workers must not take the machine
        self._function = engine.functions.find(FUNCTIONS[settings.kind] if shared else execute)
        self._by_task: dict[str, Function] = {}

    def function_for(self, task: str) -> Function:
        """What a worker calls; a record for each task, so that each has an estimate of its own."""
        function = self._by_task.get(task)
        if function is None:
            whole = self._function
            function = Function(whole.number, task, whole.data, whole.definitions)
            if len(self._by_task) < MOST_TASKS:
                self._by_task[task] = function
        return function
