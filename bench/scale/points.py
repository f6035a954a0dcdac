"""One point of a front: a law, with one setting of its knob, on one day. Runs in a worker.

A point is kept on disk with a print of the code that made it: the law, the engine and the scenarios. If any
of it has changed since, whether that shows on some day or not, the point is simulated again.
"""

import ast
import zlib
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

from millpond.simulate import scenarios
from millpond.simulate.compare import OURS as OUR_LAW
from millpond.simulate.compare import Candidate, candidates, measured, other
from millpond.simulate.figures import Bound, bound
from millpond.simulate.records import Workload
from millpond.simulate.run_times import parse

WAITS = (2.0, 5.0, 10.0)  # that are asked for
OURS = (2.0, 3.2, 5.0, 7.0, 10.0, 14.0, 20.0)  # swept, too: its p95 is about two thirds of it
SWEPT = {found.name: found for found in candidates(OURS)}
# Keep-alives below a second: not part of what is swept, and in a table of their own
BELOW_A_SECOND = {found.name: found for found in (other("celery", 0.5), other("celery", 0.2))}
EVERYTHING = {**SWEPT, **BELOW_A_SECOND}

SHARED = (
    "rules/scaling/records.py", "rules/pool/size.py",
    "simulate/engine.py", "simulate/records.py", "simulate/counters.py",
    "simulate/figures.py", "simulate/scenarios.py", "simulate/arrivals.py", "simulate/run_times.py",
)  # fmt: skip
OF_OURS = ("rules/scaling/policies.py", "rules/scaling/bounds.py", "rules/scaling/estimates.py")
OF_OTHERS = ("simulate/other_autoscalers.py",)


class Part(NamedTuple):
    """One law, with one setting of its knob, on one day."""

    scenario: str
    service: str
    chosen: str  # the law and its knob
    cost: float
    seed: int
    code: int  # the print of what it was made by


def max_wait_of(chosen: Candidate) -> float:
    """What the pool is asked for; laws that have no such knob are only judged by it."""
    return chosen.knob if chosen.family == OUR_LAW else 10.0


@lru_cache(maxsize=2)
def prepared(scenario: str, service: str, cost: float, seed: int) -> tuple[Workload, Bound]:
    """A workload and its bound; a worker simulates the same one many times."""
    workload = scenarios.find(scenario).workload(parse(service), seed)
    return workload, bound(workload, cost)


def code_of(name: str) -> int:
    """The print of the code behind a law's points."""
    return _print(SHARED + (OF_OURS if EVERYTHING[name].family == OUR_LAW else OF_OTHERS))


@lru_cache(maxsize=2)
def _print(paths: tuple[str, ...]) -> int:
    package = resources.files("millpond")
    found = zlib.crc32(package.joinpath("simulate/data/nasa95_day.csv").read_bytes())
    for path in paths:
        found = zlib.crc32(bare(package.joinpath(path).read_text(encoding="utf-8")).encode(), found)
    return found


def bare(source: str) -> str:
    """What a program says, without its comments, its docstrings and its layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(line: ast.AST) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


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
