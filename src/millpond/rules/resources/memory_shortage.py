"""When memory runs short: how long to look on, whose job goes, and what becomes of it.

First nothing more is admitted and idle workers go; a second later the newest job goes, of those that hold
more than they were given before all others. It costs that job no attempt. The same job is not stopped
again and again: what it asks for grows, and one that had everything there is ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

PATIENCE = 1.0  # seconds of shortage before a job is stopped, and between two of them
STALLED = 0.2  # share of the time in which everybody waited for memory
WORTH = 16_000_000  # bytes; stopping a job that holds less would not help
FREE_STOPS = 2  # times a job is stopped before it is given twice as much

Step = Literal["admit", "hold", "stop"]


class Watch(NamedTuple):
    """Since when memory has been short, and when a job was last stopped for it."""

    since: float | None = None
    stopped_at: float = 0.0


def look(before: Watch, free: int, headroom: int, stalled: float | None, now: float) -> tuple[Watch, Step]:
    """What to do about so much free memory, of which `headroom` should be left alone."""
    thrashing = stalled is not None and stalled > STALLED and free < headroom
    if free >= headroom // 2 and not thrashing:
        return before._replace(since=None), "admit"
    since = now if before.since is None else before.since
    if now - since < PATIENCE or now - before.stopped_at < PATIENCE:
        return before._replace(since=since), "hold"
    return Watch(since, now), "stop"


class Holder(NamedTuple):
    """A running job that could be stopped."""

    name: str
    used: int
    given: int  # what was set aside for it
    began_at: float
    retriable: bool


def victim(holders: Iterable[Holder]) -> str | None:
    """Who goes: one that may run again, that holds more than it was given, the newest. None: nobody's end
    would help."""
    worthy = [one for one in holders if one.used >= WORTH]
    if not worthy:
        return None
    return max(worthy, key=lambda one: (one.retriable, one.used > one.given, one.began_at)).name


class Sequel(NamedTuple):
    """How it goes on with a job that was stopped for memory, or killed for it."""

    final: bool  # there is no more to give
    double: bool  # it is given twice as much


def sequel(times: int, *, had_all: bool, by_the_kernel: bool) -> Sequel:
    """After the job was met by it so many times. `had_all`: it had the whole budget for itself.

    The kernel kills whoever asks for too much, so its choice is evidence; ours is the newest job.
    """
    if had_all:
        return Sequel(final=True, double=False)
    if by_the_kernel:
        return Sequel(final=False, double=True)  # its crashes are counted, and end it
    return Sequel(final=times > FREE_STOPS + 1, double=times > FREE_STOPS)
