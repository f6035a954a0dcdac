"""What the jobs of a node are given: what they declare, or what jobs of their task were seen to use.

Remembers each task's peaks, and which jobs memory ran out under. It hands nothing out: that is the budget's
business, which calls this under its lock. How a request grows is decided in
`rules/resources/learned_needs.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from millpond.job import Job
from millpond.rules.resources import memory_shortage
from millpond.rules.resources.fit import Need
from millpond.rules.resources.learned_needs import Learned
from millpond.task import fleet_token
from millpond.units import shown_size

if TYPE_CHECKING:
    from millpond.node.jobs.claimed_job import JobTask

logger = logging.getLogger("millpond")
LARGE = (
    32_000_000  # bytes; what is learned below it, or below a hundredth of the budget, is not worth weighing
)
NOISE = 16_000_000  # bytes by which a task may exceed what it declares before anybody is told
MOST_TASKS = 10_000
FIRST_SHARE = 16  # of the budget: the first request of a task of which nothing was known when it ran out


class Means(NamedTuple):
    """What a node has: for jobs that declare, when it is idle; and what it could free for one right now."""

    memory: int
    cores: float
    reach: int  # less than `memory` while other programs use the machine; what is learned is never more


class Needs:
    """What each task needs, as far as it is known."""

    def __init__(self) -> None:
        self._learned: dict[str, Learned] = {}
        self._large: set[str] = set()  # tasks that were learned to need much
        self._stops: dict[str, int] = {}  # how often memory ran out under each job
        self._warned: set[str] = set()

    def weighs(self, job: Job) -> bool:
        """Does this job need something, as far as is known? Asked for every job while any does."""
        return bool(job.options.resources) or job.task in self._large

    def need_of(self, job: Job, means: Means, now: float) -> Need:
        """What a job is given: what it declares, or what its kind was seen to use if that is more."""
        declared = need(own_resources(job))
        learned = self._learned.get(job.task)
        if learned is None:
            return declared
        memory = min(learned.memory_for(declared.memory, now), means.reach)
        if memory <= declared.memory or memory < _worth(means):
            memory = declared.memory
        elif declared.memory and memory > declared.memory + NOISE:
            self._warn(job.task, declared.memory, memory)
        if not declared.cpu:
            return declared._replace(memory=memory)
        cpu = max(declared.cpu, min(learned.cpu_for(declared.cpu), means.cores))
        return Need(cpu, memory, declared.tokens)

    def _warn(self, task: str, declared: int, learned: int) -> None:
        if task in self._warned:
            return
        self._warned.add(task)
        text = shown_size(learned)
        logger.warning(
            "Task %s declares %s of memory and uses more: its jobs count as %s from now on; "
            "declare what they need: Resources(memory=%r)",
            *(task, shown_size(declared), text, text.replace(" ", "")),
        )

    def longest(self, task: str) -> float | None:
        """How long nearly all jobs of a task take."""
        learned = self._learned.get(task)
        return None if learned is None else learned.longest()

    # --- learning -------------------------------------------------------------------------------------
    def saw(self, job: Job, means: Means, *, peak: int, cpu: float | None) -> bool:
        """A job is over that held so much memory at its peak and used so many cores. True if jobs of its
        task are worth weighing for that."""
        now = time.monotonic()
        learned = self._of(job.task).after(now, memory=peak, cpu=cpu)
        return self._keep(job.task, learned, means, now)

    def ran(self, job: Job, seconds: float) -> None:
        """A job that was given something has ended well after so long."""
        self._stops.pop(job.id, None)
        if job.task in self._learned or len(self._learned) < MOST_TASKS:
            self._learned[job.task] = self._of(job.task).after_run(time.monotonic(), seconds)

    def ran_out(self, task: JobTask, means: Means, *, used: int, had_all: bool) -> bool:
        """Memory ran out under a job: the next one of its task is given more. True if there is no more."""
        now, job = time.monotonic(), task.job
        times = self._stops[job.id] = self._stops.get(job.id, 0) + 1
        if len(self._stops) > MOST_TASKS:
            del self._stops[next(iter(self._stops))]
        final, double = memory_shortage.sequel(times, had_all=had_all, by_the_kernel=not task.preempted)
        had = (task.need.memory if task.need else 0) or max(LARGE, means.memory // FIRST_SHARE)
        learned = self._of(job.task).after_shortage(now, had=had, used=used, double=double)
        self._keep(job.task, learned, means, now)
        return final

    # --- over a restart -------------------------------------------------------------------------------
    def known(self) -> dict[str, Learned]:
        """What was learned of tasks that need much, ran out of memory, or use more cores than they say."""
        now = time.monotonic()
        return {
            task: learned
            for task, learned in list(self._learned.items())
            if task in self._large or now < learned.raised_until or learned.cpu.weights
        }

    def remember(self, learned: Mapping[str, Learned], means: Means) -> set[str]:
        """What an earlier node learned; returns the tasks that are worth weighing for it. What was seen
        here since counts more."""
        now = time.monotonic()
        return {
            task
            for task, known in learned.items()
            if task not in self._learned and self._keep(task, known, means, now)
        }

    def _of(self, task: str) -> Learned:
        return self._learned.get(task, Learned())

    def _keep(self, task: str, learned: Learned, means: Means, now: float) -> bool:
        if task in self._learned or len(self._learned) < MOST_TASKS:
            self._learned[task] = learned
        is_large = learned.memory_request(now) >= _worth(means)
        (self._large.add if is_large else self._large.discard)(task)
        return is_large


def _worth(means: Means) -> int:
    return max(LARGE, means.memory // 100)


def need(resources: Mapping[str, float]) -> Need:
    """What was declared, as the rules want it."""
    if not resources:
        return Need()
    tokens = {name: number for name, number in resources.items() if name not in ("cpu", "memory")}
    return Need(resources.get("cpu", 0.0), int(resources.get("memory", 0)), tokens)


def own_resources(job: Job) -> Mapping[str, float]:
    """What a job needs of its node: what the whole fleet shares is held in the store."""
    resources = job.options.resources
    if not job.slots or not resources:
        return resources
    held = {slot.name for slot in job.slots}
    return {name: number for name, number in resources.items() if fleet_token(name) not in held}
