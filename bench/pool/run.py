"""The pool benchmark: every peer through every scenario, side by side, then the tables.

Each measured run is a fresh process with a bounded time, whose children are ended after it. Peers
take turns within a scenario and each round begins with another one, so that a machine that slows
down slows all of them. Raw results go to results/, one JSON line per run.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import report
import setting
from peers import PEERS
from processes import adopt_orphans, end_descendants
from records import Record, Results, append, load
from scenarios import SCENARIOS
from sizes import FULL, QUICK

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main() -> None:
    options = _options()
    results = load(options.report) if options.report else _run(options)
    print(report.markdown(results))
    if options.write:
        _write(results, options.out or ROOT)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    parser.add_argument("--quick", action="store_true", help="one round of smaller sizes")
    parser.add_argument("--only", metavar="SCENARIO,...", help=", ".join(SCENARIOS))
    parser.add_argument("--peers", metavar="PEER,...", help=", ".join(PEERS))
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks.md")
    parser.add_argument("--out", type=Path, help="where --write puts docs/ (the repository)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="only tabulate stored results")
    options = parser.parse_args()
    options.only = _named(parser, options.only, list(SCENARIOS))
    options.peers = _named(parser, options.peers, list(PEERS))
    options.rounds = options.rounds or (1 if options.quick else 3)
    if options.write and options.quick and not options.out:
        parser.error("--quick is not for publication: give --out to write elsewhere")
    return options


def _named(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            parser.error(f"unknown name {name!r}; there are: {', '.join(known)}")
    return names


def _run(options: argparse.Namespace) -> Results:
    adopt_orphans()
    names = [name for name in options.peers if _installed(name)]
    command = " ".join(["python bench/pool/run.py", *_shown(sys.argv[1:])])
    results = Results(setting.describe(command, options.rounds, options.quick))
    path = HERE / "results" / time.strftime("%Y%m%d-%H%M%S.jsonl")
    append(path, results.setting)
    for scenario in options.only:
        fits = [name for name in names if _fits(name, scenario)]
        for number in range(options.rounds):
            first = number % max(1, len(fits))
            for peer in fits[first:] + fits[:first]:
                for record in _measure(peer, scenario, number, quick=options.quick):
                    results.records.append(record)
                    append(path, record)
    _say(f"raw results: {path.relative_to(ROOT)}")
    return results


def _shown(arguments: Sequence[str]) -> list[str]:
    """The command as a reader would repeat it: where the files were put is our own business."""
    shown = list(arguments)
    if "--out" in shown:
        place = shown.index("--out")
        del shown[place : place + 2]
    return [each for each in shown if not each.startswith("--out=")]


def _installed(name: str) -> bool:
    found = importlib.util.find_spec(PEERS[name].module.partition(".")[0]) is not None
    if not found:
        _say(f"{name}: not installed, left out")
    return found


def _fits(name: str, scenario: str) -> bool:
    only = PEERS[name].only
    return only is None or scenario in only


def _measure(peer: str, scenario: str, number: int, *, quick: bool) -> list[Record]:
    """One run, or several where the scenario is about a fresh interpreter."""
    runs = (QUICK if quick else FULL).starts if scenario == "startup" else 1
    records = []
    for _ in range(runs):
        values, note = _fresh_process(peer, scenario, quick=quick)
        version = setting.version(PEERS[peer])
        records.append(Record(scenario, peer, number, version, values, note))
    shown = records[-1].note or records[-1].values.get(SCENARIOS[scenario].headline, "")
    text = report.number(shown) if isinstance(shown, int | float) else shown
    _say(f"{scenario:10} round {number + 1}  {peer:16} {text}")
    return records


def _fresh_process(peer: str, scenario: str, *, quick: bool) -> tuple[dict[str, float | str], str]:
    """Outputs go to files: an orphan could keep a pipe open for ever."""
    limit = SCENARIOS[scenario].limit
    with tempfile.NamedTemporaryFile("r") as answer, tempfile.TemporaryFile("w+") as log:
        size = "quick" if quick else "full"
        command = [sys.executable, str(HERE / "measure.py"), peer, scenario, size, answer.name]
        try:
            subprocess.run(command, stdout=log, stderr=log, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return {}, f"no result in {limit:.0f} s"
        finally:
            end_descendants(patience=1)
        text = answer.read()
        if not text:
            log.seek(0)
            lines = log.read().strip().splitlines() or ["no output"]
            return {}, f"failed: {lines[-1][:150]}"
    found = json.loads(text)
    return found["values"], found["note"]


def _write(results: Results, root: Path) -> None:
    from chart import draw

    picture = root / "docs" / "pictures" / "bench-pool.png"
    draw(results, picture)
    page = root / "docs" / "benchmarks.md"
    page.write_text(report.page(results))
    _say(f"written: {page.name}, {picture.name}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
