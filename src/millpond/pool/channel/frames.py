"""The bytes between a pool and its worker: frames on the socket, records in the ring.

Parent and worker run the same code, so there is no versioning. This file packs and unpacks; it knows
nothing of futures, queues or processes. A frame is a header, a body, and a tail of raw buffers.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from millpond.pool.channel.buffers import fresh

# --- frames on the socket ------------------------------------------------------------------------
FRAME = struct.Struct("<BQQ")  # kind, length of the body, length of the tail

# parent to worker
SETUP, TASKS, LARGE, DEFINE, MAIN, RESET, EXIT, CANCEL = range(1, 9)
# worker to parent
READY, RESULT, RETIRE, RESET_DONE, FAILED, NOTE = range(20, 26)

# --- records ------------------------------------------------------------------------------------
TASK = struct.Struct("<QQQQB")  # number, submitted (ns), function id, length of payload, flags
KEYWORDS, CHUNK, INLINE = 1, 2, 4  # payload is (args, kwargs) / a list of calls / carries its function
PLAIN = 8  # payload is marshalled: a tuple of exact ints, floats, strings, bools, Nones
ANSWER = struct.Struct("<QQQB")  # number, run time (ns), length of payload, verdict
VALUE, ERROR, UNREADABLE, PLAIN_VALUE = 1, 2, 3, 4  # the last: marshalled
BUFFER = struct.Struct("<qQB")  # offset in the arena (-1: in the tail), length, transient

CHUNK_READ = 1 << 16


class Frame(NamedTuple):
    """One complete frame."""

    kind: int
    body: bytes | bytearray | memoryview
    tail: memoryview


NO_TAIL = memoryview(b"")


class FrameReader:
    """Cuts what a socket delivers into frames; big bodies and tails land straight in their own memory."""

    def __init__(self, sock: socket.socket) -> None:
        self._recv_into = sock.recv_into
        self._memory = bytearray(CHUNK_READ)
        self._view = memoryview(self._memory)
        self._rest = b""
        self._pending: tuple[int, memoryview, memoryview] | None = None
        self._holes: list[memoryview] = []
        self.torn = (
            False  # from here until the reader's owner has dealt with what came, an interrupt loses it
        )

    @property
    def partial(self) -> bool:
        """Has a frame begun to arrive?"""
        return bool(self._holes or self._rest)

    def read(self) -> list[Frame]:
        """Receive once and return the frames completed by it; raises EOFError, BlockingIOError."""
        self.torn = True
        try:
            return self._fill() if self._holes else self._receive()
        except OSError:
            self.torn = False
            raise

    def _receive(self) -> list[Frame]:
        count = self._recv_into(self._memory)
        if not count:
            raise EOFError
        data = bytes(self._view[:count])
        return self._cut(self._rest + data if self._rest else data)

    def _fill(self) -> list[Frame]:
        hole = self._holes[0]
        got = self._recv_into(hole)
        if not got:
            raise EOFError
        if got < len(hole):
            self._holes[0] = hole[got:]
            return []
        del self._holes[0]
        if self._holes:
            return []
        assert self._pending is not None
        kind, body, tail = self._pending
        self._pending = None
        return [Frame(kind, body, tail)]

    def _cut(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        position, end = 0, len(data)
        while end - position >= FRAME.size:
            kind, body, tail = FRAME.unpack_from(data, position)
            start = position + FRAME.size
            if end - start >= body + tail:
                middle = start + body
                rest = NO_TAIL if not tail else _own(data[middle : middle + tail])
                frames.append(Frame(kind, data[start:middle], rest))
                position = middle + tail
            elif body + tail > CHUNK_READ:
                self._expect(kind, body, tail, data[start:])
                self._rest = b""
                return frames
            else:
                break
        self._rest = data[position:]
        return frames

    def _expect(self, kind: int, body: int, tail: int, head: bytes) -> None:
        """Prepare memory for a frame larger than one read and put what has come already into it."""
        body_memory, tail_memory = memoryview(bytearray(body)), fresh(tail) if tail else NO_TAIL
        self._pending = (kind, body_memory, tail_memory)
        inside = min(len(head), body)
        body_memory[:inside] = head[:inside]
        beyond = len(head) - inside
        if beyond:
            tail_memory[:beyond] = head[inside:]
        self._holes = [hole for hole in (body_memory[inside:], tail_memory[beyond:]) if len(hole)]


def _own(data: bytes) -> memoryview:
    return memoryview(bytearray(data))
