"""What a scaling policy is told of a pool, what it remembers, and what it answers.

Frozen values without behaviour beyond wording. Every policy in `rules.scale` speaks in these, on a node and
in the simulator alike, so that a decision can be stored, replayed and explained from its record.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct


class Limits(NamedTuple):
    """What a pool may be, whatever its policy."""

    least: int = 1
    most: int = 1
    concurrency: int = 1  # jobs at once in one worker
    warm: int = 0  # idle workers to have beyond the busy ones
    start_cost: float = 0.02  # seconds from the decision to a worker that takes jobs, as measured
    idle_timeout: float | None = None  # what the user asked for; None leaves it to the policy


class TaskLoad(NamedTuple):
    """What one task asks of a pool. Only runnable jobs: due, not parked, not paused, not rate limited, not
    behind an open breaker. Anything else would attract workers that have nothing to do."""

    task: str
    rate: float = 0.0  # arrivals a second
    service: float = 1.0  # mean seconds of a run
    waiting: int = 0
    spread: float = 1.0  # of a run's logarithm, its variance: next to 0 where all take the same time


class Line(Struct, frozen=True, gc=False):
    """All tasks of a pool together."""

    waiting: int
    work: float  # seconds that those in line will take
    rate: float  # arrivals a second
    load: float  # seconds of work that arrive in a second
    spread: float  # of those in line: the sum of how much their seconds vary


class Observation(NamedTuple):
    """A pool at one moment. `now` and every instant are of one clock that does not step."""

    limits: Limits
    tasks: tuple[TaskLoad, ...] = ()
    oldest: float = 0.0  # seconds the oldest runnable job has been waiting, 0 when none waits
    busy: int = 0  # workers with a job
    idle: int = 0
    starting: int = 0
    remaining: tuple[float, ...] = ()  # for each running job the seconds it is expected to take yet
    poison: int = 0  # running jobs that take absurdly long: they hold a place, and tell nothing about others
    cap: int | None = None  # workers that the machine has room for; None when it has plenty
    cap_reason: str = "resources"  # what is scarce: memory, cpu, tokens
    measured_at: float = 0.0  # when this was true
    arrived: int | None = None  # jobs that have come, ever: by its growth the ages of those in line are known
    trouble: str = ""  # why it cannot be trusted, when it cannot

    @property
    def alive(self) -> int:
        """Workers there are, with those on their way: leaving them out starts the same ones again."""
        return self.busy + self.idle + self.starting

    @property
    def waiting(self) -> int:
        """Runnable jobs in line."""
        waiting = 0
        for load in self.tasks:
            waiting += load.waiting
        return waiting

    def line(self) -> Line:
        """The tasks, added up: once for all that a policy asks of them."""
        waiting, work, rate, load, spread = 0, 0.0, 0.0, 0.0, 0.0
        for _, arrivals, service, number, varies in self.tasks:
            if number:
                waiting += number
                work += number * service
                spread += number * varies
            rate += arrivals
            load += arrivals * service
        return Line(waiting, work, rate, load, spread)


Arrivals = tuple[tuple[float, int], ...]


class Memory(NamedTuple):
    """What a policy must know of its past. Start with `Memory()`, keep what `decide` returns."""

    decided_at: float | None = None
    starts: float | None = None  # workers that may be started at once; None: a full bucket
    arrivals: Arrivals = ()  # how many jobs had come at which moments of the last wait
    own: Any = None  # what a policy of another kind remembers


Action = Literal["grow", "shrink", "stay"]


def action_of(current: int, target: int) -> Action:
    """The direction from one size to another."""
    return "grow" if target > current else "shrink" if target < current else "stay"


class Decision(Struct, frozen=True):
    """What to do, and why, in all its terms. Numbers are workers unless they say otherwise."""

    wanted: int  # start `wanted - alive` workers when that is positive
    keep: int  # idle workers may leave after `idle_timeout` while more than this many are alive
    idle_timeout: float
    alive: int
    leave: int = 0  # workers beyond a cap: this many leave, idle ones at once, busy ones when their job ends
    base: float = 0.0  # for the load that keeps coming
    backlog: float = 0.0  # more than there are, for what waits
    demand: int = 0  # busy and waiting: more would have nothing to do
    limit: int = 0  # the smallest of the caps
    binding: str = ""  # the term that decided: backlog, base, running, demand, min, max, hold, …
    oldest: float = 0.0
    max_wait: float | None = None
    note: str = ""  # for the sentence: why it was held, what the policy counts
    poison: int = 0
    eager: float = 0.1  # seconds after which a job that finds nobody idle is worth another decision
    again: float | None = None  # seconds after which to decide again in any case; None: with the next round
    need: int | None = None  # before the pool and the machine bound it; None: `wanted` is all that is known
    queue_depth: int | None = None  # jobs that wait for a worker; None: the policy did not tell
    busy_workers: int | None = None  # the same

    @property
    def current(self) -> int:
        """Workers there are, with those on their way."""
        return self.alive

    @property
    def target(self) -> int:
        """Workers there should be."""
        return min(self.wanted, self.alive - self.leave) if self.leave else self.wanted

    @property
    def action(self) -> Action:
        """What becomes of the pool."""
        return action_of(self.current, self.target)

    @property
    def start(self) -> int:
        """How many workers to start now."""
        return max(0, self.wanted - self.alive)


class Policy(Protocol):
    """A way to decide. Pure: the same values give the same answer."""

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """How many workers there should be."""
