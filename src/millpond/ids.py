"""Job ids: UUIDs of version 7, which sort by the time they were made, strictly so within a process."""

from __future__ import annotations

import os
import threading
import time

_RANDOM = 74  # bits that follow the milliseconds
_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """A new id, greater than every one this process has made before."""
    global _last
    random = int.from_bytes(os.urandom(10), "big") & ((1 << _RANDOM) - 1)
    stamp = (time.time_ns() // 1_000_000 << _RANDOM) | random
    with _lock:
        _last = stamp = max(stamp, _last + 1)
    high = (stamp >> _RANDOM << 16) | 0x7000 | (stamp >> 62 & 0xFFF)
    text = f"{high:016x}{1 << 63 | stamp & (1 << 62) - 1:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _forget() -> None:
    """After a fork the child starts anew; its random bits keep it apart from the parent."""
    global _lock, _last
    _lock, _last = threading.Lock(), 0


os.register_at_fork(after_in_child=_forget)
