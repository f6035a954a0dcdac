"""An older commit and this tree in alternation: `make bench-compare REV=…`, or `run.py REV` by hand.

Both use the same interpreter, environment and servers, each its own fresh database. Every second round
begins with the other tree, so that a machine that slows down slows both. Every figure is kept in
build/compare, one JSON line each. Nothing else may run meanwhile.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "bench" / "node"), str(HERE)]

from places import Places  # noqa: E402
from table import Measured, table  # noqa: E402
from trees import FOLDER, Tree, UnknownCommit, both  # noqa: E402

PLACES = ("pool", "sqlite", "postgres", "redis")
STEPS = {"pool": ("pool",), "store": ("drain", "pickup")}
PARTS = {"pool": ("submit", "round trip"), "store": ("drain", "pickup")}
TASKS = 5  # of the pool for each job of a store: they are that much shorter
SINGLES = 200  # jobs of a pickup
LONG = 900.0  # seconds after which a measurement is given up


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that all is cleaned up
    options = _options()
    try:
        with both(options.revision) as (older, newer):
            rows = Comparison(options, older, newer).rows
    except UnknownCommit as error:
        sys.exit(str(error))
    print(f"{options.rounds} rounds in alternation, {options.jobs:,} jobs a drain, {_machine()}\n")
    print(table(older.name, rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("revision", metavar="REV", help="the older commit")
    parser.add_argument("--rounds", type=int, default=5, help="5; fewer say nothing")
    parser.add_argument("--only", default=",".join(PLACES), metavar="NAME,...", help=", ".join(PLACES))
    parser.add_argument("--jobs", type=int, default=20_000, help="of a drain: 20,000")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name in options.only:
        if name not in PLACES:
            parser.error(f"unknown name {name!r}; there are: {', '.join(PLACES)}")
    if options.rounds < 1 or options.jobs < 1:
        parser.error("--rounds and --jobs must be at least 1")
    return options


def _machine() -> str:
    load = f"load at the end {os.getloadavg()[0]:.2f}"
    return f"{len(os.sched_getaffinity(0))} cores shared with the servers, {load}"


class Comparison:
    """Every round of every place, on servers that end with it."""

    def __init__(self, options: argparse.Namespace, older: Tree, newer: Tree) -> None:
        self._jobs, self._trees, self._places = options.jobs, (older, newer), Places()
        self._kept = FOLDER / time.strftime("%Y%m%d-%H%M%S.jsonl")
        self._values: dict[tuple[str, str, str], list[float]] = {}
        try:
            for place in options.only:
                for number in range(options.rounds):
                    self._round(place, number)
        finally:
            self._places.remove()
        self.rows = [
            Measured(place, part, *(self._values[place, part, tree.name] for tree in self._trees))
            for place in options.only
            for part in PARTS[_sort(place)]
        ]
        _report(f"kept: {self._kept.relative_to(ROOT)}")

    def _round(self, place: str, number: int) -> None:
        for step in STEPS[_sort(place)]:
            for tree in self._trees if number % 2 == 0 else self._trees[::-1]:
                figures = self._step(place, step, tree)
                for part, value in figures.items():
                    self._values.setdefault((place, part, tree.name), []).append(value)
                record = {"round": number + 1, "place": place, "tree": tree.name, **figures}
                with self._kept.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                _report("  ".join(f"{name} {_shown(value)}" for name, value in record.items()))

    def _step(self, place: str, step: str, tree: Tree) -> dict[str, float]:
        """One measurement of one tree, in a place where nothing was before."""
        if place == "pool":
            return _run(tree, {}, step, TASKS * self._jobs)
        fresh = self._places.fresh(place)
        url = f"sqlite:///{fresh.url}" if place == "sqlite" else fresh.url
        variables = {"COMPARE_STORE": url, "COMPARE_MARKS": str(fresh.marks)}
        _run(tree, variables, "fill", self._jobs if step == "drain" else 0)
        self._places.settle_down(place)
        return _run(tree, variables, step, self._jobs if step == "drain" else SINGLES)


def _run(tree: Tree, variables: dict[str, str], verb: str, number: int) -> dict[str, float]:
    """Let a tree do its work, and check that it was that tree which did it."""
    source = tree.root / "src"
    environment = os.environ | variables | {"PYTHONPATH": os.pathsep.join((str(source), str(HERE)))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
    done = subprocess.run(
        (sys.executable, str(HERE / "work.py"), verb, str(number)),
        env=environment,
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{tree.name}, {verb}: {done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["package"] != str(source / "millpond"):
        raise RuntimeError(f"{tree.name}: {answer['package']} was measured instead of {source}")
    return dict(answer["figures"])


def _sort(place: str) -> str:
    return "pool" if place == "pool" else "store"


def _shown(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
