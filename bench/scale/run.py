"""The scaling benchmark, simulated part: every law on the same days, compared at the same wait.

Each law's knob is swept; at each wait that is asked for, the cheapest point of a front that keeps it counts.
Run by `make bench-scale`; `--quick` for a look, `--write` to put the result into the docs.
"""

import argparse
import json
import sys
import time
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent)]

import page  # noqa: E402
import picture  # noqa: E402
from decisions import decision_cost  # noqa: E402
from points import EVERYTHING, WAITS, Part, simulated  # noqa: E402
from spawn import start_cost  # noqa: E402

from millpond import Pool  # noqa: E402

DAYS = ("S1", "S2", "S3")
SERVICES = ("exp:3s", "lognormal:3s:10", "pareto:3s:1.5")
HARD = ("S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S14", "S15")


def main() -> None:
    """Measure, print, and write."""
    options = _options()
    began = time.monotonic()
    cost = options.start_cost or start_cost()
    print(
        f"a worker starts in {1000 * cost:.1f} ms here; simulating {', '.join(options.days)}", file=sys.stderr
    )
    told = "was taken to start" if options.start_cost else "started on this machine"
    told += f" in {1000 * cost:.0f} ms"
    parts = _parts(options, cost)
    rows = _rows(parts, options)
    text = page.page(rows, told, decision_cost(), WAITS)
    print(text)
    print(f"{len(rows)} simulations in {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.write:
        (ROOT / "docs" / "benchmarks-scale.md").write_text(text + "\n", encoding="utf-8")
        picture.draw(rows, ROOT / "docs" / "pictures" / "bench-scale.png")
        print("written: docs/benchmarks-scale.md and its picture", file=sys.stderr)


def _rows(parts: list[Part], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every figure; each is kept in the file of results as soon as it is there."""
    kept = Path(options.results) if options.results else None
    known = [json.loads(line) for line in kept.read_text().splitlines()] if kept and kept.exists() else []
    done = {Part(*row["part"]): row for row in known}
    missing = [part for part in parts if part not in done]
    if missing and not options.only_read:
        with Pool(max_workers=options.workers) as pool:
            futures = {pool.submit(simulated, part): part for part in missing}
            for future in as_completed(futures):
                row = {**future.result(), "part": futures[future]}
                done[futures[future]] = row
                if kept:
                    with kept.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                print(f"\r{len(done)} of {len(parts)} ", end="", file=sys.stderr, flush=True)
    return [done[part] for part in parts if part in done]


def _parts(options: argparse.Namespace, cost: float) -> list[Part]:
    parts = [
        Part(day, service, chosen, 10.0, cost)
        for service in options.services
        for day in options.days
        for chosen in EVERYTHING
    ]
    return parts + (
        [] if options.quick else [Part(name, SERVICES[0], "wait 10", 10.0, cost) for name in HARD]
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="S1 with exponential run times only")
    parser.add_argument("--days", default=",".join(DAYS))
    parser.add_argument("--services", default=",".join(SERVICES))
    parser.add_argument("--workers", type=int, default=2, help="simulations at once")
    parser.add_argument("--start-cost", type=float, help="seconds; measured if it is not given")
    parser.add_argument("--results", help="keep every figure in this file, and simulate none that is there")
    parser.add_argument("--only-read", action="store_true", help="make the page of what is in that file")
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks-scale.md")
    options = parser.parse_args()
    options.days = ["S1"] if options.quick else options.days.split(",")
    options.services = SERVICES[:1] if options.quick else options.services.split(",")
    return options


if __name__ == "__main__":
    main()
