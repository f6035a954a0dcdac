"""One pool of a node: the workers of a queue (or a few), and the jobs they hold.

Gives jobs to its workers and knows how many more fit. It never talks to the store; what ends is put in
the node's line by the jobs themselves.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from millpond.errors import PoolClosed
from millpond.events import Subscriber
from millpond.job import Crashed, Job, Outcome, Raised, Released, TimedOut
from millpond.node.jobs.claimed_job import Ended, JobTask
from millpond.node.observability.job_tally import Tally
from millpond.node.worker.app_loading import Source
from millpond.node.worker.entry import aexecute, execute, install, noted, texecute
from millpond.pool.channel.functions import Function
from millpond.pool.executor import Pool
from millpond.pool.options import TaskOptions, task_options
from millpond.pool.process.control import CrewControl
from millpond.pool_settings import PoolSettings
from millpond.rules.jobs import claim_size
from millpond.rules.pool.restart import Respawns
from millpond.rules.scaling.records import Decision
from millpond.store.protocol import Claim

FUNCTIONS = {"process": execute, "async": aexecute, "thread": texecute}
NEVER = 2**63
MOST_TASKS = 10_000  # names remembered: a store may hold any number of unknown ones
SAMPLE = 256  # runs remembered until somebody learns from them; the rest is only counted
IDLE = 60.0  # seconds a worker may idle where nobody decides about it


class QueuePool:
    """The workers of a queue."""

    def __init__(
        self, settings: PoolSettings, source: Source, ended: Ended, subscriber: Subscriber | None = None
    ) -> None:
        self.settings = settings
        self.held: dict[str, JobTask] = {}
        self.promised = 0  # jobs claimed and about to be taken
        self.kept = 0  # of those held, the ones that wait for memory, cores or tokens
        self.long = 0  # jobs that were seen to run for so long that nothing should wait behind them
        self.taken = 0  # jobs, ever,
        self.ever_kept = 0  # and those of them that had to wait for memory, cores or tokens
        self.run: float | None = None  # what a job takes here, by measurement
        self.returned = 0  # bytes of results, ever
        self._payload = self._result = 0.0  # about how many bytes a job brings along, and leaves
        self._seen = (0, 0)  # of `done` and `returned`, when somebody learned from them
        self.done = self.failed = self.crashed = self.timed_out = 0
        self.tally = Tally()
        self.notes: dict[tuple[str, int], bytes] = {}  # the last progress of each job that told any, by token
        self.arrived: Counter[str] = Counter()  # jobs taken, by task, since somebody looked
        self.ran: deque[tuple[str, float]] = deque(maxlen=SAMPLE)  # task and seconds of the last runs
        self.short_at = dict.fromkeys(settings.queues, 0.0)  # when a claim last left nothing in a queue
        self.first_short: dict[str, int] = {}  # jobs claimed when one first did, since the last count
        self.news_at = 0.0  # when any of them may have got something since
        self._source = source
        self._ended = ended
        self._subscriber = subscriber
        self._is_up = False
        self._turns = itertools.count()
        self._options: dict[tuple[int, float | None], TaskOptions] = {}
        self._crew = self._made(settings, settings.concurrency)
        self._loner: _Crew | None = None
        self._loners: set[str] = set()  # jobs given to it; some of them may have ended
        if not settings.shadow:
            self._crew.engine.want(settings.least, 0, settings.most, IDLE)  # until the first decision

    # --- taking jobs --------------------------------------------------------------------------------
    def claims(self, round_trip: float) -> list[Claim]:
        """What to ask the store for."""
        queues, settings, size = self.settings.queues, self.settings, self.size()
        weight = self._payload + self._learned_result()
        want = claim_size.wanted(size, settings.concurrency, self.run, round_trip, weight, long=self.long)
        places, held = size * settings.concurrency, len(self.held) + self.promised - self.kept
        if self._loners:
            self._loners &= self.held.keys()
            held = claim_size.beside(held, len(self._loners), places)
        limit = claim_size.to_claim(want, held, places, weight)
        if not limit or self.is_broken or not self._may_begin():
            return []
        if len(queues) == 1:
            return [Claim(queues[0], limit)]
        queues = self._promising() or queues
        parts = claim_size.share(limit, len(queues), next(self._turns))
        return [Claim(queue, part) for queue, part in zip(queues, parts, strict=True) if part]

    def _promising(self) -> tuple[str, ...]:
        """The queues that have not been found empty since there was news."""
        return tuple(queue for queue, short_at in self.short_at.items() if short_at < self.news_at)

    def may_have_more(self) -> bool:
        """Has one of several queues perhaps what another had not?"""
        return len(self.short_at) > 1 and bool(self._promising())

    def _learned_result(self) -> float:
        jobs, total = self.done - self._seen[0], self.returned - self._seen[1]
        if jobs:
            self._seen = self.done, self.returned
            self._result = claim_size.learn_size(self._result, total, jobs)
        return self._result

    def size(self) -> int:
        """The workers to claim for: those there are or should be; with none, one, which a job brings up."""
        engine = self._crew.engine
        if engine.wanted is None:
            return self.settings.most
        return min(engine.most, max(engine.wanted, engine.live, 1))

    def _may_begin(self) -> bool:
        """Before the first worker is up others could begin these jobs sooner; a pool that starts with none
        must have a job to start one."""
        self._is_up = self._is_up or any(link.ready for link in list(self._crew.engine.links.values()))
        return self._is_up or (not self.settings.least and len(self.held) == self.kept)

    @property
    def claimed(self) -> int:
        """Jobs that have come out of the store's line, ever."""
        return self.taken + self.promised

    @property
    def is_broken(self) -> bool:
        """Can no worker be started at all?"""
        return self._crew.engine.degraded or any(crew.engine.closing for crew in self._crews())

    def take(self, jobs: Iterable[Job]) -> None:
        """Give claimed jobs to the workers."""
        jobs = list(jobs)
        self.taken += len(jobs)
        loners: list[Job] = []
        together: list[Job] = []
        total = 0
        for job in jobs:
            total += len(job.payload)
            self.arrived[job.task] += 1
            (loners if job.alone and self.settings.concurrency > 1 else together).append(job)
        if jobs:
            self._payload = claim_size.learn_size(self._payload, total, len(jobs))
        if together:
            self._hand(self._crew, together)
        if loners:
            self._hand(self._alone(), loners)

    def keep(self, job: Job) -> JobTask:
        """Hold a claimed job that cannot begin yet; `begin` gives it to the workers."""
        self.taken += 1
        self.arrived[job.task] += 1
        self._payload = claim_size.learn_size(self._payload, len(job.payload), 1)
        is_loner = job.alone and self.settings.concurrency > 1
        task = self._task(self._alone() if is_loner else self._crew, job)
        self.held[job.id] = task
        self.kept += 1
        self.ever_kept += 1
        return task

    def begin(self, task: JobTask) -> None:
        """Give a job that was kept to the workers."""
        engine: Any = task._owner
        self._accept(engine, [task])

    def _alone(self) -> _Crew:
        if self._loner is None:
            alone = self.settings._replace(least=0)
            self._loner = self._made(alone, 1)
            self._loner.engine.fence = self._crew.engine.fence
        return self._loner

    def _made(self, settings: PoolSettings, concurrency: int) -> _Crew:
        crew = _Crew(settings, self._source, concurrency, self._noted)
        if self._subscriber is not None:
            crew.engine.events.subscribe(self._subscriber)
        return crew

    def _hand(self, crew: _Crew, jobs: Sequence[Job]) -> None:
        tasks = [self._task(crew, job) for job in jobs]
        for task in tasks:
            self.held[task.job.id] = task
        self._accept(crew.engine, tasks)

    def _accept(self, engine: CrewControl, tasks: Sequence[JobTask]) -> None:
        if self._loner is not None and engine is self._loner.engine:
            self._loners.update(task.job.id for task in tasks)
        try:
            engine.accept(tasks)
        except (PoolClosed, OSError, RuntimeError) as error:  # when it had to be started: out of descriptors,
            # or of threads
            for task in tasks:
                if not task.done():
                    task.settle(None, PoolClosed(str(error)), None)

    def _task(self, crew: _Crew, job: Job) -> JobTask:
        options = self._options.get((job.priority, job.options.timeout)) or self._new_options(job)
        engine = crew.engine
        place = (next(engine.numbers), engine, self._ended)
        function = crew.functions.get(job.task) or crew.new_function(job.task)
        return JobTask(place, options, job, function, self._source.definition(job.task))

    def _new_options(self, job: Job) -> TaskOptions:
        if len(self._options) > 1000:  # every job may bring a timeout of its own
            self._options.clear()
        priority, timeout = job.priority, job.options.timeout
        options = task_options(TaskOptions(), {"priority": priority, "timeout": timeout})
        self._options[priority, timeout] = options
        return options

    def _noted(self, note: bytes) -> None:
        job, told = noted(note)
        self.notes[job] = told  # nothing in between: the claim loop may take the notes at any call

    # --- giving them up -----------------------------------------------------------------------------
    def learn(self, task: str, run: float) -> None:
        """A job has returned after so many seconds."""
        self.run = claim_size.learn(self.run, run)
        self.ran.append((task, run))

    def count(self, outcome: Outcome) -> None:
        """Keep the books of attempts."""
        if isinstance(outcome, Released):
            return
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

    def drain(self) -> None:
        """Take back what has not begun, and replace nobody who leaves."""
        self.withdraw()
        for crew in self._crews():
            crew.engine.start_no_more()

    def begun(self) -> list[tuple[JobTask, float]]:
        """The jobs that run, and since when on the monotonic clock."""
        found: list[Any] = []
        for crew in self._crews():
            found += crew.engine.begun()
        return found

    def look(self, begun: Sequence[tuple[JobTask, float]], now: float) -> None:
        """See which jobs run for long; what waits behind nothing else goes back."""
        engine: Any = self._crew.engine
        ages = [now - since for task, since in begun if task._owner is engine]
        self.long = sum(age >= claim_size.LONGEST for age in ages)
        unbegun = len(self.held) - self.kept - len(begun)
        if claim_size.is_stuck(self.long, self.size() * self.settings.concurrency, unbegun):
            self.withdraw()

    def kill(self, task: JobTask) -> None:
        """Stop one job wherever it is."""
        crew: Any = task._owner
        crew.kill(task)

    def recycle(self, worker: object) -> None:
        """Replace the worker of that number, if it is one of these, when what it runs has ended."""
        if isinstance(worker, int):
            for crew in self._crews():
                crew.engine.recycle(worker)

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

    def resize(self, least: int, most: int) -> None:
        """Other bounds from now on."""
        self.settings = self.settings._replace(least=least, most=most)
        self._crew.engine.resize(least, most)

    def want(self, decision: Decision, then: Callable[[], object] | None = None) -> None:
        """The size from now on; calls `then` when it counts. Who is idle for long and not kept leaves by
        itself; who is beyond a cap leaves as soon as it has nothing to do. Nobody else does."""
        most = self.settings.most
        if decision.leave:
            most = min(most, max(1, self.settings.least, decision.alive - decision.leave))
        self._crew.engine.want(decision.wanted, decision.keep, most, decision.idle_timeout, then)

    def crew(self) -> tuple[int, int, int]:
        """How many workers are busy, idle and starting."""
        links = [
            link
            for link in list(self._crew.engine.links.values())
            if link.draining is None and link.gone_at is None and link.killed_for is None
        ]
        starting = sum(not link.ready for link in links)
        busy = sum(link.ready and bool(link.inflight) for link in links)
        return busy, len(links) - busy - starting, starting

    @property
    def start_cost(self) -> float | None:
        """The seconds that starting a worker takes, once known."""
        return self._crew.engine.start_cost

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
            initializer=partial(install, marks=source.printed is not None),
            initargs=(
                source.load,
                concurrency if settings.kind == "thread" else 0,
                source.doorway,
                max(
                    (source.threads[queue] for queue in settings.queues if queue in source.threads),
                    default=None,
                ),
            ),
            min_workers=settings.least,
            kind="process" if not shared else "async",
            **({"concurrency": concurrency} if shared else {}),  # type: ignore[arg-type]
            idle_timeout=IDLE if settings.idle_timeout is None else settings.idle_timeout,
            max_memory=settings.max_memory,
            max_tasks_per_child=settings.max_tasks_per_child,
            max_age=settings.max_age,
            preload=source.preload,
            name=settings.name,
            capture_output=source.printed is not None,
        )
        engine = self.pool._engine
        assert isinstance(engine, CrewControl)
        self.engine = engine
        self.engine.noted = noted
        self.engine.known_at = source.known_at
        self.engine.fence = NEVER
        self.engine.hub = source.hub
        if source.printed is not None:
            self.engine.printer = partial(source.printed, settings.name)
        self.engine.respawns = Respawns()  # jobs that kill their workers must not take the machine
        self._function = engine.functions.find(FUNCTIONS[settings.kind] if shared else execute)
        self.functions: dict[str, Function] = {}  # by task, so that each has an estimate of its own

    def new_function(self, task: str) -> Function:
        """What a worker calls for a task that is new here."""
        whole = self._function
        function = Function(whole.number, task, whole.data, whole.definitions)
        if len(self.functions) < MOST_TASKS:
            self.functions[task] = function
        return function
