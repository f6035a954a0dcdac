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


class Respawns(NamedTuple):
    """Workers that may still be replaced at once after they died; more follow as time goes by."""

    left: float = 50.0
    at: float = 0.0


BURST = 50.0
RESPAWNS_A_SECOND = 20.0


def after_death(respawns: Respawns, now: float) -> Respawns:
    """One more worker died while it worked."""
    left = min(BURST, respawns.left + max(0.0, now - respawns.at) * RESPAWNS_A_SECOND)
    return Respawns(left - 1.0, now)


def respawn_at(respawns: Respawns) -> float:
    """When the next worker may be started: a burst at once, then so many a second."""
    return respawns.at + max(0.0, -respawns.left) / RESPAWNS_A_SECOND


def is_degraded(starts: Starts, ready: int) -> bool:
    """Has the pool no worker and no prospect of one?"""
    return ready == 0 and starts.failures >= PATIENCE


def may_start(starts: Starts, now: float) -> bool:
    """Is it time for another try?"""
    return now >= starts.next_try_at
