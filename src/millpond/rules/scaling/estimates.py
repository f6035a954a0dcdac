"""How fast jobs of each task arrive and how long they take, learned from what has been seen.

Values in, values out; nothing here reads a clock. One absurd run moves an estimate little, a run that has
not ended counts from the moment it is longer than usual, and what was learned can be stored and read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from millpond.rules.scaling.records import TaskLoad

FAST, SLOW = 10.0, 60.0  # seconds over which arrivals are averaged; the larger of the two counts
MEMORY = 64.0  # runs that a mean stands for: older ones fade
WINSOR = 10.0  # a run counts as at most this many times the mean
PRIOR = 1.0  # seconds that an unknown task is thought to take
KNOWN = 20  # runs after which a task has a p99
POISON_TIMES, POISON_LEAST = 5.0, 60.0  # a run this many p99s long, and at least this many seconds
P99 = 2.33  # standard deviations of the logarithm
MOST_TASKS = 1000  # remembered in one pool; those not seen for longest are forgotten
ANY_SPREAD = 1.0  # of the logarithm, while nobody knows: as much as the seconds of most tasks vary
ANY = ""  # the task of jobs of which only the queue is known
SHORTEST = 1e-6


class TaskEstimate(NamedTuple):
    """One task."""

    fast: float = 0.0
    slow: float = 0.0
    mean: float = PRIOR
    weight: float = 0.0  # runs behind the mean, at most MEMORY
    middle: float = 0.0  # of the logarithm: its mean
    spread: float = 0.0  # and its variance

    @property
    def rate(self) -> float:
        """Arrivals a second: quick to rise, slow to be forgotten."""
        return max(self.fast, self.slow)

    @property
    def poison_after(self) -> float:
        """The seconds after which a run tells nothing about the others."""
        if self.weight < KNOWN:
            return math.inf
        p99 = math.exp(min(50.0, self.middle + P99 * math.sqrt(self.spread)))
        return max(POISON_LEAST, POISON_TIMES * p99, WINSOR * self.mean)

    def arrived(self, rate: float, elapsed: float) -> TaskEstimate:
        """After `elapsed` seconds in which jobs arrived at this rate."""
        fast = self.fast + (rate - self.fast) * -math.expm1(-elapsed / FAST)
        slow = self.slow + (rate - self.slow) * -math.expm1(-elapsed / SLOW)
        return TaskEstimate(fast, slow, *self[2:])

    def finished(self, seconds: float) -> TaskEstimate:
        """After one more run."""
        seconds = max(seconds, SHORTEST)
        log = math.log(seconds)
        weight = min(self.weight + 1.0, MEMORY)
        step = 1.0 / weight
        clipped = min(seconds, WINSOR * self.mean) if self.weight else seconds
        off = log - self.middle
        return TaskEstimate(
            self.fast,
            self.slow,
            self.mean + (clipped - self.mean) * step,
            weight,
            self.middle + off * step,
            (1.0 - step) * (self.spread + off * off * step),
        )


UNKNOWN = TaskEstimate()


class Loads(NamedTuple):
    """What an Observation needs of the estimates."""

    tasks: tuple[TaskLoad, ...]
    remaining: tuple[float, ...]  # for each running job, in the order given
    poison: tuple[int, ...]  # which of the running jobs are slow poison


class Estimates(NamedTuple):
    """Every task of a pool. A new one is made at each look; this one does not change."""

    tasks: Mapping[str, TaskEstimate] = {}
    counted_at: float | None = None

    def after(
        self,
        now: float,
        arrived: Mapping[str, float],
        finished: Iterable[tuple[str, float]] = (),
    ) -> Estimates:
        """What is known at `now`, with what arrived and finished since the last look. A sample of the runs
        is enough.

        A clock that stood still or went back teaches nothing about rates.
        """
        tasks = dict(self.tasks)
        for task, seconds in finished:
            tasks[task] = tasks.get(task, UNKNOWN).finished(seconds)
        elapsed = 0.0 if self.counted_at is None else now - self.counted_at
        if self.counted_at is not None and elapsed <= 0:
            return Estimates(_trimmed(tasks), self.counted_at if elapsed == 0 else now)
        for task in arrived.keys() - tasks.keys():
            tasks[task] = UNKNOWN
        if elapsed:
            for task, known in tasks.items():
                tasks[task] = known.arrived(arrived.get(task, 0) / elapsed, elapsed)
        return Estimates(_trimmed(tasks), now)

    def loads(self, waiting: Mapping[str, int], running: Sequence[tuple[str, float]] = ()) -> Loads:
        """The load of each task, given how many of its jobs wait and which run since how many seconds."""
        usual = self._usual()
        long: dict[str, list[float]] = {}
        remaining, poison = [], []
        for index, (task, elapsed) in enumerate(running):
            known = self.tasks.get(task, UNKNOWN)
            mean = known.mean if known.weight else usual
            if elapsed <= mean:
                remaining.append(mean)
                continue
            remaining.append(elapsed)
            if elapsed > POISON_LEAST and elapsed > known.poison_after:
                poison.append(index)
            else:
                long.setdefault(task, []).append(min(elapsed, WINSOR * mean))
        loads = [
            self._load(name, waiting.get(name, 0), long.get(name, ()), usual)
            for name in {**self.tasks, **waiting, **long}
            if name != ANY
        ]
        if waiting.get(ANY) or ANY in self.tasks:  # nobody knows of which task they are, but they wait
            service = self._mixed({load.task: load.service for load in loads})
            spread = self._mixed({load.task: load.spread for load in loads}) if service else ANY_SPREAD
            rate, number = self.tasks.get(ANY, UNKNOWN).rate, waiting.get(ANY, 0)
            loads.append(TaskLoad(ANY, rate, service or usual, number, spread=spread))
        return Loads(tuple(loads), tuple(remaining), tuple(poison))

    def _load(self, task: str, waiting: int, long: Sequence[float], usual: float) -> TaskLoad:
        known = self.tasks.get(task, UNKNOWN)
        mean = known.mean if known.weight else usual
        if long:  # runs that are longer than the mean already; the first long one counts at once
            weight = max(known.weight, 1.0)
            mean = (mean * weight + sum(long)) / (weight + len(long))
        spread = known.spread if known.weight >= KNOWN else ANY_SPREAD
        return TaskLoad(task, known.rate, mean, waiting, spread)

    def _usual(self) -> float:
        """What a task takes of which nothing is known: what the others take."""
        known = {name: one.mean for name, one in self.tasks.items() if one.weight}
        guess = known.pop(ANY, PRIOR)
        return self._mixed(known) or guess

    def _mixed(self, seconds: Mapping[str, float]) -> float:
        """The mean over tasks, each as often as it comes lately; after a restart, as much as is known of it.
        A task that ran often and comes no more tells nothing about what stands in line."""
        rates = rated = weights = weighed = 0.0
        for name, value in seconds.items():
            known = self.tasks.get(name, UNKNOWN)
            rate, weight = known.rate, known.weight
            rates += rate
            rated += rate * value
            weights += weight
            weighed += weight * value
        if rates > 0:
            return rated / rates
        return weighed / weights if weights else 0.0

    # --- kept over a restart ------------------------------------------------------------------------
    def to_value(self) -> dict[str, Any]:
        """What is worth keeping, for JSON: how long tasks take. Rates are of the moment."""
        known = {name: estimate for name, estimate in self.tasks.items() if estimate.weight}
        return {
            name: [round(estimate.mean, 6), estimate.weight, estimate.middle, estimate.spread]
            for name, estimate in known.items()
        }

    @classmethod
    def from_value(cls, value: Any, now: float | None = None) -> Estimates:
        """Read it back; whatever does not look like an estimate is left out. It weighs half: it is old."""
        tasks = {}
        for name, row in value.items() if isinstance(value, dict) else ():
            if not (isinstance(row, list | tuple) and len(row) == 4 and all(_is_number(n) for n in row)):
                continue
            mean, weight, middle, spread = row
            if mean > 0 and weight > 0 and spread >= 0 and abs(middle) < 50:
                seen = min(weight, MEMORY) / 2
                tasks[str(name)] = TaskEstimate(mean=mean, weight=seen, middle=middle, spread=spread)
        return cls(tasks, now)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _trimmed(tasks: dict[str, TaskEstimate]) -> dict[str, TaskEstimate]:
    """At most MOST_TASKS: a store may hold any number of names."""
    if len(tasks) <= MOST_TASKS:
        return tasks
    kept = sorted(tasks, key=lambda name: (tasks[name].rate, tasks[name].weight), reverse=True)
    return {name: tasks[name] for name in kept[:MOST_TASKS]}
