"""The page docs/benchmarks-recurring.md, from what was measured. Nothing on it is written by hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

AIMS = {"round p99": 0.1, "late p99": 0.25}
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}
HEAD = """\
# Benchmark of recurring tasks

`make bench-recurring` has one node plan and run the ticks of tasks that do nothing, and measures two things:
how long a planning round takes, and how late ticks are, from the instant they were due to the instant the
store took their job. The aims are a round under 100 ms and lateness under 250 ms for 99 of 100 ticks, with
10,000 tasks on one leader. What the leader remembers of each task is as much as it ever gets: of 16 runs.
"""
COLUMNS = (
    "| store | round, median | 99 % | processor time of a round, 99 % "
    "| late, median | 99 % | largest | aims |"
)


class Measured(NamedTuple):
    """One case on one store."""

    store: str
    case: str
    values: dict[str, float]

    @property
    def missed(self) -> list[str]:
        """The aims that were not reached."""
        return [name for name, most in AIMS.items() if self.values[name] >= most]


def page(found: Sequence[Measured], load: float) -> str:
    """The whole page."""
    cores = len(os.sched_getaffinity(0))
    lines = [HEAD, f"{cores} cores, shared by node, worker and server; load before the run {load:.1f}.", ""]
    for case in dict.fromkeys(one.case for one in found):
        rows = [one for one in found if one.case == case]
        lines += [f"## {case}", "", COLUMNS, "|---|---|---|---|---|---|---|---|", *map(_row, rows), ""]
    lines.append(
        "Tasks that are all due at the same instant are planned 500 to a round; the aims are not meant for "
        "them. Give tasks with the same period a `jitter`."
    )
    return "\n".join(lines) + "\n"


def _row(one: Measured) -> str:
    names = ("round p50", "round p99", "cpu p99", "late p50", "late p99", "late max")
    cells = [f"{one.values[name] * 1000:,.1f} ms" for name in names]
    verdict = f"missed: {', '.join(one.missed)}" if one.missed else "met"
    return f"| {NAMES[one.store]} | {' | '.join(cells)} | {verdict if 'spread' in one.case else '-'} |"
