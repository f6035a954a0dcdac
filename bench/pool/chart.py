"""The picture of the headline figures: one panel per scenario, our pool in colour."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from peers import OURS, PROCESS_POOLS
from records import Results
from report import number
from values import median

# Blue against grey is told apart by every kind of colour vision, and in print.
OUR_COLOUR, THEIR_COLOUR, INK = "#0072B2", "#B8BCC2", "#30343A"


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    scenario: str
    name: str
    unit: str
    log: bool = True
    loses: bool = False  # a pool that lost innocent tasks gets no bar, however fast it was


PANELS = (
    Panel("No-op tasks by submit\n(higher is better)", "submit", "tasks_s", "/s"),
    Panel("No-op map, default arguments\n(higher is better)", "map", "default", "/s"),
    Panel("10 MB arrays there and back\n(higher is better)", "arrays", "there_and_back", " MB/s"),
    Panel("1 ms tasks by submit: efficiency\n(higher is better)", "cpu", "submit", "", log=False),
    Panel("Round trip p50\n(lower is better)", "latency", "p50_us", " µs"),
    Panel("One task in fifty exits\n(lower is better)", "crash", "seconds", " s", loses=True),
    Panel("Workers recycled every 10 tasks\n(lower is better)", "recycle", "seconds", " s"),
    Panel("8 idle workers, PSS\n(lower is better)", "memory", "total_mib", " MiB", log=False),
)


def draw(results: Results, path: Path) -> None:
    """Write the chart of those panels whose scenarios ran."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    panels = [panel for panel in PANELS if results.ran(panel.scenario)]
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    figure, axes = pyplot.subplots(down, across, figsize=(4.1 * across, 3.0 * down), squeeze=False)
    for place, axis in enumerate(axes.flat):
        if place < len(panels):
            _panel(axis, results, panels[place], labelled=place % across == 0)
        else:
            axis.axis("off")
    figure.tight_layout(w_pad=1.5, h_pad=2.0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    pyplot.close(figure)


def _panel(axis: Any, results: Results, panel: Panel, *, labelled: bool) -> None:
    rows = [(peer.name, peer.label) for peer in PROCESS_POOLS if results.version(peer.name)]
    heights = {peer: _height(results, peer, panel) for peer, _ in rows}
    known = [value for value in heights.values() if value is not None]
    floor = min(known, default=1) / 2 if panel.log else 0
    for place, (peer, _) in enumerate(rows):
        value = heights[peer]
        colour = OUR_COLOUR if peer == OURS else THEIR_COLOUR
        text = _reason(results, peer, panel) if value is None else number(value) + panel.unit
        if value is not None:
            axis.barh(place, value - floor, left=floor, color=colour, height=0.72)
        _caption(axis, text, place, value, floor, ours=peer == OURS)
    _frame(axis, panel, rows, floor, max(known, default=1), labelled=labelled)


def _caption(axis: Any, text: str, place: int, value: float | None, floor: float, *, ours: bool) -> None:
    """The figure at the end of its bar, or in italics why there is no bar."""
    axis.annotate(
        text,
        (floor if value is None else value, place),
        (4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=OUR_COLOUR if ours else INK,
        weight="bold" if ours else "normal",
        style="italic" if value is None else "normal",
    )


def _frame(
    axis: Any,
    panel: Panel,
    rows: list[tuple[str, str]],
    floor: float,
    top: float,
    *,
    labelled: bool,
) -> None:
    """Room for the figures right of the bars, names only on the left edge, no ornament."""
    if panel.log:
        axis.set_xscale("log")
        axis.set_xlim(floor, top * (top / floor) ** 0.45)
    else:
        axis.set_xlim(0, top * 1.35)
    axis.set_yticks(range(len(rows)), [label for _, label in rows] if labelled else [])
    axis.tick_params(axis="y", length=0, labelsize=9, colors=INK)
    axis.set_xticks([])
    axis.minorticks_off()
    axis.set_ylim(len(rows) - 0.5, -0.5)
    scale = "log scale" if panel.log else "linear scale"
    axis.set_title(panel.title, fontsize=10, color=INK, loc="left")
    axis.set_xlabel(scale, fontsize=7, color=THEIR_COLOUR, loc="left", labelpad=2)
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)
    axis.spines["left"].set_color(THEIR_COLOUR)


def _height(results: Results, peer: str, panel: Panel) -> float | None:
    series = results.series(peer, panel.scenario, panel.name)
    if not series or (panel.loses and _lost(results, peer, panel)):
        return None
    return median(series)


def _lost(results: Results, peer: str, panel: Panel) -> str:
    """In words, what a pool that did not come through did; empty when it did."""
    kept = results.series(peer, panel.scenario, "survived")
    innocent = results.series(peer, panel.scenario, "innocent")
    if kept and min(kept) < innocent[0]:
        return f"loses {innocent[0] - median(kept):,.0f} of {innocent[0]:,.0f} good results"
    if any(results.series(peer, panel.scenario, "unanswered")):
        return "leaves callers waiting"
    return ""


def _reason(results: Results, peer: str, panel: Panel) -> str:
    lost = _lost(results, peer, panel) if panel.loses else ""
    return lost or results.trouble(peer, panel.scenario, panel.name)[:40] or "not measured"
