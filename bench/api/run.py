"""The HTTP API with a million jobs in its store: how long answers take, and what a crowd before it costs.

    make bench-api                                        every store, a million jobs each; prints tables
    make bench-api BENCH_ARGS="--write"                   also docs/benchmarks-api.md
    make bench-api BENCH_ARGS="--quick --store sqlite"    a small look

Nothing else may run meanwhile: the crowd, the API, the node and the store share the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from asking import Asker, Times, dashboard, questions
from filling import fill
from page import Measured, Row, of_store, page
from pickup import Memory, Node, crowd, seconds_to_stop, told

from millpond.store.open import open_store
from tests.stores.places import place

ROOT = Path(__file__).parents[2]
WITHIN = 0.1  # seconds: what lists and the overview may take
SCANS = (
    "search: text",
    "dead letters: causes",
    "statistics: 24 h",
)  # these read the data of many jobs or minutes
STARTS = 3


class Sizes:
    """How much of everything."""

    def __init__(self, *, quick: bool) -> None:
        self.jobs = 20_000 if quick else 1_000_000
        self.asked = 5 if quick else 40
        self.seconds = 3.0 if quick else 15.0
        self.clients = 300 if quick else 10_000


def first_overviews(folder: Path, url: str) -> Row:
    """The first question to a server that has just begun."""
    taken: list[float] = []
    for _ in range(STARTS):
        with dashboard(folder, url) as served:
            taken += Asker(served.address).times("overview", 1).values
    return _row("overview: first after the start", Times(tuple(taken)), WITHIN)


def answers(folder: Path, url: str, number: int) -> list[Row]:
    """Every question, again and again."""
    with dashboard(folder, url) as served:
        asker = Asker(served.address)
        return [
            _row(f"{name} (scan)" if name in SCANS else name, asker.times(path, number), _aim(name))
            for name, path in questions(asker).items()
        ]


def _aim(name: str) -> float | None:
    return None if name in SCANS else WITHIN


def _row(name: str, times: Times, aim: float | None) -> Row:
    return Row(name, (times.part(0.5), times.part(0.95), max(times.values)), aim)


def with_node(folder: Path, url: str, sizes: Sizes) -> list[Row]:
    """Pickup of jobs alone and before a crowd, and what the API takes meanwhile."""
    node = Node(folder, url)
    try:
        alone = node.stretch(sizes.seconds)
        with dashboard(folder, url) as served:
            memory = Memory(served.process.pid)
            people = crowd(served, sizes.seconds, sizes.clients)
            time.sleep(1)
            crowded = node.stretch(sizes.seconds - 2)
            seen = told(people)
            memory.stop()
            stop = seconds_to_stop(served)
    finally:
        node.stop()
    before, after = alone.times.part(0.95), crowded.times.part(0.95)
    return [
        Row("pickup of a job, 95 %, without the API", (before,)),
        Row("pickup of a job, 95 %, API before a crowd", (after,), 2 * before),
        Row("jobs that failed", (float(alone.failed + crowded.failed),), 0.0, "jobs"),
        Row("memory of the API, most", (memory.most / (1 << 20),), 256.0, "MiB"),
        Row("event streams served", (float(seen["served"]),), None, "streams"),
        Row("clients refused or let go", (float(seen["refused"] + seen["broken"]),), None, "clients"),
        Row("lists read meanwhile", (float(seen["lists"]),), None, "lists"),
        Row("huge bodies cut off", (float(seen["bodies"]),), None, "bodies"),
        Row("from SIGTERM to the end, streams open", (stop,), 1.0),
    ]


def measure(store: str, sizes: Sizes) -> Measured:
    """One store, from empty."""
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name,
        place(store, Path(name)) as url,
    ):
        folder, opened = Path(name), open_store(url)
        opened.migrate()
        filled = fill(opened, sizes.jobs)
        opened.close()
        print(f"{store}: {sizes.jobs:,} jobs filled in {filled:.0f} s", file=sys.stderr, flush=True)
        asked = [first_overviews(folder, url), *answers(folder, url, sizes.asked)]
        return Measured(store, sizes.jobs, filled, asked, with_node(folder, url, sizes))


def options() -> argparse.Namespace:
    """The words of the command."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--store", action="append", choices=["sqlite", "postgres", "redis"])
    words.add_argument("--quick", action="store_true", help="few jobs, short stretches")
    words.add_argument("--write", action="store_true", help="also write docs/benchmarks-api.md")
    return words.parse_args()


def main() -> None:
    """Measure and print."""
    asked, load = options(), os.getloadavg()[0]
    found = []
    for store in asked.store or ["sqlite", "postgres", "redis"]:
        found.append(measure(store, Sizes(quick=asked.quick)))
        print("\n".join(of_store(found[-1])), flush=True)
    if asked.write:
        (ROOT / "docs" / "benchmarks-api.md").write_text(page(found, load), encoding="utf-8")


if __name__ == "__main__":
    main()
