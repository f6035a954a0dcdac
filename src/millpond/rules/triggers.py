"""What becomes of triggers: those with the same key within a short time make one tick that gets them all.

Each trigger puts the tick off a little, so that a burst is one run; yet never beyond a bound counted from the
first, or a steady stream would put it off for ever. Payloads beyond the limit are counted, not kept.
"""

from __future__ import annotations

import msgspec

from millpond.job import MICROSECONDS, Instant


class TriggerRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """How triggers are gathered. Seconds."""

    debounce: float = 0.0  # quiet time before the tick
    longest: float | None = None  # the tick comes this long after the first trigger at the latest
    most_payloads: int = 100
    most_bytes: int = 1_000_000  # of all payloads together: one job must be able to carry them

    @property
    def patience(self) -> float:
        """The bound on how long triggers may put a tick off."""
        return 10 * self.debounce if self.longest is None else self.longest


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """The triggers of one key that no tick has taken yet, as they are stored."""

    key: str
    first_at: Instant
    last_at: Instant
    payloads: tuple[msgspec.Raw, ...] = ()  # JSON, oldest first
    dropped: int = 0  # older ones, beyond the limit


def coalesce(
    pending: Pending | None, key: str, payload: bytes | None, rule: TriggerRule, now: Instant
) -> Pending:
    """The triggers of the key after one more; without a payload it only says that something happened."""
    if pending is None:
        pending = Pending(key, now, now)
    added = () if payload is None else (msgspec.Raw(payload),)
    payloads = (*pending.payloads, *added)
    surplus = _surplus(payloads, rule)
    last_at = max(pending.last_at, now)
    return Pending(key, pending.first_at, last_at, payloads[surplus:], pending.dropped + surplus)


def _surplus(payloads: tuple[msgspec.Raw, ...], rule: TriggerRule) -> int:
    """How many of the oldest must go; the newest always stays."""
    surplus = max(0, len(payloads) - rule.most_payloads)
    size = sum(len(payload) for payload in payloads[surplus:])
    while size > rule.most_bytes and surplus < len(payloads) - 1:
        size -= len(payloads[surplus])
        surplus += 1
    return surplus


def due_at(pending: Pending, rule: TriggerRule) -> Instant:
    """When the tick for these triggers is due."""
    quiet_at = pending.last_at + round(rule.debounce * MICROSECONDS)
    return min(quiet_at, pending.first_at + round(rule.patience * MICROSECONDS))
