"""How large the write-ahead log of an SQLite file may grow before it is reported.

SQLite empties the log as soon as no transaction reads what is older. One that stays open makes it grow with
every commit, until the disk is full. Afterwards the file is cut back to KEPT.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("millpond")
MB = 1024 * 1024
KEPT = 32 * MB  # of the file, once the log is empty; a usual log has about 4 MB
TOO_LARGE = 128 * MB  # the first warning; the next one at twice the size
_warned_at: dict[str, int] = {}  # by path, for all stores of this process


def warn_of_size(path: str, size: int) -> None:
    """Log a warning when the log has become too large, and again whenever it has doubled."""
    if size < TOO_LARGE:
        _warned_at.pop(path, None)
    elif size >= 2 * _warned_at.get(path, 0):
        _warned_at[path] = size
        logger.warning(
            "%s-wal has grown to %d MB: a transaction that stays open on this file keeps SQLite from "
            "emptying it. Look for a backup, a shell or a program that has read from it for long",
            path,
            size // MB,
        )
