"""How many workers there should be, which of them may go, and when a worker is worn out.

Values in, a plan out. A busy worker is never in a plan: it leaves when its task is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

ASK_AGAIN = 0.1  # seconds until somebody who would leave is looked at again, where nobody knows of work


class Crew(NamedTuple):
    """The workers of a pool at one moment."""

    idle: Sequence[tuple[int, float]]  # (worker, idle since), least recently used first
    busy: int
    starting: int
    waiting: int  # tasks nobody holds
    leaving: int = 0  # workers that were told to leave and still have something to end


class Bounds(NamedTuple):
    """The size a pool may have."""

    least: int
    most: int
    idle_timeout: float
    wanted: int | None = None  # decided by somebody who knows more; None: as many as there is work for
    known_at: float = math.inf  # whether there is work was last known then: who is idle since later stays


class Plan(NamedTuple):
    """What to do about the size, and when to look again."""

    start: int
    retire: Sequence[int]
    look_again_at: float | None


def plan(crew: Crew, bounds: Bounds, now: float) -> Plan:
    """Grow while work waits, or to the size that was decided; shrink what has been idle too long, down to the
    least; keep within the bounds. Who lets somebody go must not want as many any more."""
    live = len(crew.idle) + crew.busy + crew.starting
    wanted = crew.busy + crew.waiting
    if bounds.wanted is not None:
        wanted = bounds.wanted or (1 if crew.waiting and not live else 0)  # work is never left alone
    start = max(0, min(bounds.most, max(bounds.least, wanted)) - live)
    start = min(start, _most_starts(live, crew.leaving, bounds.most))
    surplus = max(0, live - bounds.most)
    retire = [worker for worker, _ in crew.idle[:surplus]]
    spare = live - len(retire) - bounds.least
    look_again_at = None
    for worker, since in crew.idle[surplus:]:
        if spare <= 0:
            break
        if crew.waiting:
            break
        leaves_at = since + bounds.idle_timeout
        if since > bounds.known_at:
            leaves_at = max(leaves_at, now + ASK_AGAIN)
        if now < leaves_at:
            look_again_at = leaves_at
            break
        retire.append(worker)
        spare -= 1
    return Plan(start, tuple(retire), look_again_at)


def _most_starts(live: int, leaving: int, most: int) -> int:
    """A worker that takes its time to leave is replaced at once, but the processes must not pile up: never
    more leave than may work. One is always allowed where no worker is left."""
    return max(0 if live else 1, 2 * most - live - leaving)


LEAVE_WAIT = 5.0  # seconds for exit handlers, finalizers, threads and queues of a worker that leaves


LOOK_AT_LEAVERS = 0.25  # seconds between two looks at a worker that leaves


def leave_used(used: float, looked_at: float, now: float) -> float:
    """How much of its time to leave a worker has used. A look that comes late counts for two at most: the
    process that looks may have been stopped together with the worker, as when a container is paused."""
    return used + min(now - looked_at, 2 * LOOK_AT_LEAVERS)


def leave_wait(used: float) -> float:
    """How long a worker that was told to leave may still take; at 0.0 it is killed."""
    return max(0.0, LEAVE_WAIT - used)


def task_budget(limit: int | None, worker: int) -> int | None:
    """How many tasks this worker may run: the limit less up to a tenth, so that not all rotate at once.

    Never more than the limit, which the standard library's users rely on.
    """
    if limit is None:
        return None
    return limit - (worker * 7919) % (limit // 10 + 1) if limit >= 20 else limit


def age_budget(limit: float | None, worker: int) -> float | None:
    """How old this worker may become: the limit less up to a tenth."""
    return None if limit is None else limit * (1 - (worker * 7919 % 11) / 100)


SOFT_SHARE = 0.8


def memory_soft_limit(limit: int | None) -> int | None:
    """From which size on a worker is replaced between tasks, so that the next task is not killed for
    what its predecessors left behind."""
    return None if limit is None else int(limit * SOFT_SHARE)
