"""What a scaling policy is told of a pool, what it remembers, and what it answers.

Frozen values without behaviour beyond wording. Every policy in `rules.scale` speaks in these, on a node and
in the simulator alike, so that a decision can be stored, replayed and explained from its record.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

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
    completed: int = 0  # runs so far, of which:
    logs: float = 0.0  # the sum of the logarithms of their seconds
    squares: float = 0.0  # the sum of the squares of these
    spread: float = 1.0  # of a run's logarithm, its variance: next to 0 where all take the same time


class Line(Struct, frozen=True, gc=False):
    """All tasks of a pool together."""

    waiting: int
    work: float  # seconds that those in line will take
    rate: float  # arrivals a second
    load: float  # seconds of work that arrive in a second
    spread: float  # of those in line: the sum of how much their seconds vary
    completed: int
    logs: float
    squares: float


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
        completed, logs, squares = 0, 0.0, 0.0
        for _, arrivals, service, number, runs, log, square, varies in self.tasks:
            if number:
                waiting += number
                work += number * service
                spread += number * varies
            rate += arrivals
            load += arrivals * service
            completed += runs
            logs += log
            squares += square
        return Line(waiting, work, rate, load, spread, completed, logs, squares)


class GainWindow(Struct, frozen=True, gc=False):
    """A stretch of time in which work was waiting: how many worked, what they finished, how long it took."""

    began_at: float
    completed: int  # while it is open: runs before it began; then: runs in it
    logs: float = 0.0  # the same of the sums of logarithms
    squares: float = 0.0
    workers: float = 0.0  # while it is open the sum of samples, then their mean
    samples: int = 0
    rate: float = 0.0  # jobs finished in a second
    log: float = 0.0  # the mean logarithm of their seconds
    error: float = 0.0  # the standard error of that mean


class Gain(Struct, frozen=True):
    """What is known about growth that did not help; see `rules.gain`."""

    cap: float | None = None  # workers beyond which nothing was gained
    moved_at: float = 0.0  # when the cap was set or lifted
    reference: GainWindow | None = None  # with fewer workers than now
    window: GainWindow | None = None  # the one that is open
    before: GainWindow | None = None  # a trial is on, and this was before it
    proven: bool = False  # a trial with fewer workers has finished as much
    quiet_until: float = 0.0  # no trial before
    lift_after: float = 60.0  # seconds after which a few more are tried


class Memory(NamedTuple):
    """What a policy must know of its past. Start with `Memory()`, keep what `decide` returns."""

    decided_at: float | None = None
    starts: float | None = None  # workers that may be started at once; None: a full bucket
    gain: Gain = Gain()
    own: Any = None  # what a policy of another kind remembers


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
    binding: str = ""  # the term that decided: backlog, base, running, demand, min, max, gain, hold, …
    oldest: float = 0.0
    max_wait: float | None = None
    note: str = ""  # for the sentence: why it was held, what the policy counts
    poison: int = 0
    eager: float = 0.1  # seconds after which a job that finds nobody idle is worth another decision
    again: float | None = None  # seconds after which to decide again in any case; None: with the next round
    need: int | None = None  # before the pool and the machine bound it; None: `wanted` is all that is known

    @property
    def start(self) -> int:
        """How many workers to start now."""
        return max(0, self.wanted - self.alive)


class Policy(Protocol):
    """A way to decide. Pure: the same values give the same answer."""

    def decide(self, observation: Observation, memory: Memory, now: float) -> tuple[Decision, Memory]:
        """How many workers there should be."""
