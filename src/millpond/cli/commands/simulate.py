"""`millpond simulate`: what a policy would make of a workload, in seconds instead of days.

Reads a trace, a built-in scenario or the app's own history; changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from millpond.cli.context import Session, shared
from millpond.errors import OptionError
from millpond.units import seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.simulate.compare import Best
    from millpond.simulate.figures import Report
    from millpond.simulate.records import Run, Setting, Usage, Workload
    from millpond.simulate.run_times import Service

START_COST = 0.02
MANY = 50_000  # jobs whose simulation people notice


class Asked(NamedTuple):
    """The options."""

    trace: Path | None
    scenario: str | None
    history: str | None
    queue: str | None
    service: str | None
    max_wait: str
    workers: str | None
    policy: str
    start_cost: str
    scale: float
    seed: int
    budget: str | None
    need: tuple[str, ...]
    peak: tuple[str, ...]


@click.command("simulate")
@click.argument("trace", required=False, type=click.Path(path_type=Path))
@click.option("--scenario", metavar="S1", help="A built-in scenario, S1 to S19, instead of a trace.")
@click.option("--history", metavar="1d", help="What this app had in so long, instead of a trace.")
@click.option("--queue", help="With --history: one queue.")
@click.option("--service", metavar="exp:3s", help="How long jobs take: exp, lognormal, pareto, fixed.")
@click.option("--max-wait", default="10s", show_default=True, help="The 95th-percentile wait people accept.")
@click.option("--workers", metavar="MIN:MAX", help="The size the pool may have.")
@click.option("--policy", default="wait", show_default=True, help="wait, depth:UP:DOWN, fixed:N, keda:5, …")
@click.option("--start-cost", default=f"{START_COST}s", show_default=True, help="Of a worker.")
@click.option("--scale", default=1.0, show_default=True, help="Multiply the counts of a trace of counts.")
@click.option("--seed", default=1, show_default=True, help="Another draw of what is random.")
@click.option("--budget", metavar="memory=8GB,cpu=4", help="What jobs may use together.")
@click.option("--need", multiple=True, metavar="TASK:memory=2GB,cpu=1", help="Of the budget; repeatable.")
@click.option("--peak", multiple=True, metavar="TASK:3GB", help="What its jobs really hold; repeatable.")
@click.option("--compare", is_flag=True, help="Compare waits and other autoscalers' laws.")
@click.option("--chart", metavar="FILE", type=click.Path(path_type=Path), help="Also write a picture.")
@shared
@click.pass_obj
def command(session: Session, /, compare: bool, chart: Path | None, **options: Any) -> None:
    """Replay a workload through a scaling policy.

    A TRACE is a CSV file: second,count or minute,count; or one row for each job with arrival, and if known
    service and task.
    """
    asked = Asked(**options)
    from millpond.simulate.figures import bound, report
    from millpond.simulate.policies import parse
    from millpond.simulate.simulation import simulate

    workload, setting = _rationed(*_subject(session, asked), asked)
    law = parse(asked.policy, setting.max_wait)
    _announce(session, workload, compare=compare)
    limit = bound(workload, setting.limits.start_cost)
    run = simulate(workload, law, setting)
    figures = report(asked.policy, run, setting, limit)
    others = _compared(workload, setting) if compare else []
    if chart is not None:
        from millpond.simulate.chart import draw

        draw(chart, run.minutes, setting.max_wait, f"{workload.name}: {asked.policy}")
    document = figures.document()
    if compare:
        document["comparison"] = [found.document() for found in others]
    session.answer(document, lambda: _shown(figures, run, workload, others))


def _announce(session: Session, workload: Workload, *, compare: bool) -> None:
    """Silence of ten seconds and more is taken for a program that hangs."""
    jobs = len(workload.services)
    if compare or jobs >= MANY:
        each = ", once for each setting of each law" if compare else ""
        session.note(f"{jobs:,} jobs are simulated{each}; this takes a while")


# --- what to simulate --------------------------------------------------------------------------------------
def _subject(session: Session, asked: Asked) -> tuple[Workload, Setting]:
    from millpond.rules.scaling.records import Limits
    from millpond.simulate.records import Setting
    from millpond.simulate.run_times import Service, parse
    from millpond.simulate.scenarios import is_scenario

    if sum(source is not None for source in (asked.trace, asked.scenario, asked.history)) != 1:
        raise click.UsageError("name one workload: a TRACE file, --scenario S1 or --history 1d")
    if asked.trace is not None and is_scenario(asked.trace.name) and not asked.trace.exists():
        asked = asked._replace(trace=None, scenario=asked.trace.name)  # what else could be meant
    wait = seconds(asked.max_wait, name="--max-wait")
    cost = seconds(asked.start_cost, name="--start-cost")
    if not wait > 0 or not asked.scale > 0:
        raise OptionError("--max-wait and --scale must be above zero")
    if asked.scale != 1.0 and asked.trace is None:
        raise OptionError(
            "--scale multiplies the counts of a trace: leave it out for a scenario or a history"
        )
    service = parse(asked.service) if asked.service else None
    size = _size(asked.workers) if asked.workers else None
    if asked.scenario is not None:
        from millpond.simulate.scenarios import find

        scenario = find(asked.scenario)
        workload = scenario.workload(service or Service("exp", 3.0), asked.seed)
        return workload, scenario.setting(wait, cost, size)
    least, most = size or (1, 64)
    limits = Limits(least, most, start_cost=cost)
    return _given(session, asked, service), Setting(limits, wait, seed=asked.seed)


def _rationed(workload: Workload, setting: Setting, asked: Asked) -> tuple[Workload, Setting]:
    """With what there is to share, and what each task needs of it."""
    from millpond.simulate import needs

    if asked.budget is None:
        if asked.need or asked.peak:
            raise click.UsageError("--need and --peak are parts of a --budget: add one, such as memory=8GB")
        return workload, setting
    workload = needs.rationed(workload, asked.need, asked.peak)
    if not any(workload.needs.values()) and not workload.peaks:
        raise click.UsageError("nobody needs anything of the --budget: add --need memory=2GB,cpu=1")
    return workload, setting._replace(budget=needs.budget(asked.budget))


def _given(session: Session, asked: Asked, service: Service | None) -> Workload:
    if asked.trace is not None:
        from millpond.simulate import traces

        return traces.read(asked.trace, service, asked.seed, asked.scale)
    from millpond.simulate import history

    minutes = max(1, round(seconds(asked.history or "1d", name="--history") / 60))
    return history.read(session.store, asked.queue, minutes, service, asked.seed)


def _size(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdecimal() and (most or least).isdecimal()) or int(most or least) < max(1, int(least)):
        raise OptionError(f"--workers must be such as 1:25 (least and most), not {text!r:.40}")
    return int(least), int(most or least)


def _compared(workload: Workload, setting: Setting) -> list[Best]:
    """Our law at three waits, and each other law at its best for the wait that is asked for."""
    from millpond.pool.executor import Pool
    from millpond.simulate.compare import Candidate, compared, measured
    from millpond.simulate.figures import bound

    limit = bound(workload, setting.limits.start_cost)
    with Pool() as pool:

        def run(chosen: Sequence[Candidate]) -> list[Report]:
            points = [pool.submit(measured, candidate, workload, setting, limit) for candidate in chosen]
            return [point.result() for point in points]

        return compared(run, setting.max_wait, workload.work / len(workload.services))


# --- the answer --------------------------------------------------------------------------------------------
COLUMNS = (
    "policy",
    "p50",
    "p95",
    "p99",
    "kept",
    "worker-hours",
    "at the wait",
    "of the bound",
    "starts",
    "turns",
    "late minutes",
)


def _shown(figures: Report, run: Run, workload: Workload, others: list[Best]) -> list[RenderableType]:
    from millpond.cli.output import table, words
    from millpond.simulate.chart import lines

    title = (
        f"{workload.name}: {figures.jobs:,} jobs, {_hours(figures.work_hours)} hours of work. {workload.note}"
    )
    promise = "kept" if figures.p95_wait <= figures.max_wait else "NOT kept"
    summary = (
        f"asked: 95 of 100 jobs begin within {figures.max_wait:g} s: {promise}. "
        f"At most {figures.most_workers} workers; a clairvoyant operator who lets nobody wait spends "
        f"{_hours(figures.bound_hours)} worker-hours."
    )
    if figures.usage is not None:
        summary += f" {_used(figures.usage)}"
    charts = [
        *lines("jobs", [minute.arrivals for minute in run.minutes], "a minute"),
        *lines("workers", [minute.workers for minute in run.minutes]),
        *lines("worst wait", [minute.worst_wait for minute in run.minutes], "seconds"),
    ]
    rows = [_row(figures, ""), *(_row(found.report, _at_the_wait(found)) for found in others)]
    if any(found.is_edge for found in others):
        summary += " +: the last setting of its law; what a further one would need is not known."
    return [words(title), table(COLUMNS, rows), words(summary), *(words(line) for line in charts)]


def _used(usage: Usage) -> str:
    """What was used of the budget, and what was waited for."""
    from millpond.rules.resources.amounts import amount, shown
    from millpond.simulate.records import UNBOUNDED

    has = {**usage.budget.tokens, "memory": usage.budget.memory, "cpu": usage.budget.cpu}
    parts = [
        f"{shown(name, most)} of {amount(name, has[name])}" if has[name] < UNBOUNDED else amount(name, most)
        for name, most in usage.peak.items()
    ]
    said = f"In use at once, at most: {', '.join(parts)}."
    waits = sorted(usage.waited.items(), key=lambda one: -one[1])
    waited = [f"{seconds:,.0f} s for {name}" for name, seconds in waits if seconds > 0]
    return f"{said} Jobs waited {', '.join(waited) if waited else 'for none of it'}."


def _hours(hours: float) -> str:
    """Three digits that tell something, on a long day as on a short one."""
    return f"{hours:.1f}" if hours >= 100 else f"{hours:.2f}" if hours >= 1 else f"{hours:.3f}"


def _at_the_wait(found: Best) -> str:
    return "never" if found.hours is None else _hours(found.hours) + "+" * found.is_edge


def _row(found: Report, at_the_wait: str) -> tuple[str, ...]:
    return (
        found.policy.replace(" ", ":"),  # as `--policy` takes it
        f"{found.p50_wait:.2f} s",
        f"{found.p95_wait:.2f} s",
        f"{found.p99_wait:.2f} s",
        "yes" if found.p95_wait <= found.max_wait else "no",
        _hours(found.worker_hours),
        at_the_wait,
        f"{found.ratio_to_bound:.3f}",
        f"{found.starts:,}",
        f"{found.reversals:,}",
        str(found.slo_miss_minutes),
    )
