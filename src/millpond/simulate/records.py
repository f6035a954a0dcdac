"""What is simulated and what comes of it: values only."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from millpond.rules.resources.fit import Budget, Need
from millpond.rules.scaling.records import Decision, Limits, Observation

UNBOUNDED = 1 << 62  # bytes of a budget in which nothing was said about memory
ONLY = "job"  # the task of jobs of which no task is known


class Workload(NamedTuple):
    """Jobs in the order of their arrival: when, for how long, of which task."""

    name: str
    arrivals: array[float]
    services: array[float]
    tasks: Sequence[str] = ()  # empty: all of one task
    note: str = ""
    needs: Mapping[str, Need] = {}  # by task, of a budget; who is not named needs nothing
    peaks: Mapping[str, int] = {}  # by task: bytes that its jobs really hold, where that is something else

    @property
    def names(self) -> frozenset[str]:
        """Its tasks."""
        return frozenset(self.tasks or (ONLY,))

    @property
    def work(self) -> float:
        """Seconds of work in all."""
        return sum(self.services)


class Span(NamedTuple):
    """From one second to another."""

    start: float
    end: float
    task: str = ""


class Faults(NamedTuple):
    """What goes wrong meanwhile."""

    outages: tuple[Span, ...] = ()  # nothing can be measured
    steps: tuple[tuple[float, float], ...] = ()  # (when, seconds the clock behind ages is moved)
    losses: tuple[tuple[float, float], ...] = ()  # (when, share of the workers that die)
    blocked: tuple[Span, ...] = ()  # jobs of a task that may not run
    contended: str | None = None  # the task whose jobs slow each other down ("" for all)
    places: float = 0.0  # how many of them run at full speed


class Setting(NamedTuple):
    """A pool to simulate."""

    limits: Limits
    max_wait: float = 10.0
    faults: Faults = Faults()
    seed: int = 1
    budget: Budget | None = None  # what the jobs may use together; None: as much as they like


class Law(Protocol):
    """A scaling policy, ours or another."""

    def decide(self, observation: Observation, memory: Any, now: float) -> tuple[Decision, Any]:
        """How many workers there should be."""


class Minute(NamedTuple):
    """One minute of a simulation."""

    minute: int
    arrivals: int
    workers: float  # mean
    waiting: int  # at its end
    late: int  # jobs that began in it later than they should have
    worst_wait: float


class Usage(NamedTuple):
    """What became of a budget."""

    budget: Budget
    peak: Mapping[str, float]  # of memory (bytes), cpu (cores) and tokens: in use or promised at once
    waited: Mapping[str, float]  # seconds that jobs waited for each, all of them together

    @property
    def binding(self) -> str | None:
        """What was waited for the most; None if for nothing."""
        return max(self.waited, key=lambda name: self.waited[name]) if any(self.waited.values()) else None


class Run(NamedTuple):
    """What a policy made of a workload."""

    workload: str
    waits: array[float]  # in the order in which jobs began
    worker_seconds: float
    busy_seconds: float
    starts: int
    reversals: int
    most_workers: int
    lost_seconds: float  # work that has to be done again
    last_end: float
    minutes: tuple[Minute, ...]
    decisions: int
    held: int  # decisions that changed nothing because the data were doubtful
    shrunk_in_outage: int  # workers that left while nothing could be measured
    usage: Usage | None = None  # with a budget
