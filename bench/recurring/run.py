"""Many recurring tasks on one leader: how long a planning round takes, how late ticks are enqueued.

    make bench-recurring BENCH_ARGS="--tasks 10000 --seconds 60 --store sqlite"

A node plans and runs the ticks of tasks that do nothing, spread over their period, and then of tasks that
are all due at the same instant. Lateness is when the store took the job, minus when it was due.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from millpond import App, Node
from millpond.job import MICROSECONDS
from millpond.orchestrator.planner import Planner
from millpond.orchestrator.tick_ids import instant_of
from millpond.store.opening import open_store
from millpond.store.protocol import Filter
from tests.stores.places import place

AIMS = {"round p99": 0.1, "late p99": 0.25}
rounds: list[float] = []
busy: list[float] = []  # of those, the processor time


def nothing() -> None:
    """What the tasks do."""


def timed(planner: Planner, now: int, real=Planner.round) -> int:
    """A round, with the time it took."""
    began, worked = time.perf_counter(), time.thread_time()
    try:
        return real(planner, now)
    finally:
        rounds.append(time.perf_counter() - began)
        busy.append(time.thread_time() - worked)


@contextmanager
def app_on(store: str, tasks: int, period: float, spread: float) -> Iterator[App]:
    """An app with so many tasks on an empty store."""
    with tempfile.TemporaryDirectory() as folder, place(store, Path(folder)) as url:
        open_store(url).migrate()
        app = App(url)
        app.pool("default", workers=1)
        for number in range(tasks):
            app.orchestrator.register(nothing, name=f"task{number:05}", every=period, jitter=spread)
        yield app
        app.store.close()


def lateness(app: App) -> list[float]:
    """Of every tick, in seconds."""
    found, cursor = [], None
    while True:
        page = app.store.search(Filter(), 1000, cursor)
        for job in page.jobs:
            at = instant_of(job.id, job.task)
            assert at is not None
            found.append((job.created_at - at - app.tasks[job.task].offset) / MICROSECONDS)
        if (cursor := page.cursor) is None:
            return found


def part(values: list[float], share: float) -> float:
    """A quantile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def measure(store: str, tasks: int, period: float, spread: float, seconds: float) -> dict[str, float]:
    """Run for a while and take stock."""
    rounds.clear()
    busy.clear()
    with app_on(store, tasks, period, spread) as app:
        with Node(app):
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


def main() -> None:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--store", action="append", choices=["sqlite", "postgres", "redis"])
    words.add_argument("--tasks", type=int, default=10_000)
    words.add_argument("--period", type=float, default=60.0)
    words.add_argument("--seconds", type=float, default=90.0)
    words.add_argument("--together", type=int, default=1000, help="tasks that are due at the same instant")
    asked = words.parse_args()
    Planner.round = timed  # type: ignore[method-assign,assignment]
    for store in asked.store or ["sqlite", "postgres"]:
        cases = {
            f"{asked.tasks:,} tasks, spread over {asked.period:g} s": (
                asked.tasks,
                asked.period,
                asked.period,
            ),
            f"{asked.together:,} tasks at the same instant": (asked.together, 15.0, 0.0),
        }
        for name, (tasks, period, spread) in cases.items():
            if not tasks:
                continue
            found = measure(store, tasks, period, spread, asked.seconds)
            print(f"\n{store}: {name}")
            for what, value in found.items():
                verdict = (
                    "" if what not in AIMS else "  ok" if value < AIMS[what] else f"  above {AIMS[what]:g}"
                )
                shown = f"{value:,.0f}" if value == int(value) and value > 1 else f"{value * 1000:,.1f} ms"
                print(f"  {what:<10} {shown:>12}{verdict}", flush=True)


if __name__ == "__main__":
    main()
