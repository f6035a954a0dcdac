"""A run of the suite: batches of cases worked off side by side, verdicts handed out as they come.

The tests mostly wait, so a few batches at once keep the run short; within a batch they stay one
after another, as CPython runs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from .batch import Batch, Verdict
from .selection import Case
from .source import Source

SIDE_BY_SIDE = 3


class Suite:
    """Starts every batch at once (a few at a time); ``verdict`` waits for the one it needs."""

    def __init__(self, source: Source, cases: Iterable[Case], target: str) -> None:
        self._batches: dict[tuple[str, str], Batch] = {}
        for case in cases:
            key = (case.kind, case.owner)
            batch = self._batches.setdefault(key, Batch(target, case.kind, source))
            batch.cases.append(case.id)
        self._threads = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="cpython-suite")
        self._runs: dict[tuple[str, str], Future[None]] = {
            key: self._threads.submit(batch.run) for key, batch in self._batches.items()
        }

    def verdict(self, case: Case) -> Verdict:
        """What became of a case; waits until that is known."""
        return self._batches[case.kind, case.owner].verdict(case.id)

    def aftermath(self, kind: str) -> list[str]:
        """Processes that outlived the batches of a kind, and exits that went wrong."""
        keys = [key for key in self._batches if key[0] == kind]
        for key in keys:
            self._runs[key].result()
        return [line for key in keys for line in self._batches[key].aftermath]

    def close(self) -> None:
        """Drop batches not begun and wait for the ones that run."""
        self._threads.shutdown(cancel_futures=True)


def wanted_target() -> str:
    """The executor to test: "pool", or "stdlib" to check the adapter itself."""
    return os.environ.get("MILLPOND_CPYTHON_TARGET", "pool")


def wants_everything() -> bool:
    """Whether every kind shall run its tests whole, however long they wait."""
    return os.environ.get("MILLPOND_CPYTHON", "") == "full"
