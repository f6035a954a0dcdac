"""One point of a front: a law, with one setting of its knob, on one day. Runs in a worker."""

from functools import lru_cache
from typing import Any, NamedTuple

from millpond.simulate import scenarios
from millpond.simulate.front import candidates, measured
from millpond.simulate.measure import Bound, bound
from millpond.simulate.records import Workload
from millpond.simulate.services import parse

WAITS = (2.0, 5.0, 10.0)  # that are asked for
EVERYTHING = {found.name: found for found in candidates((*WAITS, 20.0))}


class Part(NamedTuple):
    """One law, with one setting of its knob, on one day."""

    scenario: str
    service: str
    chosen: str  # the law and its knob
    max_wait: float
    cost: float


@lru_cache(maxsize=2)
def prepared(scenario: str, service: str, cost: float) -> tuple[Workload, Bound]:
    """A workload and its bound; a worker simulates the same one many times."""
    workload = scenarios.find(scenario).workload(parse(service))
    return workload, bound(workload, cost)


def simulated(part: Part) -> dict[str, Any]:
    """A point of a front, in a worker."""
    scenario = scenarios.find(part.scenario)
    cost = part.cost if scenario.start_cost is None else scenario.start_cost
    workload, limit = prepared(part.scenario, part.service, cost)
    chosen = EVERYTHING[part.chosen]
    wait = chosen.knob if chosen.family == "wait" else part.max_wait
    setting = scenario.setting(wait, part.cost)
    report = measured(chosen, workload, setting, limit)
    return {**report._asdict(), "service": part.service, "scenario": part.scenario}
