"""What time it is in a store without a server: the wall clock's time, which does not go back.

Between two settings the wall clock and the boot clock go alike, so a change of the distance between them is
somebody's doing. Set forward, it is believed at once. Set back, the store's time goes on at half its pace
until the wall clock has caught up: an instant that has passed does not come again, and nothing stands still.
A clock that was wrong by more than LIMIT is believed here, too: half a pace would take days.
"""

from __future__ import annotations

import msgspec

from millpond.job import MICROSECONDS, Instant

STEP = MICROSECONDS  # less is no setting but a correction, and taken as it comes
LIMIT = 6 * 3600 * MICROSECONDS
PACE = 2  # of the wall clock's seconds pass in one of ours, while it is behind


class Mark(msgspec.Struct, frozen=True):
    """What the clocks showed when one of them was last set, or first looked at."""

    epoch: str  # the boot clock counts from there
    boot: int
    store: Instant  # the store's time
    apart: int  # the wall clock minus the boot clock


def first_mark(epoch: str, boot: int, wall: Instant) -> Mark:
    """Nobody has looked before."""
    return Mark(epoch, boot, wall, wall - boot)


def store_time(mark: Mark, boot: int, wall: Instant) -> Instant:
    """The time, given what both clocks show; nobody has set one since the mark."""
    return max(wall, mark.store + (boot - mark.boot) // PACE)


def behind(mark: Mark, boot: int, wall: Instant) -> int:
    """How far the wall clock is behind the store's time."""
    return store_time(mark, boot, wall) - wall


def marked(mark: Mark, boot: int, wall: Instant) -> Mark:
    """The mark that holds now: the same, unless the wall clock was set since."""
    apart = wall - boot
    if abs(apart - mark.apart) < STEP:
        return mark
    unset = store_time(mark, boot, boot + mark.apart)  # the time it would be, had nobody set anything
    if apart > mark.apart:  # it was behind, perhaps; or it was right, and now it is ahead
        return Mark(mark.epoch, boot, store_time(mark, boot, wall), apart)
    return Mark(mark.epoch, boot, wall if unset - wall > LIMIT else unset, apart)
