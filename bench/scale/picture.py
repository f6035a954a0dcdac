"""The picture of the fronts: worker-hours against the p95 wait, a panel for each day, ours in colour."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from page import CHECK, FAMILIES, NAMES, NEEDED, Row
from points import SWEPT

OUR_COLOUR, INK = "#0072B2", "#30343A"
GREYS = {
    "latency": ("#8A8F98", "o"),
    "knative": ("#8A8F98", "s"),
    "keda": ("#8A8F98", "^"),
    "celery": ("#8A8F98", "D"),
    "hpa": ("#8A8F98", "v"),
}
LEAST = 0.02  # seconds: a logarithm has no zero


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write the chart of exponential run times."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    days = sorted({row["scenario"] for row in rows} & set(NEEDED))
    figure, axes = pyplot.subplots(1, len(days), figsize=(4.6 * len(days), 3.8), squeeze=False, sharey=True)
    for axis, day in zip(axes.flat, days, strict=True):
        _panel(
            axis,
            [
                row
                for row in rows
                if row["scenario"] == day
                and row["service"].startswith("exp")
                and row["seed"] == CHECK
                and row["policy"] in SWEPT
            ],
            day,
        )
    axes.flat[0].set_ylabel("worker-hours", color=INK)
    axes.flat[-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    pyplot.close(figure)


def _panel(axis: Any, rows: Sequence[Row], day: str) -> None:
    for name in FAMILIES:
        colour, marker = GREYS[name]
        _front(axis, [row for row in rows if row["policy"].startswith(name)], colour, marker, NAMES[name])
    _front(axis, [row for row in rows if row["policy"].startswith("wait ")], OUR_COLOUR, "o", "Millpond")
    if rows:
        axis.axhline(
            rows[0]["bound_hours"], color=INK, linewidth=0.8, linestyle=":", label="clairvoyant bound"
        )
        axis.axvline(10.0, color=INK, linewidth=0.5, linestyle="--")
    axis.set_xscale("log")
    axis.set_xticks([0.1, 1.0, 10.0], ["0.1", "1", "10"])
    axis.set_xlim(LEAST / 1.5, 40.0)  # a law that never starts anybody is off the chart
    axis.set_xlabel("p95 wait, seconds", color=INK)
    axis.set_title(day, color=INK, fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)


def _front(axis: Any, rows: Sequence[Row], colour: str, marker: str, label: str) -> None:
    points = sorted(
        (max(LEAST, row["p95_wait"]), row["worker_hours"]) for row in rows if row["p95_wait"] < 60
    )
    axis.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=colour,
        marker=marker,
        markersize=5,
        linewidth=1.2,
        label=label,
    )
