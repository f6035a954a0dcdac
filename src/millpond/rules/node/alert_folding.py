"""Which alerts go out now and which are folded into a later one.

A storm of ten thousand dead jobs is one thing to know, not ten thousand messages: the first of a kind goes
out at once, those that follow within the quiet time are counted and told with the next.
"""

from __future__ import annotations

from typing import NamedTuple

QUIET = 60.0  # seconds between two alerts about the same thing


class Told(NamedTuple):
    """When a subject was last told, and how many of it came since."""

    at: float
    folded: int = 0


class Decision(NamedTuple):
    """Whether to send now, and how many like it were held back before."""

    is_sent: bool
    folded: int = 0


def decide(told: Told | None, now: float, quiet: float = QUIET) -> tuple[Told, Decision]:
    """What to do with one more alert about a subject, and what to remember of it."""
    if told is None:
        return Told(now), Decision(True)
    if now - told.at >= quiet:
        return Told(now), Decision(True, told.folded)
    return Told(told.at, told.folded + 1), Decision(False)


def due(told: Told, now: float, quiet: float = QUIET) -> bool:
    """Were some held back, and is their quiet time over?"""
    return told.folded > 0 and now - told.at >= quiet


def is_over(told: Told, now: float, quiet: float = QUIET) -> bool:
    """Can the subject be forgotten?"""
    return told.folded == 0 and now - told.at >= quiet
