"""When to try again after a worker could not start, and when to give up waiting for one.

A pool that cannot start workers must neither spin nor hang: tries back off, and after a few in a row
with nobody left to work, the waiting tasks fail with the cause.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_DELAY = 0.05
LONGEST_DELAY = 10.0
PATIENCE = 3  # failed starts in a row after which tasks stop waiting


class Starts(NamedTuple):
    """How starting workers has gone lately."""

    failures: int = 0  # in a row
    next_try_at: float = 0.0
    cause: str = ""


def after_failure(starts: Starts, cause: str, now: float) -> Starts:
    """The state after one more failed start."""
    failures = starts.failures + 1
    delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures - 1, 20))
    return Starts(failures, now + delay, cause)


def after_success() -> Starts:
    """The state after a worker started."""
    return Starts()


def is_degraded(starts: Starts, ready: int) -> bool:
    """Has the pool no worker and no prospect of one?"""
    return ready == 0 and starts.failures >= PATIENCE


def may_start(starts: Starts, now: float) -> bool:
    """Is it time for another try?"""
    return now >= starts.next_try_at
