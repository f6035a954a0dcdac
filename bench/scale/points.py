"""One point of a front: a law, with one setting of its knob, on one day. Runs in a worker.

A point is kept on disk with a print of how its law behaves on a short stretch of jobs: a law that has changed
since behaves differently there, and its points are simulated again.
"""

import zlib
from functools import lru_cache
from typing import Any, NamedTuple

from millpond.simulate import scenarios
from millpond.simulate.engine import simulate
from millpond.simulate.front import Candidate, candidates, measured
from millpond.simulate.measure import Bound, bound
from millpond.simulate.records import Workload
from millpond.simulate.services import parse

WAITS = (2.0, 5.0, 10.0)  # that are asked for
OURS = (2.0, 2.8, 5.0, 7.0, 10.0, 14.0)  # ours is swept, too: its p95 is about two thirds of what it is asked
EVERYTHING = {found.name: found for found in candidates(OURS)}
STRETCH = slice(60_000, 63_000)  # jobs of an office day, from the late morning on


class Part(NamedTuple):
    """One law, with one setting of its knob, on one day."""

    scenario: str
    service: str
    chosen: str  # the law and its knob
    cost: float
    seed: int
    behaviour: int


def max_wait_of(chosen: Candidate) -> float:
    """What the pool is asked for; laws that have no such knob are only judged by it."""
    return chosen.knob if chosen.family == "wait" else 10.0


@lru_cache(maxsize=2)
def prepared(scenario: str, service: str, cost: float, seed: int) -> tuple[Workload, Bound]:
    """A workload and its bound; a worker simulates the same one many times."""
    workload = scenarios.find(scenario).workload(parse(service), seed)
    return workload, bound(workload, cost)


def behaviour(name: str) -> int:
    """The print of a law."""
    chosen, scenario = EVERYTHING[name], scenarios.find("S1")
    day, _ = prepared("S1", "exp:3s", 0.02, 0)
    begin = day.arrivals[STRETCH.start]
    arrivals = type(day.arrivals)("d", (at - begin for at in day.arrivals[STRETCH]))
    some = Workload("stretch", arrivals, day.services[STRETCH])
    run = simulate(some, chosen.law, scenario.setting(max_wait_of(chosen), 0.02))
    return zlib.crc32(repr((round(run.worker_seconds, 3), run.starts, round(sum(run.waits), 3))).encode())


def bound_hours(part: Part, cost: float) -> float:
    """What the clairvoyant spends on this day if a start costs so much."""
    start_cost = scenarios.find(part.scenario).start_cost
    _, limit = prepared(part.scenario, part.service, cost if start_cost is None else start_cost, part.seed)
    return limit.zero_wait / 3600


def simulated(part: Part) -> dict[str, Any]:
    """A point of a front, in a worker."""
    scenario = scenarios.find(part.scenario)
    cost = part.cost if scenario.start_cost is None else scenario.start_cost
    workload, limit = prepared(part.scenario, part.service, cost, part.seed)
    chosen = EVERYTHING[part.chosen]
    report = measured(chosen, workload, scenario.setting(max_wait_of(chosen), part.cost), limit)
    return {**report._asdict(), "service": part.service, "scenario": part.scenario, "seed": part.seed}
