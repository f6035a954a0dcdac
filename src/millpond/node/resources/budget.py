"""One budget for all pools of a node: who waits for memory, cores or tokens, and who holds them.

A job that needs something stays here, claimed, until there is room for it; then its pool gets it. Only a
few are kept: the tasks that cannot start are left out of the next claims. Jobs of which nothing is declared
or learned never come here. Who may start is decided in `rules/resources/fit.py`; what was measured comes from
`node/resources/usage_monitor.py`. The claim loop and the watcher both call this, under one lock.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from millpond.errors import OptionError
from millpond.job import Crashed, Failure, Job, Outcome, OutOfMemory, Released, Unsatisfiable
from millpond.node.resources.cgroup import NO_LIMIT, KernelKills, Level
from millpond.node.resources.needs import Means, Needs, need
from millpond.options import Resources
from millpond.rules.resources import fit, memory_shortage
from millpond.rules.resources.amounts import amount, part, shown
from millpond.rules.resources.fit import Budget, Candidate, Need
from millpond.store.protocol import Claim
from millpond.units import shown_size

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.jobs.settle_queue import End
    from millpond.rules.resources.learned_needs import Learned
    from millpond.task import Task

logger = logging.getLogger("millpond")
PATIENCE = 60.0  # seconds a job that no node can ever run waits for one that can
ELSEWHERE = 10.0  # how long jobs that another node can run are left to it before we look again
NEARLY = 0.9  # of all the memory: what the rest would change is noise
MOST_TASKS = 1000  # of a queue that are left out of claims: a store may hold any number of unknown ones
MICROSECONDS = 1e6
MOST_TOLD = 20  # tasks of which a node tells why they wait


class Holding(NamedTuple):
    """A job that has been given what it needs."""

    task: JobTask
    pool: QueuePool
    need: Need
    since: float


class Kept(NamedTuple):
    """A job that waits for room."""

    task: JobTask
    pool: QueuePool
    since: float


class Measured(NamedTuple):
    """What the watcher saw at one moment."""

    level: Level = Level(NO_LIMIT, 0)
    by_job: Mapping[str, int] = {}  # the memory that each running job holds, by its id
    step: memory_shortage.Step = "admit"
    strangers: int | None = None  # of a budget that was given: what others use of it than `holding`


class NodeBudget:
    """What the jobs of this node may use together."""

    def __init__(self, given: Resources | None = None) -> None:
        known = {} if given is None else dict(given.needs)
        self.given_memory = int(known.pop("memory", 0)) or None
        self.given_cores = known.pop("cpu", 0.0) or None
        self.tokens: Mapping[str, float] = known
        memory = self.given_memory or NO_LIMIT
        self.means = Means(memory, self.given_cores or math.inf, memory)
        self.active = False  # some task needs something: without that every job goes straight to its pool
        self.overcommit = 1.0
        self.measured = Measured()
        self.patience = PATIENCE
        self.fleet: Sequence[tuple[frozenset[str], Budget]] = ()  # what the other nodes serve, and have
        self.needs = Needs()
        self.waiting: dict[str, Kept] = {}
        self.holding: dict[str, Holding] = {}
        self._known: dict[str, set[str]] = {}  # queue -> tasks of the app
        self._weighed: dict[str, dict[str, Need]] = {}  # queue -> task -> what it last needed
        self._left_until: dict[str, float] = {}  # tasks left to others
        self._ghosts: dict[str, Candidate] = {}  # by task: the first of those, for which room is still made
        self._first_seen: dict[str, float] = {}  # tasks that no node can run, and since when
        self._epoch = -math.inf  # the store's clock is ahead of ours by so many seconds at least
        self.kills = KernelKills(lambda: None)
        self.woken: Callable[[], None] = lambda: None  # whoever measures: there is something to watch
        self._lock = threading.RLock()

    def expect(self, tasks: Iterable[Task[..., object]], fleet_tokens: Iterable[str]) -> None:
        """Know what the tasks of the app declare before the first of their jobs comes."""
        others = set(fleet_tokens)
        with self._lock:
            for task in tasks:
                self._known.setdefault(task.queue, set()).add(task.name)
                declared = {name: n for name, n in task.resources.needs.items() if name not in others}
                if declared:
                    self._weigh(task.name, task.queue, need(declared))

    def _weigh(self, task: str, queue: str, wants: Need) -> None:
        here = self._weighed.setdefault(queue, {})
        if task in here or len(here) < MOST_TASKS:
            here[task] = wants
        self.active = True

    # --- taking jobs in -------------------------------------------------------------------------------
    def sift(self, pool: QueuePool, jobs: Sequence[Job]) -> tuple[Sequence[Job], list[tuple[Job, Outcome]]]:
        """Keep those of the claimed jobs that need something. Returns those that do not, and those that
        cannot run here at all with what is to be said about them."""
        straight, refused = [], []
        now = time.monotonic()
        self.woken()
        with self._lock:
            for job in jobs:
                wants = self.needs.need_of(job, self.means, now) if self.needs.weighs(job) else Need()
                if not wants:
                    self._weighed.get(job.queue, {}).pop(job.task, None)  # it needs nothing any more
                    self._first_seen.pop(job.task, None)
                    straight.append(job)
                    continue
                self._weigh(job.task, job.queue, wants)
                lacks = fit.never_fits(Budget(self.means.memory, tokens=self.tokens), wants)
                if lacks is None:
                    self._first_seen.pop(job.task, None)
                    self._keep(pool, job, wants, now)
                else:
                    refused.append((job, self._refusal(job, wants, lacks, now)))
        return straight, refused

    def _keep(self, pool: QueuePool, job: Job, wants: Need, now: float) -> None:
        before = self.waiting.get(job.id)
        if before is not None:  # we were rescued, and have claimed our own job again: this claim counts
            before.pool.kept -= 1
        task = pool.keep(job)
        task.need = wants
        self.waiting[job.id] = Kept(task, pool, now)

    def _refusal(self, job: Job, wants: Need, lacks: str, now: float) -> Outcome:
        """It can never run here: another node may, or one may come. In the end it is dead."""
        if self._may_run_elsewhere(job, wants):
            self._left_until[job.task] = now + ELSEWHERE
            self._first_seen.pop(job.task, None)
            return Released()
        has = self.means.memory if lacks == "memory" else self.tokens.get(lacks, 0.0)
        said = f"needs {amount(lacks, part(wants, lacks))}, which no node that runs has"
        said = f"{said}: this one has {shown(lacks, has)}"
        until = self._refused_since(job, now) + self.patience
        self._left_until[job.task] = max(now, until)
        if now >= until:
            return Unsatisfiable(Failure("Unsatisfiable", f"the job {said}"))
        logger.warning("Job %s (%s) %s; it ends dead in %.0f s", job.id, job.task, said, until - now)
        return Released()

    def _refused_since(self, job: Job, now: float) -> float:
        """From when on it is known that no node can run this job. It is looked at once in a while, and a
        larger node may have come and gone if nobody did for long: then from now on. And not from before it
        was due itself, of which our clock knows the latest moment: each job has the whole patience."""
        if now > self._left_until.get(job.task, now) + self.patience:
            self._first_seen.pop(job.task, None)
        due = job.run_at / MICROSECONDS
        self._epoch = max(self._epoch, due - now)  # it is due, so the store's clock was there before
        return max(self._first_seen.setdefault(job.task, now), min(now, due - self._epoch))

    def _may_run_elsewhere(self, job: Job, wants: Need) -> bool:
        return any(job.queue in queues and fit.never_fits(it, wants) is None for queues, it in self.fleet)

    def admit(self, now: float) -> list[tuple[JobTask, QueuePool]]:
        """Those that may start now; what they need is set aside from here on."""
        with self._lock:
            if self.measured.step != "admit":
                return []
            self._leave_to_others(now)
            candidates = [*self._candidates(now), *self._ghosts.values()]
            found = fit.fit(self._budget(), self._started(now), candidates, now)
            for name in set(found.start) & set(self._ghosts):  # there is room for it now: claim it again
                del self._ghosts[name]
                self._left_until.pop(name, None)
            return [self._give(name, now) for name in found.start if name in self.waiting]

    def _candidates(self, now: float) -> Iterable[Candidate]:
        """Those that wait and are still wanted; for want of cores alone, no pool is without a running job.
        A job that was claimed again waits for its earlier run to be gone: what that holds is not free yet."""
        busy = {holding.pool for holding in self.holding.values()}
        for one in sorted(self.waiting.values(), key=lambda kept: (kept.task.job.rank, kept.task.job.id)):
            task = one.task
            is_wanted = not (task.done() or task.disowned or task.cancelling_at is not None)
            if is_wanted and task.job.id not in self.holding:
                yield self._candidate(one, now, first=one.pool not in busy)
                busy.add(one.pool)

    def _candidate(self, one: Kept, now: float, *, first: bool) -> Candidate:
        job = one.task.job
        # What was learned may have grown since it came, and what there is may have shrunk
        wants = one.task.need = self.needs.need_of(job, self.means, now)
        return Candidate(job.id, job.rank, wants, self.needs.longest(job.task), first)

    def _leave_to_others(self, now: float) -> None:
        """Jobs that have waited here for long go back in line when another node could run them. Room is still
        made for the first of each task, or it would starve wherever it is."""
        self._ghosts = {
            name: one for name, one in self._ghosts.items() if self._left_until.get(name, 0.0) > now
        }
        for one in list(self.waiting.values()):
            job = one.task.job
            if now - one.since < ELSEWHERE or not self._may_run_elsewhere(job, one.task.need or Need()):
                continue
            self._left_until[job.task] = now + ELSEWHERE
            self._ghosts.setdefault(job.task, self._candidate(one, now, first=False)._replace(name=job.task))
            one.task.cancel()

    def _give(self, name: str, now: float) -> tuple[JobTask, QueuePool]:
        task, pool, _ = self.waiting.pop(name)
        pool.kept -= 1
        self.holding[name] = Holding(task, pool, task.need or Need(), now)
        return task, pool

    def _budget(self) -> Budget:
        measured = self.measured
        level, used = measured.level, measured.level.used
        if measured.strangers is not None:  # exact to the byte, or a job that needs all would never find it
            used = measured.strangers + sum(measured.by_job.get(name, 0) for name in self.holding)
        cores = self.means.cores * self.overcommit
        return Budget(level.limit - level.headroom, used, cores, tokens=self.tokens)

    def _started(self, now: float) -> list[fit.Started]:
        used = self.measured.by_job
        return [
            fit.Started(
                one.need,
                used.get(name, 0),
                max(now, one.since + (self.needs.longest(one.task.job.task) or 0.0)),
            )
            for name, one in self.holding.items()
        ]

    def _free(self) -> fit.Free:
        return fit.free(self._budget(), self._started(time.monotonic()))

    def ended(self, task: JobTask, ran: float | None = None) -> None:
        """A job that needed something is over, or was taken back; `ran` if it ended well. Of a job that was
        claimed again only this claim is over: what waits or runs by the other stays in the books."""
        name = task.job.id
        with self._lock:
            kept, held = self.waiting.get(name), self.holding.get(name)
            if kept is not None and kept.task is task:
                del self.waiting[name]
                kept.pool.kept -= 1
            if held is not None and held.task is task:
                del self.holding[name]
                if ran is not None:
                    self.needs.ran(task.job, ran)

    def withdraw(self) -> None:
        """The node drains: what has not begun goes back."""
        with self._lock:
            tasks = [one.task for one in self.waiting.values()]
        for task in tasks:
            task.cancel()

    # --- what to claim --------------------------------------------------------------------------------
    def shape(self, claims: Sequence[Claim]) -> list[Claim]:
        """The same claims, for no more jobs that need something than there is room for, and one more."""
        with self._lock:
            left, now = self._free(), time.monotonic()
            for one in self.waiting.values():
                left = left.without(one.task.need or Need())
            return [piece for claim in claims for piece in self._pieces(claim, left, now)]

    def _pieces(self, claim: Claim, left: fit.Free, now: float) -> list[Claim]:
        here = self._weighed.get(claim.queue)
        if not here:
            return [claim]
        kept = {one.task.job.task for one in self.waiting.values()}
        stopped = self.measured.step != "admit"
        closed = [name for name in here if name in kept or stopped or self._left_until.get(name, 0.0) > now]
        wants = [its for name, its in here.items() if name not in closed]
        room = min((fit.how_many(left, its, claim.limit) for its in wants), default=claim.limit)
        room = max(room, 1)  # the one that does not fit is the one to make room for
        first = Claim(claim.queue, min(room, claim.limit), (*claim.without, *closed))
        if room >= claim.limit:
            return [first]
        return [first, Claim(claim.queue, claim.limit - room, (*claim.without, *here))]

    def cap(self, pool: QueuePool) -> tuple[int, str] | None:
        """How many workers of a pool can have work at present, and what there is too little of for more;
        None if all can, or if it has tasks that need nothing: those must find a worker."""
        if not self.active:
            return None
        with self._lock:
            wants = [one.need for one in self.holding.values() if one.pool is pool]
            wants += [one.task.need or Need() for one in self.waiting.values() if one.pool is pool]
            if not wants or not all(self._needs_all(queue) for queue in pool.settings.queues):
                return None
            most = pool.settings.most * pool.settings.concurrency
            found = fit.places(self._free(), wants, len(pool.held) - pool.kept, most)
            return found and (max(1, -(-found[0] // pool.settings.concurrency)), found[1])

    def leaves_out(self, queue: str) -> bool:
        """Are there tasks in this queue whose jobs are not claimed while there is no room for them?"""
        return bool(self._weighed.get(queue))

    def _needs_all(self, queue: str) -> bool:
        return self._known.get(queue, set()) <= set(self._weighed.get(queue, ()))

    # --- what was measured ----------------------------------------------------------------------------
    def saw_end(self, task: JobTask, cpu: float | None) -> None:
        """A job is over that the watcher has looked at while it ran."""
        job = task.job
        with self._lock:
            if self.needs.saw(job, self.means, peak=task.peak, cpu=cpu):
                self._weigh(job.task, job.queue, self.needs.need_of(job, self.means, time.monotonic()))

    def judged(self, end: End) -> End:
        """What becomes of a job under which memory ran out: it is given more, or has had all there is."""
        if isinstance(end.outcome, OutOfMemory) and not end.task.preempted and not self.kills.took_one():
            return end._replace(outcome=Crashed(end.outcome.failure))
        task, failure = end.task, getattr(end.outcome, "failure", None)
        with self._lock:
            held = self.measured.by_job
            used = max(task.peak, held.get(task.job.id, 0))
            others = any(size > memory_shortage.WORTH for name, size in held.items() if name != task.job.id)
            given = task.need.memory if task.need is not None else 0
            reach = self.means.reach
            had_all = given >= NEARLY * reach or (not others and used >= NEARLY * reach)
            final = self.needs.ran_out(task, self.means, used=used, had_all=had_all)
            wants = self.needs.need_of(task.job, self.means, time.monotonic())
            if wants:
                self._weigh(task.job.task, task.job.queue, wants)
        text = task.preempted or (failure.message if failure is not None else "memory ran out")
        if final:
            text += f"; there is no more to give it: this node has {shown_size(self.means.memory)}"
        told = Failure("OutOfMemory", text, failure.traceback if failure is not None else "")
        return end._replace(outcome=OutOfMemory(told, preempted=bool(task.preempted), final=final))

    def remember(self, learned: Mapping[str, Learned]) -> None:
        """What nodes before this one have learned about the tasks of the app."""
        with self._lock:
            now, large = time.monotonic(), self.needs.remember(learned, self.means)
            for queue, tasks in self._known.items():
                for task in tasks & large:
                    declared = self._weighed.get(queue, {}).get(task, Need())
                    memory = min(learned[task].memory_for(declared.memory, now), self.means.reach)
                    self._weigh(task, queue, declared._replace(memory=memory))

    # --- telling --------------------------------------------------------------------------------------
    def facts(self) -> dict[str, object]:
        """What other nodes, and people who ask why a job waits, should know."""
        found: dict[str, object] = {"budget": {"memory": self.means.memory, **self.tokens}}
        if not self.active:
            return found
        short = {}
        with self._lock:
            left, now = self._free(), time.monotonic()
            for task, _, _ in list(self.waiting.values())[:MOST_TOLD]:
                wants = task.need or Need()
                lacks = left.lacks(wants) or "memory"
                has = (
                    left.memory
                    if lacks == "memory"
                    else left.cpu
                    if lacks == "cpu"
                    else left.tokens.get(lacks, 0)
                )
                wanted = amount(lacks, part(wants, lacks))
                short[task.job.task] = f"{wanted}, of which {shown(lacks, max(0, has))} is free"
            for name in list(self._first_seen)[-MOST_TOLD:]:
                left_over = self._left_until.get(name, 0.0) - now
                if left_over > 0:
                    short[name] = f"more than any node that runs has; it ends dead in {left_over:.0f} s"
        return {**found, "short": short} if short else found


def check_budget(given: object) -> Resources | None:
    """What a node was told to use, or OptionError."""
    if given is not None and not isinstance(given, Resources):
        raise OptionError(
            f"budget must be Resources(...), such as Resources(memory='8GB'), not {given!r:.80}"
        )
    return given
