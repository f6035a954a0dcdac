"""The simulated part: every law on the same days. What was simulated before is not simulated again.

Every law is charged a round figure for a start, no less than the one measured; the bound is that of the
measured one. So a machine that is a little quicker or slower today needs no new simulations.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from itertools import islice
from typing import Any

import kept
from points import EVERYTHING, SWEPT, Part, bound_hours, code_of, simulated

from millpond import Pool

DAYS = ("S1", "S2", "S3")
SERVICES = ("exp:3s", "lognormal:3s:10", "pareto:3s:1.5")
# A fresh one: nothing was chosen by it, so whoever changes the law takes another; and the one on whose
# stretches the law's constants were chosen
SEEDS = (4, 1)
HARD = (
    "S4",
    "S5",
    "S6",
    "S7",
    "S8",
    "S9",
    "S10",
    "S11",
    "S12",
    "S13",
    "S14",
    "S15",
    "S16",
    "S17",
    "S18",
    "S19",
)
ROUND = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds that are charged


def charged(measured: float) -> float:
    """A round figure that is no less."""
    return next((cost for cost in ROUND if cost >= measured), measured)


def wanted(measured: float, *, quick: bool = False) -> list[Part]:
    """Every simulation that the page needs; those of one day beside each other."""
    cost = charged(measured)
    prints = {name: code_of(name) for name in EVERYTHING}
    days = [(seed, service, day) for seed in SEEDS for service in SERVICES for day in DAYS]
    parts = [
        Part(day, service, chosen, cost, seed, prints[chosen])
        for seed, service, day in (days[:1] if quick else days)
        for chosen in (EVERYTHING if (seed, service) == (SEEDS[0], SERVICES[0]) else SWEPT)
    ]
    ours = "wait 10"
    hard = [Part(name, SERVICES[0], ours, cost, SEEDS[1], prints[ours]) for name in HARD]
    return parts if quick else hard + parts


def rows(
    parts: Iterable[Part], measured: float, *, workers: int, again: bool, seconds: float
) -> list[dict[str, Any]]:
    """The figures of each; each is kept as soon as it is there. None is begun after so many seconds."""
    parts = list(parts)
    done = {} if again else {Part(*row["part"]): row for row in kept.points()}
    missing = [part for part in parts if part not in done]
    if missing and workers:
        for number, row in enumerate(_simulated(missing, workers, time.monotonic() + seconds), 1):
            done[Part(*row["part"])] = row
            kept.add_point(row)
            print(f"\r{number} of {len(missing)} simulated ", end="", file=sys.stderr, flush=True)
    return [_beside_bound(part, done[part], measured) for part in parts if part in done]


def _simulated(missing: Sequence[Part], workers: int, until: float) -> Iterator[dict[str, Any]]:
    """Each as it is done; while there is time, there is always one for every worker."""
    left, running = iter(missing), {}
    with Pool(max_workers=workers) as pool:
        while True:
            if time.monotonic() < until:
                for part in islice(left, 2 * workers - len(running)):
                    running[pool.submit(simulated, part)] = part
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield {**future.result(), "part": running.pop(future)}


def _beside_bound(part: Part, row: dict[str, Any], measured: float) -> dict[str, Any]:
    """With the bound of a start as it was measured."""
    hours = bound_hours(part, measured)
    return {**row, "bound_hours": hours, "ratio_to_bound": row["worker_hours"] / hours}
