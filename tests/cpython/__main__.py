"""``python -m tests.cpython``: the suite as a table, without pytest.

Compares targets and kinds quickly while working on the pool or the adapter; the gate is
``test_executor_suite``.
"""

from __future__ import annotations

import argparse
from collections import Counter

from .selection import KINDS, select
from .source import inventory
from .suite import Suite


def main() -> int:
    options = _options()
    found = inventory()
    print(f"tests: {found.source.origin}")
    cases = select(
        found.tests,
        options.kind or KINDS,
        full=not options.quick,
        listed=options.listed or options.target == "stdlib",
        borrowed=found.source.borrowed,
    )
    cases = [case for case in cases if options.match in case.name]
    suite = Suite(found.source, cases, options.target)
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        verdict = suite.verdict(case)
        counts.setdefault(case.kind, Counter())[verdict.outcome] += 1
        if verdict.outcome != "passed" or verdict.seconds >= options.slower_than:
            print(f"{verdict.outcome:8}{verdict.seconds:6.1f} s  {case.kind}  {case.name}")
        if verdict.outcome == "failed" and options.details:
            print(verdict.detail)
    for kind, count in counts.items():
        print(f"{kind:12}{dict(count)}  aftermath: {suite.aftermath(kind)}")
    return int(any(count["failed"] for count in counts.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cpython", description=__doc__)
    parser.add_argument("--target", choices=("pool", "stdlib"), default="pool")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: every kind")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--quick", action="store_true", help="the selection of a default run")
    parser.add_argument("--listed", action="store_true", help="also cases that cannot apply")
    parser.add_argument("--details", action="store_true", help="print failures in full")
    parser.add_argument("--slower-than", type=float, default=float("inf"), metavar="SECONDS")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
