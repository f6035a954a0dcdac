"""The id of a tick's job, made of the task's name and the scheduled instant and of nothing else.

Whoever knows that a tick exists knows its job: a planner that takes over finds the runs of the one before
it, and two that plan the same instant plan the same job. The id is a UUID of version 7 whose time is the
scheduled instant, to the microsecond; the rest is a hash of the name.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from millpond.job import Instant

_HASH = 62  # bits
_LAST = 1 << 48  # milliseconds that fit


def tick_id(name: str, at: Instant) -> str:
    """The id of the job of this tick."""
    milliseconds, rest = divmod(at, 1000)
    high = (milliseconds % _LAST) << 16 | 0x7000 | rest
    low = 1 << 63 | _hash_of(name)
    text = f"{high:016x}{low:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def instant_of(job_id: str, name: str) -> Instant | None:
    """The scheduled instant of a tick's job; None for a job that is no tick of this task."""
    plain = job_id.replace("-", "")
    high, low = int(plain[:16], 16), int(plain[16:], 16)
    if low != 1 << 63 | _hash_of(name):
        return None
    return (high >> 16) * 1000 + (high & 0xFFF)


@lru_cache(65_536)
def _hash_of(name: str) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & ((1 << _HASH) - 1)
