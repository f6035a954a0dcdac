"""The table of a comparison: medians, their ratio, and how far the rounds lie apart. It judges nothing."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

HEAD = "| | {older} | this tree | ratio of medians | rounds: lowest..highest ratio | better is |"
PARTS = {
    "submit": ("submit, tasks/s", ",.0f", "more"),
    "round trip": ("round trip, µs", ",.1f", "less"),
    "drain": ("drain, jobs/s", ",.0f", "more"),
    "pickup": ("pickup, ms", ".2f", "less"),
}


class Measured(NamedTuple):
    """One part of one store, or of the pool: a value of each round, in the order of the rounds."""

    place: str
    part: str
    older: Sequence[float]
    newer: Sequence[float]


def table(older: str, rows: Sequence[Measured]) -> str:
    """All rows; each ratio is this tree by the older commit."""
    lines = [HEAD.format(older=older), "| --- | ---: | ---: | ---: | ---: | --- |"]
    return "\n".join([*lines, *(_row(row) for row in rows if row.older and row.newer)])


def _row(row: Measured) -> str:
    name, form, better = PARTS[row.part]
    before, after = statistics.median(row.older), statistics.median(row.newer)
    ratios = [new / old for old, new in zip(row.older, row.newer, strict=True)]
    cells = (
        f"{row.place}: {name}",
        format(before, form),
        format(after, form),
        f"{after / before:.3f}",
        f"{min(ratios):.3f}..{max(ratios):.3f}",
        better,
    )
    return f"| {' | '.join(cells)} |"
