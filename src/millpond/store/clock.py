"""The clock of a store: that of its server, or this machine's; and a shift for tests that travel in time.

Jobs are timed by the wall clock, which people read. On one machine leases are measured by the boot clock,
which no one can set: stepping the wall clock must not make one node rescue another.
"""

from __future__ import annotations

import time
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAMPLE = 10.0  # seconds between two comparisons of a server's clock with ours


class Clock:
    """Wall and boot time in microseconds. `shift` moves both; only tests ever set it."""

    def __init__(self) -> None:
        self.shift = 0
        self.frozen: int | None = None
        self.epoch = _boot_id()

    def now(self) -> int:
        """The wall clock."""
        return (time.time_ns() // 1000 if self.frozen is None else self.frozen) + self.shift

    def lease_now(self) -> int:
        """The clock of the leases."""
        if self.frozen is not None:
            return self.frozen + self.shift
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000 + self.shift

    def freeze(self) -> None:
        """Stop both clocks; from here on only `shift` moves them."""
        self.frozen = time.time_ns() // 1000


class ServerClock:
    """A server's clock, followed by our monotonic one: a step of our wall clock moves nothing. `shift` moves
    it, `freeze` stops it; only tests ever do."""

    def __init__(self) -> None:
        self.shift = 0
        self.frozen: int | None = None
        self._offset = (time.time_ns() - time.monotonic_ns()) // 1000  # until the server has been asked
        self._sampled_at = -SAMPLE

    def is_old(self) -> bool:
        """Is it time to ask the server again?"""
        return time.monotonic() - self._sampled_at > SAMPLE

    def set(self, server: int) -> None:
        """Take this for the server's time now."""
        self._offset = server - time.monotonic_ns() // 1000
        self._sampled_at = time.monotonic()

    def now(self) -> int:
        """The server's time, as near as can be told without asking."""
        running = time.monotonic_ns() // 1000 + self._offset
        return (running if self.frozen is None else self.frozen) + self.shift

    def lease_now(self, server: int) -> int:
        """The clock of the leases, given what the server said just now."""
        return (server if self.frozen is None else self.frozen) + self.shift

    def freeze(self) -> None:
        """Stop the clock; from here on only `shift` moves it."""
        self.frozen = time.time_ns() // 1000


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"boot-{round(time.time() - time.monotonic(), -1):.0f}"
