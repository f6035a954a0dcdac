"""When a process announces on PostgreSQL that there are jobs in a queue.

An announcement costs the server about as much as a small enqueue. Where one follows each enqueue of many
processes, they keep the server from storing jobs. So announcements take at most one part in so many of a
process's time: on a server with time to spare that is every few milliseconds, on a busy one more seldom. What
waits for its announcement is announced together. The first job after a pause is announced at once.
"""

from __future__ import annotations

from typing import NamedTuple

GAP = 0.015  # seconds between two announcements of one queue
SHARE = 30  # announcements take one part in so many of the time
LONGEST = 0.25  # seconds between two announcements; a node looks as often where they are off
WEIGHT = 0.2  # of the last one in what they take


class Announced(NamedTuple):
    """The last announcement of a process, and what they take lately."""

    at: float = float("-inf")
    took: float = 0.0  # seconds; a mean in which the later ones weigh more


def may_announce_at(last: Announced, queue_at: float | None) -> float:
    """When a queue that was announced at that time, or never, may be announced again."""
    free = last.at + min(SHARE * last.took, LONGEST)
    return free if queue_at is None else max(free, queue_at + GAP)


def announced(last: Announced, at: float, took: float) -> Announced:
    """With one more, which ended at that time."""
    mean = took if last.took == 0.0 else last.took + WEIGHT * (took - last.took)
    return Announced(at, mean)
