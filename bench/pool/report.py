"""The markdown tables: pure text made from the results, never a measurement of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from peers import OTHER_KINDS, OURS, PROCESS_POOLS
from records import Results
from targets import TARGETS, Target
from values import median


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    scenario: str
    name: str
    cell: Callable[[Results, str, "Column"], str]


def number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: list[float]) -> str:
    """The median, and the range where rounds differ."""
    middle, low, high = (number(each) for each in (median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}-{high})"


def figure(results: Results, peer: str, column: Column) -> str:
    series = results.series(peer, column.scenario, column.name)
    trouble = results.trouble(peer, column.scenario, column.name)
    if not series:
        return trouble
    return f"{spread(series)}; once: {trouble}" if trouble else spread(series)


def kept(results: Results, peer: str, column: Column) -> str:
    """How many of the innocent tasks got their result, and how long the whole took."""
    kept = results.series(peer, column.scenario, "survived")
    if not kept:
        return results.trouble(peer, column.scenario, "survived")
    innocent = results.series(peer, column.scenario, "innocent")[0]
    seconds = spread(results.series(peer, column.scenario, "seconds"))
    waiting = results.series(peer, column.scenario, "unanswered")
    hung = f", {max(waiting):.0f} unanswered" if max(waiting) else ""
    return f"{min(kept):.0f} of {innocent:.0f} in {seconds} s{hung}"


def _columns(scenario: str, **titles: str) -> tuple[Column, ...]:
    return tuple(Column(title, scenario, name, figure) for name, title in titles.items())


TABLES: dict[str, tuple[Column, ...]] = {
    "Throughput and latency": (
        *_columns("submit", tasks_s="no-op submit, tasks/s"),
        *_columns(
            "latency", p50_us="round trip p50, us", p99_us="p99, us", rested_p50_us="p50 rested, us"
        ),
        *_columns("cpu", submit="1 ms tasks by submit, efficiency", map="by map"),
    ),
    "50,000 no-ops by submit, gathered, tasks/s": _columns(
        "gather", result="result()", wait="wait()", as_completed="as_completed()", asyncio="asyncio.gather()"
    ),
    "CPU time per task": (
        *_columns(
            "submit",
            parent_us="no-op: parent, us",
            parent_switches="parent context switches",
            workers_us="workers, us",
        ),
        *_columns("cpu", parent_us="1 ms tasks: parent, us"),
    ),
    "map of no-ops by chunk size, tasks/s": _columns(
        "map",
        default="default",
        chunk_100="100",
        chunk_1000="1,000",
        chunk_2500="2,500",
        chunk_10000="10,000",
    ),
    "large map of no-ops by chunk size, tasks/s": _columns(
        "map-large",
        default="default",
        chunk_1000="1,000",
        chunk_10000="10,000",
        chunk_100000="100,000",
    ),
    "10 MB arrays, MB/s": _columns("arrays", one_way="one way", there_and_back="there and back"),
    "Crashes: other tasks kept, and time": (
        Column("one in fifty exits", "crash", "seconds", kept),
        Column("one in fifty segfaults", "segfault", "seconds", kept),
    ),
    "Hangs, recycling, replacement": (
        *_columns("hang", seconds="one in ten hangs, timeout 0.5 s: s"),
        *_columns("recycle", seconds="recycling after 10 tasks: s"),
        *_columns("replace", killed_ms="killed worker replaced, ms"),
        *_columns("replace", died_ms="died in a task, ms"),
    ),
    "8 idle workers, PSS in MiB": _columns(
        "memory", processes="processes", parent_mib="parent", children_mib="children",
        total_mib="total",
    ),
    "Start, ms": _columns(
        "startup", import_ms="import", first_ms="first result", with_import_ms="import + first",
        close_ms="close",
    ),
}  # fmt: skip
OTHER_TABLE = (
    *_columns("submit", tasks_s="no-op submit, tasks/s", parent_us="parent, us per task"),
    *_columns("latency", p50_us="round trip p50, us", p99_us="p99, us"),
)


def markdown(results: Results) -> str:
    """Every table whose scenarios ran, and the targets last."""
    mains = [(peer.name, peer.label) for peer in PROCESS_POOLS]
    others = [(peer.name, peer.label) for peer in OTHER_KINDS]
    parts = [_table(results, title, mains, columns) for title, columns in TABLES.items()]
    parts.append(_table(results, "Other kinds of workers", others, OTHER_TABLE))
    parts.append(_targets(results))
    return "\n\n".join(part for part in parts if part)


PAGE = """# Benchmarks

## The pool

![Headline figures of the pool and its peers](pictures/bench-pool.png)

Every figure comes from one invocation of the command below. Each run is a fresh process; peers take
turns within a scenario. A cell is the median over the rounds, with the range where they differ; a
ratio is taken within each round. All pools have two workers, eight where memory is measured;
`ProcessPoolExecutor` and `multiprocessing.Pool` use fork, the others their default. "Efficiency" is
the share of two cores that did the tasks' own work. "Rested" is a round trip after 2 ms of silence.
"There and back" counts the bytes of both directions. A replacement is timed from the death of a
worker until a task runs on the new one, while the other worker is busy.

{setting}

{tables}
"""


def page(results: Results) -> str:
    """The page for readers: how it was measured, on what, and every table."""
    rows = [[name, value] for name, value in results.setting.items()]
    return PAGE.format(setting=grid(["setting", "value"], rows), tables=markdown(results))


def _table(results: Results, title: str, peers: Iterable[tuple[str, str]], columns: Iterable[Column]) -> str:
    columns = [column for column in columns if results.ran(column.scenario)]
    rows = []
    for peer, label in peers:
        cells = [column.cell(results, peer, column) for column in columns]
        if any(cells):
            shown = f"**{label}**" if peer.startswith(OURS) else label
            rows.append([shown, results.version(peer), *cells])
    if not rows:
        return ""
    return f"### {title}\n\n" + grid(["pool", "version", *(c.title for c in columns)], rows)


def grid(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _targets(results: Results) -> str:
    rows = [_target(results, target) for target in TARGETS if results.of(OURS, target.scenario)]
    if not rows:
        return ""
    return "### Targets\n\n" + grid(["target", "ratio reached", "needed", "met"], rows)


def _target(results: Results, target: Target) -> list[str]:
    figures = target.figures(results)
    verdict = {True: "yes", False: "**no**", None: "no figure"}[target.met(figures)]
    what = f"{target.what} ({figures.against})" if figures.against else target.what
    return [what, _reached(target, figures.values, figures.trouble), _needed(target), verdict]


def _reached(target: Target, values: list[float], trouble: str) -> str:
    shown = f"{spread(values)}{target.unit}" if values else ""
    return "; ".join(part for part in (shown, trouble) if part)


def _needed(target: Target) -> str:
    return target.needed.replace(">=", "≥").replace("<=", "≤") + target.unit
