"""Writable memory for large payloads, used again once nobody looks at it any more.

New pages must be cleared by the kernel, which costs more than the copy into them. A few recent pieces
are kept here; one whose only holder is this list can be given out again. Bounded, and shared by all
pools of a process.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
import threading

HUGE = 2 << 20
KEPT_PIECES = 16
KEPT_BYTES = 128 << 20

_kept: list[mmap.mmap] = []
_lock = threading.Lock()


def fresh(length: int) -> memoryview:
    """Writable memory that nobody else holds; its content is arbitrary."""
    if length < HUGE:
        return memoryview(bytearray(length))
    size = -(-length // HUGE) * HUGE
    with _lock:
        for index, holders in enumerate(_holders(_kept)):
            if holders <= _UNUSED and len(_kept[index]) == size:
                return memoryview(_kept[index])[:length]
        piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel without huge pages
            piece.madvise(mmap.MADV_HUGEPAGE)
        _keep(piece, size)
        return memoryview(piece)[:length]


def _keep(piece: mmap.mmap, size: int) -> None:
    """Remember a piece for later; the oldest are let go of."""
    if size > KEPT_BYTES // 4:
        return
    _kept.append(piece)
    while len(_kept) > KEPT_PIECES or sum(map(len, _kept)) > KEPT_BYTES:
        del _kept[0]


def _holders(pieces: list[mmap.mmap]) -> list[int]:
    return [sys.getrefcount(piece) for piece in pieces]


# What _holders says of a piece that nobody uses; it differs between versions of Python.
[_UNUSED] = _holders([mmap.mmap(-1, 4096)])
