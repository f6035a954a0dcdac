"""The page about scaling: one table for each promise, from the figures that are on disk."""

# ruff: noqa: E501 - a page is text, and its lines are those of the other pages

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import live_tables
from points import WAITS

Row = dict[str, Any]
Day = tuple[str, str]  # of which shape, with which run times
CHECK, CHOSEN = 2, 1  # seeds: one that nothing was chosen by, and the one that constants were chosen on
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
    rows = _whole(rows)
    lines = [_head(rows, results["start"], results["decision"])]
    days = list(_days(rows))
    if days:
        lines += ["## Beside the bound", "", _BOUND, "", _bound_table(rows, days)]
        lines += ["", "## Beside other laws at the same wait", "", _FRONT, "", _front_table(rows, days)]
    hard = [row for row in rows if row["scenario"] not in NEEDED]
    if hard:
        lines += ["", "## Hard cases", "", _hard_table(hard)]
    lines += live_tables.sections(results["trace"], results["rush"])
    return "\n".join([*lines, "", _LIMITS])


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


def _head(rows: Sequence[Row], start: Row | None, decision: Row | None) -> str:
    text = """# Benchmarks of scaling

Written by `make bench-scale BENCH_ARGS=--write`. The first three tables are of simulations that run the very rules a node runs, on days of
200,000 jobs of 3 s on average: S1 an office day, S2 a real day of a web server minute by minute, S3 a match day with flash crowds of a
minute up to 21 times the mean; with exponential run times, lognormal ones (squared coefficient of variation 10) and Pareto ones (exponent 1.5,
so that their variance has no bound). The last two are of a real node.
"""
    if start is not None and rows:
        how = "was taken to start" if start["given"] else "started on this machine"
        text += f"""
A worker {how} in {1000 * start["seconds"]:.1f} ms (the median, from the pool's wish until it takes tasks); the bound is that of this figure.
Every law is charged {1000 * rows[0]["part"][3]:.0f} ms for each start."""
    if decision is not None:
        text += f" A decision for 32 pools took {1000 * decision['seconds']:.2f} ms."
    return text + "\n\n![worker-hours against waits](pictures/bench-scale.png)\n"


def _of(rows: Sequence[Row], day: Day, family: str, seed: int = CHECK) -> list[Row]:
    return [
        row
        for row in rows
        if (row["scenario"], row["service"]) == day
        and row["policy"].split(" ")[0] == family
        and row["seed"] == seed
    ]


_BOUND = """What the user asks for is `max_wait`. The days are of seed 2; the column *seed 1* has the ratio to the bound on the days on whose stretches the
law's constants were chosen. How long a worker may idle and how old those in line are taken to be was derived, not fitted, but looked at on days
of seed 2, too. Needed: at most 1.25 of the bound, p95 within what was asked, starts below 2 % of the worker-hours, no work lost."""


def _bound_table(rows: Sequence[Row], days: Sequence[Day]) -> str:
    lines = [
        "| day | run times | p95 asked | p95 | p99 | worker-hours | of the bound | seed 1 | starts | starts' share | lost | met |",
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
threshold: seconds; Knative-style: concurrency for each worker). Of the settings whose p95 stays within the wait, the one with the fewest
worker-hours counts, for ours as for theirs: `max_wait` is swept, too. In brackets: how much more than ours. *At most* is what a law could save
that lets its workers never idle: no law spends less than the work itself. Where that is less than what was hoped for, no law can meet it."""


def _front_table(rows: Sequence[Row], days: Sequence[Day]) -> str:
    lines = [
        "| day | run times | p95 within | the work | Millpond | "
        + " | ".join(NAMES[name] for name in FAMILIES)
        + " | fewer than the best | seed 1 | at most | hoped for | met |",
        "|" + "---|" * (10 + len(FAMILIES)),
    ]
    return "\n".join(lines + [_front_row(rows, day, wait) for day, wait in product(days, WAITS)])


class _Saved:
    """Ours beside the best of the others, on one day within one wait."""

    def __init__(self, rows: Sequence[Row], day: Day, wait: float, seed: int) -> None:
        self.mine = _cheapest(_of(rows, day, "wait", seed), wait)
        found = {name: _cheapest(_of(rows, day, name, seed), wait) for name in FAMILIES}
        self.theirs = {name: row["worker_hours"] for name, row in found.items() if row is not None}
        self.fewer = self.possible = 0.0
        if self.mine is not None and self.theirs:
            best = min(self.theirs.values())
            self.fewer = 100 * (1 - self.mine["worker_hours"] / best)
            self.possible = 100 * (1 - self.mine["work_hours"] / best)

    def verdict(self, needed: float) -> str:
        if self.mine is not None and (self.fewer >= needed or not self.theirs):
            return "yes"
        return "no law can" if 0 < self.possible < needed else "**no**"


def _front_row(rows: Sequence[Row], day: Day, wait: float) -> str:
    saved, before = (_Saved(rows, day, wait, seed) for seed in (CHECK, CHOSEN))
    if saved.mine is None:
        return f"| {day[0]} | {day[1]} | {wait:g} s | | not kept |" + " |" * (len(FAMILIES) + 4) + " **no** |"
    hours = saved.mine["worker_hours"]
    cells = [
        f"{saved.theirs[name]:.0f} (+{100 * (saved.theirs[name] / hours - 1):.0f} %)"
        if name in saved.theirs
        else "never"
        for name in FAMILIES
    ]
    needed = NEEDED[day[0]]
    verdicts = {saved.verdict(needed), before.verdict(needed) if before.mine else "yes"}
    met = next(word for word in ("**no**", "no law can", "yes") if word in verdicts)
    beside = f"{before.fewer:.1f} %" if before.mine else ""
    return (
        f"| {day[0]} | {day[1]} | {wait:g} s | {saved.mine['work_hours']:.1f} | {hours:.1f} | "
        + " | ".join(cells)
        + f" | {saved.fewer:.1f} % | {beside} | {saved.possible:.1f} % | ≥ {needed:g} % | {met} |"
    )


def _cheapest(rows: Sequence[Row], wait: float) -> Row | None:
    return min(
        (row for row in rows if row["p95_wait"] <= wait), key=lambda row: row["worker_hours"], default=None
    )


def _hard_table(rows: Sequence[Row]) -> str:
    from millpond.simulate.scenarios import find

    lines = [
        "| | what | p95 | p99 | worker-hours | of the bound | most workers | starts | held | capped by gain | work lost |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(lines + [_hard_row(row, find(row["scenario"]).title) for row in rows])


def _hard_row(row: Row, title: str) -> str:
    return (
        f"| {row['scenario']} | {title} | {row['p95_wait']:.1f} s | {row['p99_wait']:.1f} s | "
        f"{row['worker_hours']:.1f} | {row['ratio_to_bound']:.2f} | {row['most_workers']} | "
        f"{row['starts']:,} | {row['held']} | {row['gain_capped']} | {row['work_lost']:.0f} s |"
    )


_LIMITS = """## How to read it

- The bound is what a clairvoyant operator spends who lets nobody wait: every second of work, and between two jobs of a worker the
  cheaper of idling and starting again. Waiting allows to spend a little less than it, never less than the work itself.
- The other laws are restated from their documentation and idealised: full sight of the queue, our start-up time, workers that finish
  what they run. They are not the products. Only the knob named above is swept; the rest has its documented default.
- Where long waits are accepted every law comes near the work itself, and nobody can be far below the best of the others.
- Knative-style settings above one job for each worker are a stretch of that law; they are its best, so they count here.
- Celery's keep-alive is swept from 1 s, the rhythm of its own loop, to 5 s; its default is 30 s. Its restatement sees the whole queue,
  which the real one does not. Where a worker starts in milliseconds, one that is started for each job and leaves at once is hard to
  beat: a keep-alive of half a second would need about 187 worker-hours on S1 and S2 with exponential run times.
- Ours keeps about a third of the wait it is asked for in hand, so in the second table 1.4 times the wait is its cheapest setting.
- What ours spends above the work is mostly that a worker idles for 0.1 s before it leaves. A start takes less, but on a node a round trip to the store
  lies between two jobs; so the simulated worker idles as long as a real one does.
- In S10 jobs slow each other down beyond 20 at once, so more workers finish nothing sooner: the bound knows nothing of that."""
