"""When to try again after a worker could not start, and when to give up waiting for one.

A pool that cannot start workers must neither spin nor hang: tries back off, and after a few in a row
with nobody left to work, the waiting tasks fail with the cause.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_DELAY = 0.05
LONGEST_DELAY = 10.0
MOST_AT_ONCE = 16  # workers that are asked for and do not exist yet
MOST_RESERVED = 64  # descriptors that a pool leaves to its program
CROWDED = 10.0  # seconds until another worker is tried where descriptors are short
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


def is_degraded(starts: Starts, ready: int, starting: int = 0) -> bool:
    """Has the pool no worker and no prospect of one? Those that are starting are a prospect: of hundreds
    that were asked for together, a few may fail."""
    return ready + starting == 0 and starts.failures >= PATIENCE


def may_start(starts: Starts, now: float) -> bool:
    """Is it time for another try?"""
    return now >= starts.next_try_at


def starts_now(wanted: int, asked: int, limit: int) -> int:
    """How many workers to ask for now, if so many are asked for already. More would not fit into the socket
    to the template, nor, with a low limit of open files, among the descriptors on their way."""
    return max(0, min(wanted, min(MOST_AT_ONCE, max(1, limit // 16)) - asked))


def is_crowded(highest: int, limit: int) -> bool:
    """Does a worker whose highest descriptor is this take what the program needs for its own files?"""
    return highest >= limit - min(MOST_RESERVED, limit // 8)
