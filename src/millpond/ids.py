"""Job ids: UUIDs of version 7, which sort by the time they were made, strictly so within a process."""

from __future__ import annotations

import os
import re
import threading
import time

_RANDOM = 74  # bits that follow the milliseconds
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
_lock = threading.Lock()
_last = ""
_is_id = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
LEAST = "00000000-0000-0000-0000-000000000000"  # no job has it, and every id is greater
GREATEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"  # no job has it, and every id is less


def is_id(text: str) -> bool:
    """Can a job have this id? Stores keep ids as UUIDs, and refuse to look for anything else."""
    return _is_id(text) is not None


def new_id() -> str:
    """A new id, greater than every one this process has made before."""
    global _last
    stamp, random = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    text = f"{stamp[:8]}-{stamp[8:]}-7{random[:3]}-{_VARIANT[random[3]]}{random[4:7]}-{random[7:19]}"
    with _lock:
        if text <= _last:  # in the same millisecond, or the clock was set back
            text = _after(_last)
        _last = text
    return text


def _after(last: str) -> str:
    """The next id there is, counting in the bits that are neither version nor variant."""
    tail = int(last[24:], 16) + 1
    if tail < 1 << 48:
        return f"{last[:24]}{tail:012x}"
    whole = int(last.replace("-", ""), 16)
    stamp = ((whole >> 80 << 12 | whole >> 64 & 0xFFF) << 62 | whole & (1 << 62) - 1) + 1
    high = (stamp >> _RANDOM << 16) | 0x7000 | (stamp >> 62 & 0xFFF)
    text = f"{high:016x}{1 << 63 | stamp & (1 << 62) - 1:016x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _forget() -> None:
    """After a fork the child starts anew; its random bits keep it apart from the parent."""
    global _lock, _last
    _lock, _last = threading.Lock(), ""


os.register_at_fork(after_in_child=_forget)
