"""Watches what the jobs of a node really use: a look several times a second, in a thread of its own.

It needs no store, so that nothing can hold it up. It measures workers and machine, lets the budget learn,
and when memory runs short lets idle workers go and stops a job; whose, is decided in
`rules/resources/memory_shortage.py`. While too much waits for the store, it has what was claimed taken back.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from millpond.node.resources.budget import Measured
from millpond.node.resources.cgroup import NO_LIMIT, KernelKills, Level, Machine, tightest
from millpond.node.resources.needs import Means
from millpond.pool.channel.shared_page import RSS
from millpond.pool.proc import cpu_seconds, resident
from millpond.rules.resources import fit, memory_shortage
from millpond.units import shown_size

if TYPE_CHECKING:
    from millpond.node.jobs.claim_loop import ClaimLoop
    from millpond.node.jobs.claimed_job import JobTask
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.state import NodeState
    from millpond.pool.process.control import CrewControl
    from millpond.store.protocol import Counts, NodeRecord

logger = logging.getLogger("millpond")
# Seconds between two looks: usually, while jobs run that need something, and while there are no jobs at all
CALM, CLOSE, ASLEEP = 0.25, 0.1, 2.0
SETTLING = 3.0  # seconds without a job before it falls asleep
LIMITS_EVERY = 30.0  # a container can be given more or less while it runs
FLEET_EVERY = 2.0
CPU_EVERY = 10.0
LEAST_SPAN = 0.3  # seconds of a run from which its use of cores can be told
MARGIN = 0.97  # of what could be freed: the rest changes between two looks
SLACK = 8_000_000  # bytes by which fresh workers differ: not counted, or a sum that just fits would not
FAT = 32_000_000  # bytes that a worker may keep, or a job take that needs nothing, without being counted


class Seen(NamedTuple):
    """One worker at one moment."""

    pool: QueuePool
    engine: CrewControl
    pid: int
    fed_at: float  # when it was last given a job
    own: int  # memory beyond what a fresh worker of its pool has
    running: list[tuple[JobTask, float]]  # and since when

    @property
    def is_weighed(self) -> bool:
        """Does it run a job that something was set aside for?"""
        return any(task.need is not None for task, _ in self.running)


class Watch:
    """The thread that looks."""

    def __init__(self, state: NodeState, loop: ClaimLoop, counts: Callable[[], Counts | None]) -> None:
        self._state = state
        self._loop = loop
        self._counts = counts
        self._machine = Machine()
        self._stopped = False
        self._bell = threading.Event()
        self._is_asleep = False
        self._floors: dict[str, int] = {}  # what a fresh worker of each pool holds
        # By job: the job, when it was first seen, and the processor time that its worker had used then
        self._running: dict[str, tuple[JobTask, float, float]] = {}
        self._spans: dict[str, float] = {}  # by job: cores used, as last seen
        self._fat: set[tuple[int, float]] = set()  # idle workers that kept much, and when they were last fed
        self._watch = memory_shortage.Watch()
        self._cpu: tuple[float, float | None] = (0.0, None)
        self._stall: tuple[float, float | None] = (0.0, None)
        self._limits_at = self._fleet_at = 0.0
        self.look_at_limits(time.monotonic())
        state.budget.kills = KernelKills(self._machine.oom_kills)
        state.budget.woken = self.wake

    def run(self) -> None:
        """Until the node stops."""
        awake_until = time.monotonic() + SETTLING  # what stands in line is claimed without a word
        while not self._stopped:
            self._is_asleep = time.monotonic() >= awake_until and self._may_sleep()
            if self._bell.wait(self._pause()):
                self._bell.clear()
                awake_until = time.monotonic() + SETTLING  # what it was woken for is still on its way
            if self._stopped:
                return
            try:
                self.look(time.monotonic())
            except Exception:
                logger.exception("A look at the workers failed; the next one follows")

    def _is_busy(self) -> bool:
        return any(pool.held for pool in self._pools())

    def _may_sleep(self) -> bool:
        """Nothing runs, nothing waits, and memory is not short."""
        budget = self._state.budget
        return not self._is_busy() and not budget.waiting and budget.measured.step == "admit"

    def _pause(self) -> float:
        if self._is_asleep:
            return ASLEEP
        return CLOSE if self._state.budget.active and self._is_busy() else CALM

    def wake(self) -> None:
        """There is work. Called by any thread, often: one that looks anyway need not hear it."""
        if self._is_asleep:
            self._is_asleep = False
            self._bell.set()

    def stop(self) -> None:
        """No more looks."""
        self._stopped = True
        self._bell.set()

    # --- one look -------------------------------------------------------------------------------------
    def look(self, now: float) -> None:
        """Measure, and do what follows."""
        budget = self._state.budget
        self._loop.hold_back()
        if now >= self._limits_at:
            self.look_at_limits(now)
        if now >= self._fleet_at and budget.active:
            self._fleet_at = now + FLEET_EVERY
            counts = self._counts()
            budget.fleet = () if counts is None else fleet_of(counts.nodes, self._state.identity.id)
        seen = list(self._workers())
        level = self._level(seen)
        self._watch, step = memory_shortage.look(
            self._watch, level.limit - level.used, level.headroom, self._stalled(now), now
        )
        if budget.given_memory is None:
            reach = min(budget.means.memory, level.free + sum(worker.own for worker in seen))
            budget.means = budget.means._replace(reach=max(0, int(reach * MARGIN)))
        budget.measured = Measured(level, _by_job(seen), step, self._strangers(seen))
        self._learn(seen, now)
        self._adapt(now)
        if budget.waiting or step != "admit":
            self._let_fat_ones_go(seen)
            self._loop.bell.set()
        if step == "stop":
            self._stop_one(seen, level)

    def look_at_limits(self, now: float) -> None:
        """What the machine lets us use."""
        budget = self._state.budget
        self._limits_at = now + LIMITS_EVERY
        self._machine.look_again()
        levels = self._machine.memory()
        templates = {pid for pool in self._pools() for pid in pool.templates()}
        own = resident(os.getpid()) + sum(resident(pid) for pid in templates)
        most = min((level.limit - level.headroom - own for level in levels), default=NO_LIMIT)
        memory = budget.given_memory or max(0, most)
        budget.means = Means(memory, budget.given_cores or self._machine.cores(), memory)
        if budget.measured.level.limit == NO_LIMIT:
            budget.measured = Measured(self._level(()))

    def _pools(self) -> list[QueuePool]:
        return list(self._state.pools.values())

    def _workers(self) -> Iterable[Seen]:
        for pool in self._pools():
            for engine in pool.engines():
                if engine.dispatcher is None:
                    continue
                with engine.exclusive():
                    found: list[tuple[int, int, float, list[tuple[Any, float]]]] = [
                        (
                            link.pid,
                            link.page.words[RSS],
                            link.fed_at,
                            [(link.inflight[n], since) for n, since in link.running().items()],
                        )
                        for link in engine.links.values()
                        if link.ready and not link.closed and link.gone_at is None
                    ]
                for pid, fresh, fed_at, running in found:
                    held = resident(pid)
                    if held:
                        floor = min(held, fresh or held, self._floors.get(pool.settings.name, held))
                        self._floors[pool.settings.name] = floor
                        yield Seen(pool, engine, pid, fed_at, max(0, held - floor - SLACK), running)

    def _level(self, seen: Iterable[Seen]) -> Level:
        """The limit that counts: what was given, or else what the machine says."""
        given = self._state.budget.given_memory
        if given is not None:
            return Level(given, sum(worker.own for worker in seen))
        return tightest(self._machine.memory())

    def _strangers(self, seen: Iterable[Seen]) -> int | None:
        """What is used of a budget that was given, but not by jobs that it was given to."""
        if self._state.budget.given_memory is None:
            return None
        return sum(worker.own for worker in seen if worker.own >= FAT and not worker.is_weighed)

    def _stalled(self, now: float) -> float | None:
        """The share of the time since the last look in which everybody waited for memory."""
        before, self._stall = self._stall, (now, self._machine.memory_stall())
        return _share(before, self._stall)

    def _adapt(self, now: float) -> None:
        """Promise more cores than there are while nobody feels it."""
        budget = self._state.budget
        if now - self._cpu[0] < CPU_EVERY or not budget.active:
            return
        before, self._cpu = self._cpu, (now, self._machine.cpu_stall())
        if before[0]:
            budget.overcommit = fit.overcommit(
                budget.overcommit, _share(before, self._cpu), waiting=bool(budget.waiting)
            )

    # --- learning -------------------------------------------------------------------------------------
    def _learn(self, seen: list[Seen], now: float) -> None:
        """Follow every job that has a worker for itself; when it is gone, it has told what it needs."""
        running = {}
        for worker in seen:
            if worker.engine.options.concurrency > 1 or not worker.running:
                continue
            [(task, _), *_] = worker.running
            task.peak = max(task.peak, worker.own)
            cpu = cpu_seconds(worker.pid) if task.need is not None and task.need.cpu else 0.0
            first = self._running.get(task.job.id)
            if first is None or first[0] is not task:
                first = (task, now, cpu)
            elif cpu:
                self._spans[task.job.id] = (cpu - first[2]) / max(now - first[1], 1e-6)
            running[task.job.id] = first
        for name, (task, since, _) in self._running.items():
            if name not in running:
                cores = self._spans.pop(name, None)
                self._state.budget.saw_end(task, cores if now - since >= LEAST_SPAN else None)
        self._running = running

    # --- when memory runs short -----------------------------------------------------------------------
    def _let_fat_ones_go(self, seen: list[Seen]) -> None:
        """Idle workers that keep memory which others need are replaced when they are next wanted. They must
        have been seen idle before: a job may have begun between the two halves of a look."""
        fat = {(one.pid, one.fed_at): one for one in seen if not one.running and one.own >= FAT}
        for name in fat.keys() & self._fat:
            fat[name].engine.recycle(fat[name].pid)
        self._fat = set(fat)

    def _stop_one(self, seen: list[Seen], level: Level) -> None:
        by_name = {task.job.id: (worker, task) for worker in seen for task, _ in worker.running}
        chosen = memory_shortage.victim(
            memory_shortage.Holder(
                task.job.id,
                worker.own // len(worker.running),
                0 if task.need is None else task.need.memory,
                since,
                retriable=task.job.lost + 1 < task.job.options.max_lost,
            )
            for worker in seen
            for task, since in worker.running
            if not task.done() and not task.preempted
        )
        if chosen is None:
            return
        worker, task = by_name[chosen]
        task.preempted = (
            f"stopped by its node, whose memory ran out: {shown_size(level.used)} of "
            f"{shown_size(level.limit)} were used, {shown_size(worker.own)} of it by this job's worker"
        )
        logger.warning("Job %s (%s) is %s", task.job.id, task.job.task, task.preempted)
        task.swells = True
        worker.pool.kill(task)


def fleet_of(nodes: Iterable[NodeRecord], own: str) -> list[tuple[frozenset[str], fit.Budget]]:
    """What the other nodes serve and have, by their own word; one that says nothing may have anything."""
    found = []
    for node in nodes:
        if node.id == own or node.sealed or node.lease_left <= 0:
            continue
        try:
            info = msgspec.json.decode(node.info, type=Info)
        except (msgspec.DecodeError, RecursionError):
            continue
        has = {"memory": float(NO_LIMIT), **info.budget}
        memory = int(has.pop("memory"))
        found.append((frozenset(info.queues), fit.Budget(memory, tokens=has)))
    return found


class Info(msgspec.Struct):
    """What a node tells others about itself, as far as it matters here."""

    queues: list[str] = []
    budget: dict[str, float] = {}


def _by_job(seen: Iterable[Seen]) -> Mapping[str, int]:
    """The memory of each job; jobs that share a worker are counted up to what they were given."""
    found: dict[str, int] = {}
    for worker in seen:
        left = worker.own
        for task, _ in worker.running:
            given = task.need.memory if task.need is not None else 0
            taken = min(left, given) if len(worker.running) > 1 else left
            found[task.job.id] = taken
            left -= taken
    return found


def _share(before: tuple[float, float | None], after: tuple[float, float | None]) -> float | None:
    """The share of the time between two readings that was lost."""
    if before[1] is None or after[1] is None or after[0] <= before[0]:
        return None
    return max(0.0, after[1] - before[1]) / (after[0] - before[0])
