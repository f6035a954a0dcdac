"""The built-in scenarios S1 to S19: workloads that autoscalers find hard, the same for every seed.

Each is made of arrivals, a distribution of run times and what goes wrong meanwhile.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.options import nearest
from millpond.rules.scaling.records import Limits
from millpond.simulate import arrivals
from millpond.simulate.records import Faults, Setting, Span, Workload
from millpond.simulate.run_times import Service
from millpond.units import seconds

DAILY = 200_000
HOUR = 3600.0
EXP = Service("exp", 3.0)


class Scenario(NamedTuple):
    """A workload and its surroundings."""

    name: str
    title: str
    arrivals: Callable[[random.Random], array[float]]
    most: int = 64
    faults: Faults = Faults()
    least: int = 1
    start_cost: float | None = None  # None: whatever is asked
    change: Callable[[Workload, random.Random], Workload] | None = None

    def workload(self, service: Service = EXP, seed: int = 1) -> Workload:
        """Its jobs."""
        chance = random.Random(f"{self.name}/{seed}")
        moments = self.arrivals(chance)
        services = service.draw(len(moments), random.Random(f"{self.name}/{seed}/{service}"))
        made = Workload(self.name, moments, services, note=self.title)
        return self.change(made, chance) if self.change else made

    def starting_in(self, cost: float) -> Scenario:
        """The same jobs on workers that take so long to start."""
        return self._replace(start_cost=cost, title=f"workers that take {cost:g} s to start")

    def setting(self, max_wait: float, start_cost: float, workers: tuple[int, int] | None = None) -> Setting:
        """Its pool."""
        least, most = workers or (self.least, self.most)
        cost = start_cost if self.start_cost is None else self.start_cost
        return Setting(Limits(least, most, start_cost=cost), max_wait, self.faults)


def _steady(rate: float, hours: float) -> list[float]:
    return [rate * 60.0] * int(hours * 60)


def _burst(chance: random.Random) -> array[float]:
    shape = _steady(0.5, 2)
    shape[30] += 50_000
    return arrivals.by_rate(shape, chance)


def _on_off(chance: random.Random) -> array[float]:
    return arrivals.by_rate([8.0 if second % 4 < 2 else 0.0 for second in range(3600)], chance, step=1.0)


def _poisoned(made: Workload, chance: random.Random) -> Workload:
    services = array("d", (1800.0 if chance.random() < 0.001 else seconds for seconds in made.services))
    return made._replace(services=services)


def _shifted(made: Workload, _chance: random.Random) -> Workload:
    noon = made.arrivals[-1] / 2
    pairs = zip(made.arrivals, made.services, strict=True)
    return made._replace(services=array("d", (s * 8 if at > noon else s for at, s in pairs)))


def _two_tasks(share: float) -> Callable[[Workload, random.Random], Workload]:
    def change(made: Workload, chance: random.Random) -> Workload:
        return made._replace(tasks=["first" if chance.random() < share else "second" for _ in made.arrivals])

    return change


def _alike(made: Workload, chance: random.Random) -> Workload:
    """Jobs that arrive at the same moment take alike long, and batches differ widely from each other: a mean
    of 1, a squared coefficient of variation of 10."""
    factors = {at: _HEAVY.draw(1, chance)[0] for at in dict.fromkeys(made.arrivals)}
    pairs = zip(made.arrivals, made.services, strict=True)
    return made._replace(services=array("d", (s * factors[at] for at, s in pairs)))


def _shifting(made: Workload, chance: random.Random) -> Workload:
    """Every ten minutes all jobs become longer or shorter."""
    factors = [chance.choice((0.125, 0.5, 2.0, 8.0)) for _ in range(int(made.arrivals[-1] // 600) + 1)]
    pairs = zip(made.arrivals, made.services, strict=True)
    return made._replace(services=array("d", (s * factors[int(at // 600)] for at, s in pairs)))


def _mixed(made: Workload, chance: random.Random) -> Workload:
    """Three tasks in one line, the rare ones long; how rare they are changes every ten minutes."""
    lengths = {"short": 0.1, "middle": 1.0, "long": 20.0}
    usual, other = (85, 13, 2), (50, 45, 5)
    tasks = [chance.choices(tuple(lengths), other if at // 600 % 2 else usual)[0] for at in made.arrivals]
    pairs = zip(tasks, made.services, strict=True)
    return made._replace(tasks=tasks, services=array("d", (s * lengths[task] for task, s in pairs)))


def _everything(made: Workload, chance: random.Random) -> Workload:
    return _mixed(_shifting(_alike(made, chance), chance), chance)


_HEAVY = Service("lognormal", 1.0, 10.0)
_SPIKE = [2.0 * 60] * 25 + [20.0 * 60] * 10 + [2.0 * 60] * 25

ALL = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "S1", "an office day: 200,000 jobs, 40 % of them from 10:00 to 14:00",
            lambda c: arrivals.by_rate(arrivals.scaled(arrivals.office_day(), DAILY), c),
        ),
        Scenario(
            "S2", "the busiest NASA day of 1995, minute by minute, scaled to 200,000 jobs",
            lambda c: arrivals.by_rate(arrivals.scaled(arrivals.nasa_day(), DAILY), c), most=128,
        ),
        Scenario(
            "S3", "a match day: flash crowds of a minute, up to 21 times the mean",
            lambda c: arrivals.by_rate(arrivals.scaled(arrivals.match_day(c), DAILY), c), most=256,
        ),
        Scenario("S4", "50,000 jobs in one minute", _burst, most=25),
        Scenario("S5", "ten times the load for ten minutes", lambda c: arrivals.by_rate(_SPIKE, c), most=128),
        Scenario("S6", "on for two seconds, off for two: made to fool an idle timeout", _on_off),
        Scenario(
            "S7", "slow poison: one job in a thousand takes half an hour",
            lambda c: arrivals.by_rate(_steady(2.3, 12), c), change=_poisoned,
        ),
        Scenario(
            "S8", "at noon every job becomes eight times as long",
            lambda c: arrivals.by_rate(_steady(1.0, 6), c), change=_shifted,
        ),
        Scenario(
            "S9", "a third of the jobs computes on four cores, the rest waits for others",
            lambda c: arrivals.by_rate(_steady(2.0, 2), c), most=32,
            faults=Faults(contended="first", places=4.0), change=_two_tasks(0.33),
        ),
        Scenario(
            "S10", "a downstream that serves 20 at once: more only slow each other down",
            lambda c: arrivals.by_rate([*_steady(4, 0.5), *_steady(8, 1), *_steady(1, 1.5)], c), most=100,
            faults=Faults(contended="", places=20.0),
        ),
        Scenario(
            "S11", "a breaker is open for an hour on the task that has 60 % of the jobs",
            lambda c: arrivals.by_rate(_steady(2.0, 2), c),
            faults=Faults(blocked=(Span(1800.0, 1800.0 + HOUR, "first"),)), change=_two_tasks(0.6),
        ),
        Scenario(
            "S12", "nothing can be measured for five minutes; the clock is stepped by 30 s and back",
            lambda c: arrivals.by_rate(_steady(2.0, 1), c),
            faults=Faults((Span(1200.0, 1500.0),), ((2400.0, 30.0), (2700.0, -60.0), (3000.0, 30.0))),
        ),
        Scenario(
            "S13", "workers that take three seconds to start",
            lambda c: arrivals.by_rate(arrivals.scaled(arrivals.office_day(), DAILY), c), start_cost=3.0,
        ),
        Scenario(
            "S14", "a third of the workers is lost at once",
            lambda c: arrivals.by_rate(_steady(4.0, 1), c), faults=Faults(losses=((1800.0, 0.3),)),
        ),
        Scenario(
            "S15", "very bursty: made-up batches, as dispersed as the Azure LLM code trace, 13 a second",
            lambda c: arrivals.in_batches(_steady(2.5, 1), 7.0, c), most=128,
        ),
        Scenario(
            "S16", "batches of 20 whose jobs take alike long, some batches a hundred times as long as others",
            lambda c: arrivals.in_batches(_steady(4.0, 2), 20.0, c), most=512, change=_alike,
        ),
        Scenario(
            "S17", "every ten minutes all jobs become longer or shorter, up to 64 times",
            lambda c: arrivals.by_rate(_steady(2.0, 3), c), most=256, change=_shifting,
        ),
        Scenario(
            "S18", "three tasks in one line, one 200 times as long as another, in shares that change",
            lambda c: arrivals.by_rate(_steady(4.0, 2), c), most=256, change=_mixed,
        ),
        Scenario(
            "S19", "all of these together: batches, alike run times, shifts, mixed tasks",
            lambda c: arrivals.in_batches(_steady(2.0, 2), 10.0, c), most=2048, change=_everything,
        ),
    )
}  # fmt: skip


def is_scenario(name: str) -> bool:
    """Is there one of this name?"""
    return name.partition(":")[0].upper() in ALL


def find(name: str) -> Scenario:
    """A scenario by its name; `S13:60s` is S13 with workers that take a minute to start."""
    plain, colon, cost = name.partition(":")
    found = ALL.get(plain.upper())
    if found is None:
        raise OptionError(f"there is no scenario {name!r:.40}{nearest(plain.upper(), ALL)}: choose S1 to S19")
    if not colon:
        return found
    if found.start_cost is None:
        raise OptionError(f"{name!r:.40}: only S13 is told how long starting takes; use --start-cost")
    return found.starting_in(seconds(cost, name=f"the start in {name!r:.40}"))
