"""The clock of a store: that of its server, or this machine's; and a shift for tests that travel in time.

Jobs are timed by the wall clock, which people read, as `rules/store/store_time.py` has it: setting it back
does not take the store's time back. On one machine leases are measured by the boot clock, which no one can
set: stepping the wall clock must not make one node rescue another.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from millpond.job import MICROSECONDS
from millpond.rules.store.store_time import Mark, behind, first_mark, marked, store_time
from millpond.system.boot_clock import microseconds as _boot_clock

logger = logging.getLogger("millpond")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAMPLE = 10.0  # seconds between two comparisons of a server's clock with ours
ASK = MICROSECONDS  # between two looks at what other processes have marked
TOGETHER = 50_000  # µs within which two clocks are read, or they are not compared


class Clock:
    """Wall and boot time in microseconds. `shift` moves both; only tests ever set it.

    The processes on one file agree about the last setting of the wall clock, by a mark that they share.
    """

    def __init__(self) -> None:
        self.shift = 0
        self.frozen: int | None = None
        self.epoch = _boot_id()
        self.mark: Mark | None = None
        self._has_news = True  # the others do not know our mark
        self._looked_at = self._since = self._asked_at = -1  # on the boot clock

    def now(self) -> int:
        """The store's time."""
        if self.frozen is not None:
            return self.frozen + self.shift
        boot, wall = _both_clocks()
        return store_time(self._marked(boot, wall), boot, wall) + self.shift

    def lease_now(self) -> int:
        """The clock of the leases."""
        if self.frozen is not None:
            return self.frozen + self.shift
        return _boot_clock() + self.shift

    def freeze(self) -> None:
        """Stop both clocks; from here on only `shift` moves them."""
        self.frozen = _wall_clock()

    def should_ask(self) -> bool:
        """Is it time to compare marks with the other processes?"""
        return self.frozen is None and (self._has_news or _boot_clock() - self._asked_at > ASK)

    def agree(self, others: Mark | None) -> Mark | None:
        """Of several that saw the clock set, the first has marked it: take that over. Returns what the others
        should know, if they do not."""
        boot, wall = _both_clocks()
        mark = self._marked(boot, wall)
        newer = self._since if self._has_news else mark.boot
        if others is not None and others.epoch == self.epoch and others.boot > newer:
            mark = self.mark = marked(others, boot, wall)
        self._asked_at, self._has_news = boot, mark != others
        return mark if self._has_news else None

    def _marked(self, boot: int, wall: int) -> Mark:
        before = self.mark
        mark = first_mark(self.epoch, boot, wall) if before is None else marked(before, boot, wall)
        if mark is not before:
            self._since, self._has_news = self._looked_at, True
            self.mark = mark
            _tell(mark, boot, wall)
        self._looked_at = boot
        return mark


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
        self.frozen = _wall_clock()


def _wall_clock() -> int:
    return time.time_ns() // 1000


def _both_clocks() -> tuple[int, int]:
    """The boot clock and the wall clock at one moment: a process may be stopped between two looks."""
    while True:
        boot, wall = _boot_clock(), _wall_clock()
        if _boot_clock() - boot < TOGETHER:
            return boot, wall


def _tell(mark: Mark, boot: int, wall: int) -> None:
    late = behind(mark, boot, wall) / MICROSECONDS
    if late > 0:
        logger.warning(
            "The clock of this machine was set back: it is %.0f s behind the store's time, which goes on at "
            "half its pace until both agree",
            late,
        )


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return f"boot-{round(time.time() - time.monotonic(), -1):.0f}"
