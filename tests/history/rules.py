"""What a run promised, and what a broken promise is called. Values only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from millpond.job import Job


class Bug(StrEnum):
    """The ways in which a history can be wrong."""

    LOST = "lost"  # acknowledged, and gone
    INVENTED = "invented"  # nobody ever enqueued it
    UNFINISHED = "unfinished"  # the run is over, the job is not
    NO_EFFECT = "no effect"  # completed, and nothing was done
    WRONG_END = "wrong end"  # an end that no rule allows it
    FALSE_END = "false end"  # completed under a token whose function never returned
    DOUBLED_END = "doubled end"  # ended more than once
    RESURRECTED = "resurrected"  # went on after its end
    STALE = "stale write"  # a write under a token that had been overtaken was accepted
    DOUBLE_CLAIM = "double claim"  # one token was given out twice
    RERUN = "rerun"  # executed again, and nothing explains why
    OVERLAP = "overlap"  # executed twice at a time, and nothing explains why
    OVERFULL = "overfull slot"  # more at a time than the slot has room for
    AFTERLIFE = "afterlife"  # went on in a worker that had been killed
    BURNT = "burnt attempt"  # charged for what never began, or did not happen
    RESCUED_ALIVE = "rescued alive"  # taken from a node that nothing had happened to
    BUDGET = "budget"  # ended before or after its budget was used up
    UNSEEN = "unseen end"  # recorded, and no node saw the store accept it


class Violation(msgspec.Struct, frozen=True):
    """A broken promise, as a sentence that names the job."""

    bug: Bug
    job: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.bug}: job {self.job} {self.sentence}"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What was promised of this run beyond what holds of every run.

    An end is written as a state, or with its reason: `dead`, `dead(crashed)`, `cancelled(expired)`.
    """

    drained: bool = True  # it went on until nothing was left to do
    ends: Mapping[str, Collection[str]] = {}  # by job: all the ends it may have
    also: Collection[str] = ()  # ends that any other job may have besides `completed`
    replayed: Collection[str] = ()  # jobs that somebody replays after their death
    capacity: Mapping[str, int] = {}  # of slots that were configured otherwise than their jobs say
    aftermath: float = 30.0  # seconds for which a fault of a node may show after it is over: two leases

    def allow(self, job: Job) -> bool:
        """May this job have ended as it did?"""
        allowed = self.ends.get(job.id, ("completed", *self.also))
        return str(job.state) in allowed or end_of(job) in allowed


def end_of(job: Job) -> str:
    """A state with its reason."""
    return f"{job.state}({job.reason})" if job.reason else str(job.state)
