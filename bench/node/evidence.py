"""What the marks of the handlers say: how many ran, when, where, and how long after they were enqueued."""

import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

RECORD = struct.Struct("<qqqq")


class Mark(NamedTuple):
    """One beginning of a handler; stamps are nanoseconds of the monotonic clock."""

    number: int
    enqueued: int
    began: int
    pid: int


class Stuck(Exception):
    """Something did not happen in time."""


def count(path: Path) -> int:
    return path.stat().st_size // RECORD.size


def read(path: Path) -> list[Mark]:
    data = path.read_bytes()
    return [Mark(*record) for record in RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size])]


def wait_for(ready: Callable[[], bool], what: str, patience: float, every: float = 0.005) -> None:
    """Look until it is so; `Stuck` when patience runs out."""
    until = time.monotonic() + patience
    while not ready():
        if time.monotonic() > until:
            raise Stuck(f"{what}: not within {patience:g} s")
        time.sleep(every)


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this part of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]
