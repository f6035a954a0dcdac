"""What becomes of triggers: those with the same key within a short time make one tick that gets them all.

Each trigger puts the tick off a little, so that a burst is one run; yet never beyond a bound counted from the
first, or a steady stream would put it off for ever. What one run cannot carry goes to the next: none is lost.
"""

from __future__ import annotations

import msgspec

from millpond.job import MICROSECONDS, Instant


class TriggerRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """How triggers are gathered. Seconds."""

    debounce: float = 0.0  # quiet time before the tick
    longest: float | None = None  # the tick comes this long after the first trigger at the latest
    most_payloads: int = 100  # of one run
    most_bytes: int = 900_000  # of its payloads together: a job carries a mebibyte

    @property
    def patience(self) -> float:
        """The bound on how long triggers may put a tick off."""
        return 10 * self.debounce if self.longest is None else self.longest


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """Triggers of one key that become one tick."""

    key: str
    first_at: Instant
    last_at: Instant
    payloads: tuple[msgspec.Raw, ...] = ()  # JSON, oldest first
    triggers: int = 0  # with and without a payload
    is_full: bool = False  # more have come than its run can carry: they are another tick's


def coalesce(
    pending: Pending | None, key: str, payload: bytes | None, rule: TriggerRule, now: Instant
) -> tuple[Pending, ...]:
    """The triggers of the key after one more: one tick, or two where the first has become full. Without a
    payload a trigger only says that something happened."""
    if pending is None:
        pending = Pending(key, now, now)
    if payload is not None and not _has_room(pending, payload, rule):
        following = Pending(key, now, now, (msgspec.Raw(payload),), 1)
        return (msgspec.structs.replace(pending, is_full=True), following)
    added = () if payload is None else (msgspec.Raw(payload),)
    payloads, last_at = (*pending.payloads, *added), max(pending.last_at, now)
    return (Pending(key, pending.first_at, last_at, payloads, pending.triggers + 1),)


def _has_room(pending: Pending, payload: bytes, rule: TriggerRule) -> bool:
    """One payload always has: a trigger that no job could carry is refused when it comes."""
    size = sum(len(bytes(other)) + 1 for other in pending.payloads) + len(payload)
    return not pending.payloads or (len(pending.payloads) < rule.most_payloads and size <= rule.most_bytes)


def due_at(pending: Pending, rule: TriggerRule) -> Instant:
    """When the tick for these triggers is due. One that is full waits for no quiet."""
    quiet_at = pending.last_at + (0 if pending.is_full else round(rule.debounce * MICROSECONDS))
    return min(quiet_at, pending.first_at + round(rule.patience * MICROSECONDS))
