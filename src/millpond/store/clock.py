"""The clocks of a store that lives on this machine, and a shift for tests that travel in time.

Jobs are timed by the wall clock, which people read. Leases are measured by the boot clock, which no one
can set: stepping the wall clock must not make one node rescue another.
"""

from __future__ import annotations

import time
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"boot-{round(time.time() - time.monotonic(), -1):.0f}"
