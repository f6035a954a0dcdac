"""The page about scaling: one table for each promise, from the figures that are on disk."""

# ruff: noqa: E501 - a page is text, and its lines are those of the other pages

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import decisions
import live_tables
from points import BELOW_A_SECOND, EVERYTHING, WAITS
from sims import SEEDS
from verdicts import Saved, saved, worst

from millpond.rules.scaling.bounds import LEAST_IDLE

Row = dict[str, Any]
Day = tuple[str, str]  # of which shape, with which run times
CHECK, CHOSEN = SEEDS  # one that nothing was chosen by, and the one that constants were chosen on
NEEDED = {"S1": 10.0, "S2": 15.0, "S3": 10.0}  # per cent fewer worker-hours than the best of the others
FAMILIES = ("latency", "knative", "keda", "celery", "hpa")
NAMES = {
    "latency": "latency threshold",
    "knative": "Knative-style",
    "keda": "KEDA-style",
    "celery": "Celery-style",
    "hpa": "HPA-style",
}


def page(rows: Sequence[Row], results: Mapping[str, Row | None]) -> str:
    """All of it; a part that was never run is left out."""
    below = [row for row in rows if row["policy"] in BELOW_A_SECOND]
    rows = _whole([row for row in rows if row["policy"] not in BELOW_A_SECOND])
    lines = [_head(rows, results["start"])]
    days = list(_days(rows))
    if days:
        lines += ["## Beside the bound", "", _bound_text(rows, days), "", _bound_table(rows, days)]
        margins = _margins(rows, below)
        lines += ["", "## Beside other laws at the same wait", "", _FRONT + _apart(margins)]
        lines += ["", _front_table(rows, days)]
        if margins:
            lines += ["", "## Celery-style below a second", "", _BELOW, "", _below_table(rows, below)]
    hard = [row for row in rows if row["scenario"] not in NEEDED]
    if hard:
        lines += ["", "## Hard cases", "", _hard_table(hard)]
    if results["decision"] is not None:
        lines += ["", "## Deciding, on a node", "", decisions.section(results["decision"])]
    lines += live_tables.sections(results["trace"], results["rush"])
    return "\n".join([*lines, "", _limits(_margins(rows, below), _savings(rows, days), _in_hand(rows, days))])


def _whole(rows: Sequence[Row]) -> list[Row]:
    """Without the days of a seed on which some setting of some law has not been tried that was on others."""
    tried: dict[tuple[str, str, int], set[str]] = {}
    for row in rows:
        tried.setdefault((row["service"], row["scenario"], row["seed"]), set()).add(row["policy"])
    most = max((len(names) for names in tried.values()), default=0)
    whole = {day for day, names in tried.items() if len(names) == most or day[1] not in NEEDED}
    return [row for row in rows if (row["service"], row["scenario"], row["seed"]) in whole]


def _days(rows: Sequence[Row]) -> Iterator[Day]:
    found = {(row["service"], row["scenario"]) for row in rows if row["seed"] == CHECK}
    for service, scenario in sorted(found):
        if scenario in NEEDED:
            yield scenario, service


def _head(rows: Sequence[Row], start: Row | None) -> str:
    text = """# Benchmarks of scaling

Written by `make bench-scale BENCH_ARGS=--write`. All tables but those below a title that names a node are of simulations that run the very rules a node runs, on days of
200,000 jobs of 3 s on average: S1 an office day, S2 a real day of a web server minute by minute, S3 a match day with flash crowds of a
minute up to 21 times the mean; with exponential run times, lognormal ones (squared coefficient of variation 10) and Pareto ones (exponent 1.5,
so that their variance has no bound).
"""
    if start is not None and rows:
        how = "was taken to start" if start["given"] else "started on this machine"
        text += f"""
A worker {how} in {1000 * start["seconds"]:.1f} ms (the median, from the pool's wish until it takes tasks); the bound is that of this figure.
Every law is charged {1000 * rows[0]["part"][3]:.0f} ms for each start.
"""
    return text + "\n![worker-hours against waits](pictures/bench-scale.png)\n"


def _of(rows: Sequence[Row], day: Day, family: str, seed: int = CHECK) -> list[Row]:
    return [
        row
        for row in rows
        if (row["scenario"], row["service"]) == day
        and row["policy"].split(" ")[0] == family
        and row["seed"] == seed
    ]


def _bound_text(rows: Sequence[Row], days: Sequence[Day]) -> str:
    is_whole = all(_of(rows, day, "wait", CHOSEN) for day in days)
    empty = "" if is_whole else " (empty: this run did not simulate them)"
    return f"""What the user asks for is `max_wait`. The days are of seed {CHECK}, which nobody had seen before the law was as it is; the column *seed {CHOSEN}* has the ratio
to the bound on the days on whose stretches the law's constants were chosen{empty}. Needed, on both: at most 1.25 of the bound, p95 within what was asked,
starts below 2 % of the worker-hours, no work lost."""


def _bound_table(rows: Sequence[Row], days: Sequence[Day]) -> str:
    lines = [
        f"| day | run times | p95 asked | p95 | p99 | worker-hours | of the bound | seed {CHOSEN} | starts | starts' share | lost | met |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for day, wait in product(days, WAITS):
        found = {seed: _asked(rows, day, wait, seed) for seed in (CHECK, CHOSEN)}
        if found[CHECK] is not None:
            lines.append(_bound_row(found[CHECK], found[CHOSEN], wait))
    return "\n".join(lines)


def _asked(rows: Sequence[Row], day: Day, wait: float, seed: int) -> Row | None:
    named = [row for row in _of(rows, day, "wait", seed) if row["policy"] == f"wait {wait:g}"]
    return named[0] if named else None


def _bound_row(row: Row, other: Row | None, wait: float) -> str:
    met = all(_keeps(one, wait) for one in (row, other) if one is not None)
    beside = "" if other is None else f"{other['ratio_to_bound']:.3f}"
    return (
        f"| {row['scenario']} | {row['service']} | {wait:g} s | {row['p95_wait']:.1f} s | {row['p99_wait']:.1f} s | "
        f"{row['worker_hours']:.1f} | {row['ratio_to_bound']:.3f} | {beside} | {row['starts']:,} | "
        f"{100 * row['starts_share']:.2f} % | {row['work_lost']:.0f} s | {'yes' if met else '**no**'} |"
    )


def _keeps(row: Row, wait: float) -> bool:
    within = row["ratio_to_bound"] <= 1.25 and row["p95_wait"] <= wait
    return bool(within and row["starts_share"] < 0.02 and row["work_lost"] == 0)


_FRONT = """Each law's knob is swept (KEDA-style: jobs for each replica; HPA-style: utilisation; Celery-style: keep-alive; latency
threshold: seconds; Knative-style: concurrency for each worker; ours: `max_wait`), and the fronts are compared at the same p95: the cheapest
setting that keeps it or, if that is less, what the line says between the last setting that keeps it and the next one; *never*: none of the swept settings keeps it. In brackets: how much
more than ours. *As asked* compares at another p95, at that which ours has when it is asked for this wait. *At most* is what a law could save that lets its workers never idle: no law spends
less than the work itself. Where that is less than what was hoped for, no law can meet it. *Met* is the worse of both seeds, beside Celery's law as it is swept: from 1 s to its default of 30 s."""


def _front_table(rows: Sequence[Row], days: Sequence[Day]) -> str:
    lines = [
        "| day | run times | p95 | the work | Millpond | "
        + " | ".join(NAMES[name] for name in FAMILIES)
        + f" | fewer than the best | seed {CHOSEN} | as asked | at most | hoped for | met |",
        "|" + "---|" * (11 + len(FAMILIES)),
    ]
    return "\n".join(lines + [_front_row(rows, day, wait) for day, wait in product(days, WAITS)])


def _saved(rows: Sequence[Row], day: Day, wait: float, seed: int) -> Saved:
    """Ours beside the others, on one day at one p95."""
    ours = _of(rows, day, "wait", seed)
    others = {name: _points(_of(rows, day, name, seed)) for name in FAMILIES}
    return saved(ours[0]["work_hours"] if ours else 0.0, _points(ours), others, wait)


def _points(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return [(row["p95_wait"], row["worker_hours"]) for row in rows]


def _percent(value: float | None, missing: str = "") -> str:
    return missing if value is None else f"{value:.1f} %"


def _as_asked(rows: Sequence[Row], day: Day, wait: float) -> str:
    """How much fewer at the p95 that ours has if it is asked for this wait."""
    asked = _asked(rows, day, wait, CHECK)
    found = _saved(rows, day, asked["p95_wait"] if asked else wait, CHECK)
    return _percent(found.fewer if asked else None, "none keeps it")


def _front_row(rows: Sequence[Row], day: Day, wait: float) -> str:
    found, before = (_saved(rows, day, wait, seed) for seed in (CHECK, CHOSEN))
    if found.mine is None:
        return f"| {day[0]} | {day[1]} | {wait:g} s | | not kept |" + " |" * (len(FAMILIES) + 5) + " **no** |"
    cells = [
        f"{found.theirs[name]:.0f} ({100 * (found.theirs[name] / found.mine - 1):+.0f} %)"
        if name in found.theirs
        else "never"
        for name in FAMILIES
    ]
    needed = NEEDED[day[0]]
    judged = [found, *([before] if _of(rows, day, "wait", CHOSEN) else [])]
    met = worst([one.verdict(needed) for one in judged])
    return (
        f"| {day[0]} | {day[1]} | {wait:g} s | {found.work:.1f} | {found.mine:.1f} | "
        + " | ".join(cells)
        + f" | {_percent(found.fewer)} | {_percent(before.fewer)} | {_as_asked(rows, day, wait)} | "
        f"{_percent(found.possible)} | ≥ {needed:g} % | {met} |"
    )


# --- Celery's keep-alive below a second --------------------------------------------------------------------
_BELOW = """Celery's keep-alive may be set to parts of a second. Where starting a worker costs next to nothing, as it is charged here, such a pool comes nearer
and nearer to one worker for each job. These settings are not in the table above and do not enter *fewer than the best*. The last three
columns: how much fewer worker-hours ours needs at these p95. Exponential run times."""


def _below_table(rows: Sequence[Row], below: Sequence[Row]) -> str:
    lines = [
        "| day | keep-alive | worker-hours | starts | p95 | "
        + " | ".join(f"ours at {wait:g} s" for wait in WAITS)
        + " |",
        "|" + "---|" * (5 + len(WAITS)),
    ]
    for row in below:
        margins = " | ".join(_percent(_margin(rows, row, wait), "not kept") for wait in WAITS)
        lines.append(
            f"| {row['scenario']} | {EVERYTHING[row['policy']].knob:g} s | {row['worker_hours']:.1f} | {row['starts']:,} | "
            f"{row['p95_wait']:.2f} s | {margins} |"
        )
    return "\n".join(lines)


def _margin(rows: Sequence[Row], row: Row, wait: float) -> float | None:
    """Per cent that ours needs fewer than this setting at this p95."""
    ours = _of(rows, (row["scenario"], row["service"]), "wait", row["seed"])
    return saved(row["work_hours"], _points(ours), {"celery": _points([row])}, wait).fewer


def _margins(rows: Sequence[Row], below: Sequence[Row]) -> list[float]:
    """All of them that there are."""
    found = (_margin(rows, row, wait) for row in below for wait in WAITS)
    return sorted(margin for margin in found if margin is not None)


def _savings(rows: Sequence[Row], days: Sequence[Day]) -> list[float]:
    """How much fewer ours needs than the best of the others, wherever that was compared."""
    found = (_saved(rows, day, wait, CHECK).fewer for day, wait in product(days, WAITS))
    return sorted(fewer for fewer in found if fewer is not None)


def _between(margins: Sequence[float]) -> str:
    """`3.2 to 4.1 % fewer`, or what it is if some are more."""
    low, high = margins[0], margins[-1]
    if low >= 0:
        return f"{low:.1f} to {high:.1f} % fewer"
    return (
        f"{-low:.1f} to {-high:.1f} % more" if high < 0 else f"from {-low:.1f} % more to {high:.1f} % fewer"
    )


def _apart(margins: Sequence[float]) -> str:
    if not margins:
        return ""
    hoped = " or ".join(f"≥ {needed:g} %" for needed in sorted(set(NEEDED.values())))
    return f"""
So a *yes* at {hoped} does not speak of keep-alives below a second, which do not count here: they have the next table, and beside them ours needs
{_between(margins)} worker-hours."""


def _hard_table(rows: Sequence[Row]) -> str:
    from millpond.simulate.scenarios import find

    lines = [
        "| | what | p95 | p99 | worker-hours | of the bound | most workers | starts | held | work lost |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_hard_row(row, find(row["scenario"]).title) for row in rows])


def _hard_row(row: Row, title: str) -> str:
    return (
        f"| {row['scenario']} | {title} | {row['p95_wait']:.1f} s | {row['p99_wait']:.1f} s | "
        f"{row['worker_hours']:.1f} | {row['ratio_to_bound']:.2f} | {row['most_workers']} | "
        f"{row['starts']:,} | {row['held']} | {row['work_lost']:.0f} s |"
    )


def _in_hand(rows: Sequence[Row], days: Sequence[Day]) -> list[float]:
    """Per cent of the wait it is asked for that ours leaves unused, wherever it was asked."""
    found = ((_asked(rows, day, wait, CHECK), wait) for day, wait in product(days, WAITS))
    return sorted(100 * (1 - row["p95_wait"] / wait) for row, wait in found if row is not None)


def _limits(margins: Sequence[float], savings: Sequence[float], in_hand: Sequence[float]) -> str:
    celery = _CELERY
    if margins and savings:
        celery += f""" Below a second, where starting a worker is as good as free, it comes near one worker for each
  job: ours needs {_between(margins)} worker-hours than keep-alives of 0.5 and 0.2 s, and {_between(savings)} than the best of what is swept."""
    if in_hand:
        celery += f"""
- Of the wait it is asked for ours leaves {in_hand[0]:.0f} to {in_hand[-1]:.0f} % in hand, so in the second table it is asked for more than the p95 at which it is compared."""
    return _LIMITS.format(celery=celery, idle=LEAST_IDLE)


_CELERY = """- Celery's keep-alive is 30 s unless it is set, and is swept in whole seconds from 1 s to 30 s. Its event loop looks when a job comes and once in each
  keep-alive, and so does its restatement, which sees the whole queue; the real one does not."""
_LIMITS = """## How to read it

- The bound is what a clairvoyant operator spends who lets nobody wait: every second of work, and between two jobs of a worker the
  cheaper of idling and starting again. Waiting allows to spend a little less than it, never less than the work itself.
- The other laws are restated from their documentation and idealised: full sight of the queue, our start-up time, workers that finish
  what they run. They are not the products. Only the knob named above is swept; the rest has its documented default, but for the latency
  threshold: that it goes down by one every 10 s after a calm of 30 s, and that calm is below a fifth of the threshold, is our choice.
- Where long waits are accepted every law comes near the work itself, and nobody can be far below the best of the others.
- Knative-style settings above one job for each worker are a stretch of that law; they are its best, so they count here.
{celery}
- What ours spends above the work is mostly that a worker idles for {idle:g} s before it leaves. A start takes less, but who
  leaves sooner is started again for jobs that come one after the other; the simulated worker idles as long as a real one does.
- Every pool here has a guaranteed minimum of one worker, which idles while there is nothing at all to run; every law pays for it. *At most* does not count it, so that
  the last tenths of a per cent of what it says cannot be had.
- In S10 jobs slow each other down beyond 20 at once, so more workers finish nothing sooner: the bound knows nothing of that. The law does
  not guess it either; with a token for each of the 20 (`--budget database=20 --need database=1`) it spends 34 worker-hours at a p95 of 694 s."""
