"""What a measured handler does: leave a mark of 32 bytes in a file in memory. Standard library only.

A mark is the job's number, when it was enqueued, when its handler began (CLOCK_MONOTONIC, ns) and the
process. Executions are counted there, so that no peer pays for a counter in its own store.
"""

import os
import struct
import time
from pathlib import Path

REDIS_URL = os.environ.get("BENCH_REDIS", "")
POSTGRES_URL = os.environ.get("BENCH_POSTGRES", "")
SQLITE = os.environ.get("BENCH_SQLITE", "")
STORE = os.environ.get("BENCH_STORE", "")
SAFE = (
    os.environ.get("BENCH_SETTINGS") == "safe"
)  # for the crash scenario: quick timers, late acknowledgement
MARKS = os.environ.get("BENCH_MARKS", "")
HOLD = 300.0  # seconds that a job to be killed would run
BRIEF = 0.005  # seconds of a job that runs while the store goes away
RECORD = struct.Struct("<qqqq")

now = time.monotonic_ns
_file: int | None = None


def mark(number: int, enqueued: int) -> None:
    """The body of the no-op job."""
    global _file
    began = now()
    if _file is None:
        _file = os.open(MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_file, RECORD.pack(number, enqueued, began, os.getpid()))


def hold(number: int, enqueued: int) -> float:
    """Mark, and say how long to stay: a job that has been killed once ends at its second run."""
    mark(number, enqueued)
    return 0.0 if Path(f"{MARKS}.{number}").exists() else HOLD
