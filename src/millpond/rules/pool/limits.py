"""When a task has run or waited too long, and when to look again.

`timeout` counts from the start of the run, `deadline` from the submit, `max_queue_age` covers the wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Limit(NamedTuple):
    """One task that a worker holds, with its limits. `started_at` is None while it has not begun."""

    task: int
    started_at: float | None
    timeout: float | None
    deadline_at: float | None


class Verdict(NamedTuple):
    """What is over its limit now, and when the next limit may be reached."""

    overrun: tuple[int, ...]  # running too long: kill
    expired: tuple[int, ...]  # not begun and past its deadline: take back
    look_again_at: float


def judge(limits: Iterable[Limit], now: float) -> Verdict:
    """Look at all tasks of one worker.

    A task that has not begun could begin right after this look: its timeout is counted from now, so
    that looking again by then can never be late.
    """
    overrun: list[int] = []
    expired: list[int] = []
    soonest = math.inf
    for limit in limits:
        due = due_at(limit, now)
        if due > now:
            soonest = min(soonest, due)
        elif limit.started_at is None:
            expired.append(limit.task)
        else:
            overrun.append(limit.task)
    return Verdict(tuple(overrun), tuple(expired), soonest)


def due_at(limit: Limit, now: float) -> float:
    """The instant by which the task must be looked at."""
    due = math.inf if limit.deadline_at is None else limit.deadline_at
    if limit.timeout is not None:
        begin = now if limit.started_at is None else limit.started_at
        due = min(due, begin + limit.timeout)
    return due


def queue_limit(submitted_at: float, max_queue_age: float | None, deadline: float | None) -> float | None:
    """The instant from which on a task that still waits is rejected."""
    ages = [age for age in (max_queue_age, deadline) if age is not None]
    return submitted_at + min(ages) if ages else None
