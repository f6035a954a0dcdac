"""Hears that somebody writes to a SQLite file, without opening it: by watching its folder with inotify.

Opening and closing a database file behind SQLite's back would drop the locks of this process. What is
heard is that a write has begun; its commit shows a moment later. Where there is no inotify, it is a nap.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from pathlib import Path

IN_MODIFY, IN_CREATE = 0x2, 0x100
IN_MOVED_FROM, IN_MOVED_TO, IN_DELETE = 0x40, 0x80, 0x200  # a file was deleted or replaced
HEARD = IN_MODIFY | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
NAP = 0.02
FIRST_LOOK, LAST_LOOK = 0.0001, 0.005  # naps while a write becomes a commit, first and after a while
USUAL_COMMIT = 0.003
LONGEST_COMMIT = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


class WalWatch:
    """The write-ahead log of one database. What happens between two waits is not lost."""

    def __init__(self, database: str) -> None:
        path = Path(database)
        self._folder = os.fsencode(path.parent)
        self._names = {os.fsencode(path.name + "-wal"), os.fsencode(path.name)}
        try:
            self._descriptor = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
            if self._descriptor >= 0 and self._add() < 0:
                self.close()
        except AttributeError:  # not Linux
            self._descriptor = -1

    def close(self) -> None:
        """Stop watching; waits become naps."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def _add(self) -> int:
        return int(_libc.inotify_add_watch(self._descriptor, self._folder, HEARD))

    def wait(self, timeout: float) -> bool:
        """Sleep until somebody writes; False when the time is over."""
        if self._descriptor < 0:
            time.sleep(min(NAP, timeout))
            return True
        until = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if poll.poll(left * 1000) and self._concerns_us():
                return True
        return False

    def listen(self, heard: float, left: float) -> float:
        """Sleep until a process writes, or until a write that was heard may show as a commit: that takes a
        moment, or long. `heard` is when a write was last heard; returns the same."""
        since = time.monotonic() - heard
        if since < USUAL_COMMIT:
            time.sleep(FIRST_LOOK)
        elif self.wait(min(left, LAST_LOOK) if since < LONGEST_COMMIT else left):
            return time.monotonic()
        return heard

    def _concerns_us(self) -> bool:
        try:
            data = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return False
        position, found = 0, False
        while position < len(data):
            *_, length = EVENT.unpack_from(data, position)
            position += EVENT.size
            found = found or data[position : position + length].rstrip(b"\0") in self._names
            position += length
        return found
