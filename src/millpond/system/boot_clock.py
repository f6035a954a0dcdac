"""The time since this machine was started: nobody can set it, and it goes on while the machine sleeps.

All processes of a machine agree on it, so that one may subtract what another has read. It says nothing
about the time of day.
"""

from __future__ import annotations

import time


def seconds() -> float:
    """For leases and deadlines."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def microseconds() -> int:
    """For what becomes an instant by adding how far another clock is ahead."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
