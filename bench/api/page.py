"""The tables of this bench, at a terminal and as docs/benchmarks-api.md. Nothing is written by hand."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import NamedTuple

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}
HEAD = """\
# Benchmark of the HTTP API

`make bench-api` fills each store with jobs in every state, starts the real `millpond dashboard` and asks it
over HTTP, one question after the other on one connection. The aim is an answer within 100 ms for the overview
and for lists by state, queue, task, time and id, with a million jobs in the store. A list that finds little
looks at 20,000 jobs, 4,000 on Redis, and gives a cursor instead of an end. Rows marked as a scan read the
data of many jobs or minutes, with a bound.

Then a real node runs a job every 20 ms, alone and before a crowd: 100 event streams of which 20 are never
read, lists in a loop, bodies of a gigabyte, and 10,000 more clients who want a stream.
"""


class Row(NamedTuple):
    """One figure: seconds, unless a unit is named."""

    name: str
    values: tuple[float, ...]
    aim: float | None = None
    unit: str = "ms"

    @property
    def verdict(self) -> str:
        """Against the aim, which is for the figure before the last: p95 of p50, p95, max."""
        if self.aim is None:
            return "-"
        return "met" if self.values[-2 if len(self.values) > 2 else -1] <= self.aim else "not met"

    def cells(self) -> list[str]:
        """The figures as text."""
        return [
            f"{value * 1000:,.1f} ms" if self.unit == "ms" else f"{value:,.4g} {self.unit}"
            for value in self.values
        ]

    def shown_aim(self) -> str:
        """The aim as text."""
        if self.aim is None:
            return "-"
        return f"{self.aim * 1000:g} ms" if self.unit == "ms" else f"{self.aim:g} {self.unit}"


class Measured(NamedTuple):
    """One store."""

    store: str
    jobs: int
    filled: float  # seconds
    questions: Sequence[Row]
    node: Sequence[Row]


def table(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """Rows in the way of Markdown."""
    head = [f"| {' | '.join(('', *columns, 'aim', ''))} |", f"|{'---|' * (len(columns) + 3)}"]
    return head + [
        f"| {' | '.join((row.name, *row.cells(), row.shown_aim(), row.verdict))} |" for row in rows
    ]


def of_store(found: Measured) -> list[str]:
    """Everything about one store."""
    lines = [f"## {NAMES[found.store]}, {found.jobs:,} jobs", ""]
    lines += table(found.questions, ("p50", "p95", "largest"))
    if found.node:
        lines += ["", *table(found.node, ("",))]
    return [*lines, ""]


def page(found: Sequence[Measured], load: float) -> str:
    """The whole page."""
    cores = len(os.sched_getaffinity(0))
    where = (
        f"{cores} cores, shared by the API, the store, the node and whoever asks; {platform.system()} "
        f"{platform.release()}, CPython {platform.python_version()}; load before the run {load:.1f}."
    )
    return "\n".join([HEAD, where, "", *(line for one in found for line in of_store(one))]).rstrip() + "\n"
