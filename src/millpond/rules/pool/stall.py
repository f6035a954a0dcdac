"""Standing or slow: whether a worker that holds tasks and begins none of them is to be waited for.

Seconds on the wall prove nothing: on a machine that is busy a healthy worker may get no processor for
many of them. What counts is the time that the worker could have used and has not: all of it while the
worker sleeps or is stopped, and only what it has computed while it is ready to run. A worker that waits
for a processor gathers none, however long that takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

SUSPECT = 0.25  # seconds without a mark of progress after which a worker's process is looked at
WEIGH = 0.25  # seconds between two looks at it
MOVE = 1.0  # unused seconds after which its tasks go to others
KILL = 8.0  # and after which it is killed
WAITS_FOR_DISK = 0.25  # the part that counts of the time in which it waits for the disk: that may be slow
LATE = 3.0  # seconds that one round of the dispatcher may take before it is shown as a trouble

STOPPED, SLEEPING, WAITING, READY = "stopped", "sleeping", "waiting", "ready"


class Sight(NamedTuple):
    """A worker's process at one moment."""

    state: str  # stopped; sleeping; waiting for the disk; or a thread of it is ready to run
    cpu: float  # processor seconds used so far


class Stall(NamedTuple):
    """A worker that holds tasks and runs none, since its last mark of progress."""

    mark: tuple[int, ...]  # another mark means: it has come on
    since: float
    looked_at: float
    unused: float = 0.0  # seconds that it could have used
    sight: Sight | None = None
    moved: bool = False  # its tasks have been taken back
    asked_at: float | None = None  # its stack was asked for, to kill it next
    patience: float = math.inf  # unused seconds after which it is killed


class Verdict(NamedTuple):
    """What becomes of such a worker."""

    move: bool
    kill: bool


def weigh(stall: Stall, sight: Sight, now: float) -> Stall:
    """Add what the worker has not used since the last look.

    A look that comes late counts for two at most: the process that looks may have been stopped together
    with the worker, as when a container is paused.
    """
    if stall.sight is None:
        return stall._replace(looked_at=now, sight=sight)
    window = min(now - stall.looked_at, 2 * WEIGH)
    computed = min(window, max(0.0, sight.cpu - stall.sight.cpu))
    if sight.state == READY:
        unused = computed
    elif sight.state == WAITING:
        unused = max(computed, window * WAITS_FOR_DISK)
    else:
        unused = window
    return stall._replace(looked_at=now, sight=sight, unused=stall.unused + unused)


def patience(timeouts: Iterable[float | None], most: float | None = KILL) -> float:
    """How many unused seconds a worker has that holds tasks with these timeouts. A task must be over two
    seconds after its timeout, also if its first worker never begins it."""
    longest = math.inf if most is None else most
    shortest = min((timeout for timeout in timeouts if timeout is not None), default=longest)
    return min(longest, max(MOVE, shortest))


def judge(stall: Stall) -> Verdict:
    """Take its tasks back? Kill it?"""
    return Verdict(move=stall.unused >= MOVE, kill=stall.unused >= stall.patience)


def reason(sight: Sight | None) -> str:
    """Why it stands still, as far as can be seen from outside."""
    state = SLEEPING if sight is None else sight.state
    return {
        STOPPED: "it is stopped by a signal or a debugger",
        SLEEPING: "its code waits for something that does not come",
        WAITING: "it waits for the disk or is frozen",
        READY: "its code computes something else without end",
    }[state]


def lateness(began: float | None, now: float, place: str) -> str | None:
    """A sentence when the dispatcher's present round has lasted for long; None between two rounds. It runs
    code of the program: callbacks of futures, subscribers, the unpickling of results."""
    if began is None or now - began < LATE:
        return None
    where = f", in {place}" if place else ""
    return f"the dispatcher has not come round for {now - began:.0f} s{where}: the pool waits for it"
