"""The scaling benchmark: every law simulated on the same days, the cost of deciding, and a real node.

Parts: sim, decision, trace (a compressed day on a node beside its simulation), rush (50,000 jobs at once).
Each part's results are kept in build/bench-scale, and the page is made of all of them: `--only trace,rush`
runs these two again and leaves the others' results as they are. Run by `make bench-scale`.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

import kept  # noqa: E402
import page  # noqa: E402
import picture  # noqa: E402
import sims  # noqa: E402
from decisions import decision_cost  # noqa: E402
from spawn import start_cost  # noqa: E402

PARTS = ("sim", "decision", "trace", "rush")
PROGRAMS = {"trace": "live_trace.py", "rush": "live.py"}  # each a process of its own: an app has one store


def main() -> None:
    """Measure, print, and write."""
    options = _options()
    began = time.monotonic()
    if "sim" in options.only:
        given: float | None = options.start_cost
        kept.write("start", {"seconds": given or start_cost(), "given": given is not None})
    if "decision" in options.only:
        kept.write("decision", decision_cost())
    start = kept.read("start")
    rows = [] if start is None else _simulated(options, start["seconds"])
    for part in ("trace", "rush"):
        if part in options.only:
            kept.write(part, _program(PROGRAMS[part]))
    text = page.page(rows, {name: kept.read(name) for name in ("start", "decision", "trace", "rush")})
    print(text)
    print(f"{', '.join(options.only)}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.write:
        (ROOT / "docs" / "benchmarks-scale.md").write_text(text + "\n", encoding="utf-8")
        if rows:
            picture.draw(rows, ROOT / "docs" / "pictures" / "bench-scale.png")
        print("written: docs/benchmarks-scale.md and its picture", file=sys.stderr)


def _simulated(options: argparse.Namespace, cost: float) -> list[dict[str, Any]]:
    if "sim" in options.only:
        print(f"a worker starts in {1000 * cost:.1f} ms here", file=sys.stderr)
    parts = sims.wanted(cost, quick=options.quick)
    workers = options.workers if "sim" in options.only else 0
    return sims.rows(parts, cost, workers=workers, again=options.again, seconds=options.seconds)


def _program(name: str) -> dict[str, Any]:
    """Run a live part; what it prints is its result."""
    print(f"running {name}, for some minutes", file=sys.stderr)
    found = subprocess.run([sys.executable, str(HERE / name)], stdout=subprocess.PIPE, check=True)
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help="which parts to run: sim,decision,trace,rush")
    parser.add_argument("--quick", action="store_true", help="one day with exponential run times only")
    parser.add_argument("--workers", type=int, default=2, help="simulations at once")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no simulation after so many")
    parser.add_argument("--start-cost", type=float, help="seconds; measured if it is not given")
    parser.add_argument("--again", action="store_true", help="simulate anew what is on disk")
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks-scale.md")
    options = parser.parse_args()
    options.only = tuple(options.only.split(","))
    unknown = set(options.only) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}: choose of {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    main()
