"""What a planner has to tell, as events of the node it runs on."""

from __future__ import annotations

from typing import NamedTuple

from millpond.job import Instant


class BreakerOpened(NamedTuple):
    """A recurring task has failed too often in a row and no longer runs."""

    task: str
    failures: int
    error: str
    probe_at: Instant | None  # when it is tried again by itself


class BreakerClosed(NamedTuple):
    """A recurring task works again."""

    task: str


class TickMissed(NamedTuple):
    """A recurring task did not run at an instant, because nobody planned it in time: of several, the last."""

    task: str
    at: Instant
    reason: str
    instants: int  # that were missed, this one included


class TickLate(NamedTuple):
    """A tick was enqueued long after it was due: of several in one round, the latest."""

    task: str
    at: Instant
    late: float
    instants: int = 1  # that were late in this round, this one included


class ClockCorrected(NamedTuple):
    """The store's clock had been ahead: tasks that had followed it go on by what it shows now."""

    ahead: float  # seconds, of the task that was furthest ahead
    tasks: int


class TriggersDropped(NamedTuple):
    """Triggers that had been accepted did not lead to a run."""

    task: str  # "(any task)" if they left the log before anybody read whose they are
    triggers: int
    reason: str


Happening = BreakerOpened | BreakerClosed | TickMissed | TickLate | ClockCorrected | TriggersDropped
