"""The store benchmark: each store beside its engine's own limit, in one run.

The limit is the same statements sent again by the bare driver to a fresh database. The two take turns, so
that a machine that slows down slows both. Run by `make bench-stores`; `--quick` for a look,
`--sizes` for rows, bytes and times among a million queued and ten million finished jobs.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import postgres_alone  # noqa: E402
import sizes  # noqa: E402
import workload  # noqa: E402
from engines import ENGINES, Engine  # noqa: E402

Row = dict[str, float]
PAGE = ROOT / "docs" / "benchmarks-stores.md"
PARTS = ("one by one", "bulk of 1,000", "claim and settle")
NEEDED = {"one by one": 0.6, "bulk of 1,000": 0.5, "claim and settle": 0.5}


def main() -> None:
    options = _options()
    if options.sizes:
        _at_size(options)
        return
    lines = [_head(options)]
    for name in options.only:
        engine = ENGINES[name]()
        _say(f"--- {engine.name}")
        parts = {"rates": _rates, "curve": _curve, "crowded": _crowded}
        lines += [part(engine, options) for name, part in parts.items() if options.part in (name, "all")]
        if engine.name == "PostgreSQL":
            alone = ("notify", "open")
            lines += [
                postgres_alone.section(name, options) for name in alone if options.part in (name, "all")
            ]
    text = "\n".join(lines)
    print(text)
    if options.write:
        at_size = sizes.kept_from(PAGE)
        PAGE.write_text(f"{text}\n{at_size}\n" if at_size else f"{text}\n")
        _say("written: docs/benchmarks-stores.md")


def _at_size(options: argparse.Namespace) -> None:
    text = sizes.section([ENGINES[name]() for name in options.only], options)
    print(text)
    if options.write:
        sizes.put_into(PAGE, text)
        _say(f"written: docs/benchmarks-stores.md, {sizes.HEADING!r}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--only", default=",".join(ENGINES))
    parser.add_argument(
        "--part", choices=("all", "rates", "curve", "crowded", "notify", "open"), default="all"
    )
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks-stores.md")
    parser.add_argument("--sizes", action="store_true", help="bytes and times among very many jobs instead")
    parser.add_argument("--queued", type=int, default=1_000_000, help="with --sizes")
    parser.add_argument(
        "--finished", type=int, default=10_000_000, help="with --sizes; Redis needs 1 kB a job"
    )
    options = parser.parse_args()
    options.only = [name for name in options.only.split(",") if name in ENGINES]
    options.rounds = 1 if options.quick else options.rounds
    options.amounts = (300, 5_000, 5_000) if options.quick else (3_000, 50_000, 50_000)
    options.curve = (1_000, 10_000) if options.quick else (1_000, 10_000, 100_000, 1_000_000)
    options.blocked = (10_000, 5_000) if options.quick else (100_000, 50_000)
    return options


# --- beside the bare loop ----------------------------------------------------------------------------
def _rates(engine: Engine, options: argparse.Namespace) -> str:
    ours: list[Row] = []
    bare: list[Row] = []
    tapes = _record(engine, options.amounts)
    for number in range(options.rounds):
        ours.append(_ours(engine, options.amounts))
        bare.append(_bare(engine, tapes, options.amounts))
        _say(f"round {number + 1}: ours {_shown(ours[-1])}; bare {_shown(bare[-1])}")
    lines = ["", f"## {engine.name}", "", "| jobs a second | Millpond | bare loop | ratio | needed | met |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for part in PARTS:
        mine, theirs = [row[part] for row in ours], [row[part] for row in bare]
        ratio = statistics.median(mine) / statistics.median(theirs)
        met = "yes" if ratio >= NEEDED[part] else "**no**"
        lines.append(
            f"| {part} | {_spread(mine)} | {_spread(theirs)} | {ratio:.2f} | ≥ {NEEDED[part]} | {met} |"
        )
    return "\n".join(lines)


def _ours(engine: Engine, sizes: tuple[int, int, int]) -> Row:
    store = engine.open()
    row = {
        "bulk of 1,000": workload.bulk(store, sizes[1]),
        "claim and settle": workload.drain(store, sizes[2]),
        "one by one": workload.one_by_one(store, sizes[0]),
    }
    store.close()
    return row


def _record(engine: Engine, sizes: tuple[int, int, int]) -> dict[str, list[Any]]:
    store = engine.record()
    tapes = {}
    for part, run in (
        ("bulk of 1,000", lambda: workload.bulk(store, sizes[1])),
        ("claim and settle", lambda: workload.drain(store, sizes[2])),
        ("one by one", lambda: workload.one_by_one(store, sizes[0])),
    ):
        store.tape = []
        run()
        tapes[part] = store.tape
    store.tape = None
    store.close()
    return tapes


def _bare(engine: Engine, tapes: dict[str, list[Any]], sizes: tuple[int, int, int]) -> Row:
    store = engine.open()
    number = {"one by one": sizes[0], "bulk of 1,000": sizes[1], "claim and settle": sizes[2]}
    row = {part: number[part] / engine.replay(store, tape) for part, tape in tapes.items()}
    store.close()
    return row


# --- what size and history do ------------------------------------------------------------------------
def _curve(engine: Engine, options: argparse.Namespace) -> str:
    """The cost of a job with more and more of them in line, and with as many finished behind."""
    lines = ["", "| jobs in line | claim and settle, microseconds a job |", "| --- | --- |"]
    costs: list[float] = []
    for depth in options.curve:
        store = engine.open()
        sample, spent = min(depth, 20_000), 0.0
        for _ in range(20_000 // sample):  # as many jobs at every depth: the first exchanges are dear
            workload.bulk(store, depth)
            spent += sample / workload.drain(store, sample)
        costs.append(1e6 * spent / (20_000 // sample * sample))
        lines.append(f"| {depth:,} | {costs[-1]:.1f} |")
        _say(f"{depth:,} in line: {costs[-1]:.1f} us a job")
        store.close()
    worst = max(costs) / min(costs)
    lines += ["", f"The dearest costs {worst:.2f} times the cheapest (needed: at most 1.5).", ""]
    lines.append(_history(engine, options.curve[-1]))
    return "\n".join(lines)


def _history(engine: Engine, number: int) -> str:
    store = engine.open()
    workload.bulk(store, 20_000)
    before = workload.drain(store, 20_000)
    workload.bulk(store, number)
    workload.drain(store, number)
    store.close()
    begin = time.perf_counter()
    store.renew("again", "bench")
    opened = time.perf_counter() - begin
    workload.bulk(store, 20_000)
    after = workload.drain(store, 20_000, node="again")
    store.close()
    return (
        f"With {number:,} finished jobs kept: {after:,.0f} jobs a second, {after / before:.2f} times as many "
        f"as with none; opening the store and taking a lease takes {opened * 1000:.1f} ms."
    )


def _crowded(engine: Engine, options: argparse.Namespace) -> str:
    blocked, free = options.blocked
    store = engine.open()
    workload.bulk(store, free)
    clean = workload.drain(store, free)
    store.close()
    store = engine.open()
    crowded = workload.blocked_in_front(store, blocked, free)
    store.close()
    _say(f"blocked in front: {crowded:,.0f} of {clean:,.0f}")
    return (
        f"\n{blocked:,} jobs blocked by a key in front of {free:,} free ones: {crowded:,.0f} jobs a second, "
        f"{crowded / clean:.2f} of the clean rate (needed: at least 0.5)."
    )


# --- words -------------------------------------------------------------------------------------------
def _head(options: argparse.Namespace) -> str:
    cores, version = len(os.sched_getaffinity(0)), platform.python_version()
    when = time.strftime("%Y-%m-%d")
    return "\n".join(
        [
            "# Benchmarks of the stores",
            "",
            "Written by `make bench-stores`. Each rate stands beside that of a bare loop: the same",
            "statements with the same parameters, sent by the driver alone to a fresh database in the same",
            "run. What is between the two is Millpond.",
            "",
            f"{when}, {options.rounds} rounds, {cores} cores, Python {version}, all on one machine.",
        ]
    )


def _spread(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:,.0f}"
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def _shown(row: Row) -> str:
    return ", ".join(f"{part} {rate:,.0f}" for part, rate in row.items())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
