"""Many recurring tasks on one leader: how long a planning round takes, how late ticks are enqueued.

    make bench-recurring BENCH_ARGS="--write"                         also docs/benchmarks-recurring.md
    make bench-recurring BENCH_ARGS="--tasks 10000 --seconds 60 --store sqlite"

A node plans and runs the ticks of tasks that do nothing, spread over their period, and then of tasks that
are all due at the same instant. Lateness is when the store took the job, minus when it was due.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from page import AIMS, Measured, page

from millpond import App, Node
from millpond.job import MICROSECONDS
from millpond.node.process.foreground import rare_collections
from millpond.orchestrator.ledger import RECENT, SHARDS, Entry, Ledger, Recent
from millpond.orchestrator.planner import Planner
from millpond.orchestrator.tick_ids import instant_of, tick_id
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.stores.places import place

ROOT = Path(__file__).parents[2]
rounds: list[float] = []
busy: list[float] = []  # of those, the processor time
begun: list[int] = []  # when each began, by the store's clock


def nothing() -> None:
    """What the tasks do."""


def timed(planner: Planner, now: int, real=Planner.round) -> int:
    """A round, with the time it took."""
    begun.append(now)
    began, worked = time.perf_counter(), time.thread_time()
    try:
        return real(planner, now)
    finally:
        rounds.append(time.perf_counter() - began)
        busy.append(time.thread_time() - worked)


@contextmanager
def app_on(store: str, tasks: int, period: float, spread: float) -> Iterator[App]:
    """An app with so many tasks on an empty store."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, place(store, Path(folder)) as url:
        open_store(url).migrate()
        app = App(url)
        app.pool("default", workers=1)
        for number in range(tasks):
            app.orchestrator.register(nothing, name=f"task{number:05}", every=period, jitter=spread)
        remember(app, round(period * MICROSECONDS))
        yield app
        app.store.close()


def remember(app: App, period: int) -> None:
    """As if all had run for long: what is remembered of each task is as much as it will ever be."""
    now = app.orchestrator.now()
    ledger = Ledger(app.store, app.name)
    for name, task in app.orchestrator.tasks.items():
        last = (now - task.offset) // period * period
        instants = range(last - (RECENT - 1) * period, last + 1, period)
        recent = tuple(Recent(at, "completed") for at in instants)
        ran = Entry(last, started_at=now, succeeded_at=now, succeeded=last, recent=recent, late=0.001)
        ran.job = tick_id(name, last)
        ledger.put(name, ran)
    for shard in range(SHARDS):
        ledger.flush(shard)


def lateness(app: App) -> list[float]:
    """Of every tick that was due when somebody planned, in seconds."""
    found, cursor = [], None
    while True:
        page = app.store.search(Filter(), 1000, cursor)
        for job in page.jobs:
            at = instant_of(job.id, job.task)
            assert at is not None
            due_at = at + app.tasks[job.task].offset
            if due_at >= begun[0]:
                found.append((job.created_at - due_at) / MICROSECONDS)
        if (cursor := page.cursor) is None:
            return found


def part(values: list[float], share: float) -> float:
    """A quantile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def measure(store: str, tasks: int, period: float, spread: float, seconds: float) -> dict[str, float]:
    """Run for a while and take stock."""
    for values in (rounds, busy, begun):
        values.clear()
    with app_on(store, tasks, period, spread) as app:
        with rare_collections(), Node(app):  # as `millpond run` has it
            threading.Event().wait(seconds)
        late = lateness(app)
        expected = tasks * int(seconds / period)
    return {
        "ticks": len(late),
        "expected": expected,
        "rounds": len(rounds),
        "round p50": part(rounds, 0.5),
        "round p99": part(rounds, 0.99),
        "round max": max(rounds),
        "cpu p99": part(busy, 0.99),
        "cpu max": max(busy),
        "late p50": part(late, 0.5),
        "late p99": part(late, 0.99),
        "late max": max(late),
    }


def cases(asked: argparse.Namespace) -> dict[str, tuple[int, float, float]]:
    """What to measure: tasks, period, spread."""
    spread = f"{asked.tasks:,} tasks, spread over {asked.period:g} s"
    together = f"{asked.together:,} tasks at the same instant"
    chosen = {spread: (asked.tasks, asked.period, asked.period), together: (asked.together, 15.0, 0.0)}
    return {name: case for name, case in chosen.items() if case[0]}


def show(found: Measured) -> None:
    """Print a case."""
    print(f"\n{found.store}: {found.case}")
    for what, value in found.values.items():
        verdict = "" if what not in AIMS else "  ok" if value < AIMS[what] else f"  above {AIMS[what]:g}"
        shown = f"{value:,.0f}" if value == int(value) and value > 1 else f"{value * 1000:,.1f} ms"
        print(f"  {what:<10} {shown:>12}{verdict}", flush=True)


def options() -> argparse.Namespace:
    """The words of the command."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--store", action="append", choices=["sqlite", "postgres", "redis"])
    words.add_argument("--tasks", type=int, default=10_000)
    words.add_argument("--period", type=float, default=60.0)
    words.add_argument("--seconds", type=float, default=90.0)
    words.add_argument("--together", type=int, default=1000, help="tasks that are due at the same instant")
    words.add_argument("--write", action="store_true", help="also write docs/benchmarks-recurring.md")
    return words.parse_args()


def main() -> None:
    """Measure and print."""
    asked, load = options(), os.getloadavg()[0]
    Planner.round = timed  # type: ignore[method-assign,assignment]
    found = []
    for store in asked.store or ["sqlite", "postgres", "redis"]:
        for name, case in cases(asked).items():
            found.append(Measured(store, name, measure(store, *case, asked.seconds)))
            show(found[-1])
    if asked.write:
        (ROOT / "docs" / "benchmarks-recurring.md").write_text(page(found, load), encoding="utf-8")


if __name__ == "__main__":
    main()
