"""Python imports this at its start, in nodes, templates and workers that have the folder in their path: their
time of day is off by what a file says, from the moment it says so. The boot and the monotonic clock are not.

No process can set the clock of a machine for itself alone, and the kernel has no name space for it.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

OFF = "MILLPOND_PROOF_CLOCK"  # names the file: nanoseconds, in eight bytes


def _lie(path: str) -> None:
    with Path(path).open("rb") as file:
        off = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    real, real_of, wall = time.time_ns, time.clock_gettime_ns, time.CLOCK_REALTIME

    def time_ns() -> int:
        return real() + int(struct.unpack_from("<q", off)[0])

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
    time.clock_gettime_ns = lambda which: time_ns() if which == wall else real_of(which)
    time.clock_gettime = lambda which: time.clock_gettime_ns(which) / 1e9


if OFF in os.environ:
    _lie(os.environ[OFF])
