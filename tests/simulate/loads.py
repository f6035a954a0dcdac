"""Short loads drawn at random: batches, spikes, heavy tails, run times that are alike or shift, mixed tasks.

Each is made of one number, so that a failing one can be drawn again. Nothing is shared by its jobs.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from millpond.rules.scaling.records import Limits
from millpond.simulate.records import Setting, Workload
from millpond.simulate.run_times import Service

WAITS = (1.0, 2.0, 4.0, 10.0, 30.0, 60.0)
STARTS = (0.008, 0.02, 0.1, 0.5)  # seconds, and at most a tenth of the wait
MEANS = (0.02, 60.0)  # of a run, in seconds


class Size(NamedTuple):
    """How large loads are."""

    jobs: tuple[int, int]
    lasts: tuple[float, float]  # seconds
    longest: float  # seconds of a run, so that a simulation ends soon


LARGE = Size((60, 600), (30.0, 400.0), 300.0)
SMALL = Size((40, 120), (10.0, 60.0), 60.0)


class Load(NamedTuple):
    """Jobs, the pool that they are for, and how they were made."""

    workload: Workload
    setting: Setting
    story: str


def drawn(number: int, size: Size = LARGE) -> Load:
    """The load of this number. Its pool may have as many workers as run at once where none waits, or more."""
    chance = random.Random(f"load {number}")
    shape, correlation = chance.choice(list(SHAPES)), chance.choice(list(CORRELATIONS))
    arrivals = array(
        "d", sorted(SHAPES[shape](chance, chance.randint(*size.jobs), chance.uniform(*size.lasts)))
    )
    service = _service(chance)
    services, tasks = CORRELATIONS[correlation](chance, arrivals, service.draw(len(arrivals), chance))
    services = array("d", (min(seconds, size.longest) for seconds in services))
    workload = Workload(f"load {number}", arrivals, services, tasks)
    wait = chance.choice(WAITS)
    start = min(chance.choice(STARTS), wait / 10)
    least = chance.choice((0, 1, 1, 2))
    most = max(least, 1, math.ceil(most_at_once(workload) * chance.choice((1.0, 1.0, 1.5, 3.0))))
    setting = Setting(Limits(least, most, start_cost=start), wait)
    return Load(workload, setting, f"{shape}, {service}, {correlation}, {least} to {most} workers")


def most_at_once(workload: Workload) -> int:
    """Jobs that run at the same time where none waits: as many workers are enough for any wait."""
    steps = [(at, 1) for at in workload.arrivals]
    steps += [(at + s, -1) for at, s in zip(workload.arrivals, workload.services, strict=True)]
    most = level = 0
    for _, step in sorted(steps):
        level += step
        most = max(most, level)
    return most


def _service(chance: random.Random) -> Service:
    mean = math.exp(chance.uniform(math.log(MEANS[0]), math.log(MEANS[1])))
    kind = chance.choice(("exp", "fixed", "lognormal", "lognormal", "pareto"))
    shape = {"lognormal": chance.choice((0.1, 1.0, 10.0, 40.0)), "pareto": chance.choice((1.2, 1.5, 2.0))}
    return Service(kind, mean, shape.get(kind, 0.0))


# --- when jobs come -----------------------------------------------------------------------------------------
def _steady(chance: random.Random, jobs: int, lasts: float) -> list[float]:
    return [chance.uniform(0.0, lasts) for _ in range(jobs)]


def _batches(chance: random.Random, jobs: int, lasts: float) -> list[float]:
    mean = chance.choice((5, 20, 80))
    found: list[float] = []
    while len(found) < jobs:
        found += [chance.uniform(0.0, lasts)] * min(
            1 + int(chance.expovariate(1.0 / mean)), jobs - len(found)
        )
    return found


def _periods(chance: random.Random, jobs: int, lasts: float) -> list[float]:
    """A batch of the same size in each period, as timers make them."""
    number = chance.randint(2, 15)
    return [lasts * batch / number for batch in range(number) for _ in range(jobs // number)]


def _spike(chance: random.Random, jobs: int, lasts: float) -> list[float]:
    at, width = chance.uniform(0.2, 0.8) * lasts, chance.choice((0.01, 0.05, 0.1)) * lasts
    return [
        at + chance.uniform(0.0, width) if chance.random() < 0.7 else chance.uniform(0.0, lasts)
        for _ in range(jobs)
    ]


def _growing(chance: random.Random, jobs: int, lasts: float) -> list[float]:
    return [lasts * math.sqrt(chance.random()) for _ in range(jobs)]


def _at_once(_chance: random.Random, jobs: int, _lasts: float) -> list[float]:
    return [1.0] * jobs


Arrivals = Callable[[random.Random, int, float], list[float]]
SHAPES: dict[str, Arrivals] = {
    "steady": _steady,
    "batches": _batches,
    "periods": _periods,
    "a spike": _spike,
    "growing": _growing,
    "all at once": _at_once,
}


# --- how run times hang together ----------------------------------------------------------------------------
Seconds = tuple[Any, list[str]]


def _apart(_chance: random.Random, _arrivals: array[float], services: array[float]) -> Seconds:
    return services, []


def _alike(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """Those that come together are alike, and differ widely from the others."""
    heavy = Service("lognormal", 1.0, chance.choice((3.0, 10.0, 30.0)))
    factors = {at: heavy.draw(1, chance)[0] for at in dict.fromkeys(arrivals)}
    usual = services[0]
    return array("d", (usual * factors[at] for at in arrivals)), []


def _drifting(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """Each takes about as long as the one before."""
    level, found = 0.0, array("d")
    for seconds in services:
        level = 0.98 * level + chance.gauss(0.0, 0.3)
        found.append(seconds * math.exp(level))
    return found, []


def _shifting(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """At some moments all become longer or shorter."""
    last = arrivals[-1]
    moments = sorted(chance.uniform(0.0, last) for _ in range(chance.choice((1, 2, 4))))
    factors = [chance.choice((0.1, 0.3, 3.0, 10.0)) for _ in range(len(moments) + 1)]
    return (
        array(
            "d",
            (s * factors[sum(at > one for one in moments)] for at, s in zip(arrivals, services, strict=True)),
        ),
        [],
    )


def _mixed(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """Of several tasks, the rare ones long."""
    times = {"short": 0.1, "middle": 1.0, "long": chance.choice((5.0, 20.0))}
    share = chance.choice((1, 5, 20))
    tasks = chance.choices(tuple(times), (70, 30 - share, share), k=len(arrivals))
    return array("d", (s * times[task] for task, s in zip(tasks, services, strict=True))), tasks


def _untold(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """The same, but all under one name."""
    return _mixed(chance, arrivals, services)[0], []


def _late_longs(chance: random.Random, arrivals: array[float], services: array[float]) -> Seconds:
    """Short ones, then a stretch of long ones, then short ones again."""
    last, begin = arrivals[-1], chance.uniform(0.2, 0.7)
    factor = chance.choice((10.0, 30.0))
    return (
        array(
            "d",
            (
                s * factor if begin * last <= at <= (begin + 0.1) * last else s
                for at, s in zip(arrivals, services, strict=True)
            ),
        ),
        [],
    )


Correlated = Callable[[random.Random, Any, Any], Seconds]
CORRELATIONS: dict[str, Correlated] = {
    "independent": _apart,
    "alike": _alike,
    "drifting": _drifting,
    "shifting": _shifting,
    "mixed": _mixed,
    "mixed under one name": _untold,
    "long ones in between": _late_longs,
}
