"""Charts of a simulation: a few lines for a terminal, and a picture where matplotlib is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from millpond.errors import OptionError
from millpond.simulate.records import Minute

BARS = " ▁▂▃▄▅▆▇█"
WIDTH, HEIGHT = 72, 6
BLUE, GREY, RED = "#0072B2", "#8A8F98", "#D55E00"


def lines(title: str, values: Sequence[float], unit: str = "") -> list[str]:
    """A bar chart in a few lines of text, at most WIDTH columns wide."""
    columns = _folded(values, WIDTH)
    top = max(columns, default=0.0) or 1.0
    shown = []
    for row in range(HEIGHT, 0, -1):
        cells = (max(0.0, min(1.0, value / top * HEIGHT - (row - 1))) for value in columns)
        label = f"{top:8.4g}" if row == HEIGHT else " " * 8
        shown.append(f"{label} │" + "".join(BARS[round(cell * 8)] for cell in cells))
    return [f"{title}{f', {unit}' if unit else ''}", *shown, " " * 8 + " └" + "─" * len(columns)]


def _folded(values: Sequence[float], width: int) -> list[float]:
    """At most `width` values, each the highest of its stretch: a peak must not vanish."""
    if len(values) <= width:
        return list(values)
    edges = [index * len(values) // width for index in range(width + 1)]
    return [max(values[low:high]) for low, high in pairwise(edges)]


def draw(path: Path, minutes: Sequence[Minute], max_wait: float, title: str) -> None:
    """Write a picture: arrivals, workers and the worst wait of each minute."""
    try:
        matplotlib: Any = import_module("matplotlib")
        matplotlib.use("Agg")
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise OptionError(
            f"a picture needs matplotlib ({error}): pip install 'millpond[charts]', or leave --chart out"
        ) from error
    hours = [minute.minute / 60 for minute in minutes]
    figure, (load, workers, waits) = pyplot.subplots(3, 1, figsize=(10, 7), sharex=True)
    load.fill_between(hours, [minute.arrivals for minute in minutes], color=GREY, linewidth=0)
    load.set_ylabel("jobs a minute")
    workers.fill_between(hours, [minute.workers for minute in minutes], color=BLUE, linewidth=0, step="mid")
    workers.set_ylabel("workers")
    waits.plot(hours, [minute.worst_wait for minute in minutes], color=RED, linewidth=0.8)
    waits.axhline(max_wait, color=GREY, linestyle="--", linewidth=0.8)
    waits.set_ylabel("worst wait, s")
    waits.set_xlabel("hours")
    load.set_title(title)
    for axis in (load, workers, waits):
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=150, facecolor="white")
    except (OSError, ValueError) as error:
        raise OptionError(f"cannot write the picture {path}: {error}") from error
    finally:
        pyplot.close(figure)
