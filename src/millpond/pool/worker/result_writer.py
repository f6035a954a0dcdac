"""The worker's way out: answers into the ring, large ones as frames on the socket, and a doorbell.

The bell is an eventfd and not a byte on the socket: reading from a socket wakes its sender once more,
which costs more than the rest of a short task.

An answer is in shared memory before the next task begins, so it survives this process. Pickling trouble
becomes that task's error here; nothing a task returns or raises may stop the worker.
"""

from __future__ import annotations

import marshal
import pickle
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from millpond.pool.channel import frames
from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.pickling import PLAIN, PLAIN_SIZED, Aside, Packed, pack
from millpond.pool.channel.remote_errors import Remote, Unreadable, describe, pack_plain
from millpond.pool.channel.shared_page import Page, Regions, bucket
from millpond.pool.worker.main_module import explain
from millpond.system.kernel import eventfd_write

SMALL = 16 * 1024  # answers up to this size go through the ring
SAMPLE = 16
LONG = 1000  # a chunk of so many items is of short ones: not worth looking through for large buffers
FLUSH_AFTER = 2_000_000  # ns: an answer waits in the ring no longer than this for the doorbell


class Outbox:
    """Writes answers where the parent finds them."""

    def __init__(self, sock: socket.socket, page: Page, bell: int) -> None:
        self._sock = sock
        self._bell = bell
        self._words = page.words
        self._ring = page.ring
        self._arena = page.arena_out
        self._regions = Regions(layout.ARENA_BYTES)
        self._lent: deque[int] = deque()
        self._freed = 0
        self._written = 0
        self._room = layout.RING_BYTES  # up to here the parent is known to have made room
        self._sending = threading.Lock()  # a task's own threads may report progress
        self._unsaid = 0  # ns: when the oldest answer not yet rung for was written; 0 if none
        self.last_run = 0

    def answer(self, number: int, run: int, value: Any, good: bool, now: int, *, items: int = 1) -> None:
        """Put the answer of a finished task, or of so many items of a map, where the parent finds it."""
        kind = type(value)
        self.last_run = run
        if good and (len(value) < SMALL // 4 if kind in PLAIN_SIZED else kind in PLAIN):
            self._put(number, run, frames.PLAIN_VALUE, marshal.dumps(value), now)
            return
        packed, verdict = self._pack(value, good, items)
        if packed.buffers or len(packed.data) > SMALL:
            self._send_large(number, run, verdict, packed)
        else:
            self._put(number, run, verdict, packed.data, now)

    def count(self, waits: list[int], runs: list[int], errors: int, items: int) -> None:
        """Add finished tasks to the statistics, which live in the page and survive this process.

        Of many short tasks only a sample enters the histograms; the sums and counts are exact.
        """
        words = self._words
        words[layout.TASKS_DONE] += items
        words[layout.ERRORS] += errors
        words[layout.SUM_WAIT] += max(0, sum(waits))
        words[layout.SUM_RUN] += sum(runs)
        step = len(runs) // SAMPLE + 1
        for wait in waits[::step]:
            words[layout.WAITS + bucket(max(0, wait))] += step
        for run in runs[::step]:
            words[layout.RUNS + bucket(run)] += step

    def flush(self) -> None:
        """Ring for the answers that lie in the ring."""
        if self._unsaid:
            self._unsaid = 0
            eventfd_write(self._bell, 1)

    def send(self, kind: int, body: bytes) -> None:
        """Send one frame."""
        self._send_frame(kind, body)

    # --- pickling ---------------------------------------------------------------------------------
    def _pack(self, value: Any, good: bool, items: int) -> tuple[Packed, int]:
        if not good:
            if type(value) is Unreadable and value.__cause__ is not None:
                return Packed(self.pack_error(value.__cause__)), frames.UNREADABLE
            return Packed(self.pack_error(value)), frames.ERROR
        try:
            return pack(value, by_value=False, scan=items < LONG), frames.VALUE
        except BaseException as error:
            return Packed(self.pack_error(error)), frames.ERROR

    def pack_error(self, error: BaseException) -> bytes:
        """Pickle an exception with its traceback; where that fails, a plain error that says so.

        The check loads the pickle once more here: an exception that pickles but cannot be unpickled
        must not become the parent's problem.
        """
        explain(error)
        text = describe(error)
        try:
            data = pack(Remote(error), by_value=False, aside=False).data
            if type(error).__module__ != "builtins" and not isinstance(pickle.loads(data), BaseException):
                raise TypeError("it does not unpickle to an exception")
        except BaseException as trouble:
            name = f"{type(error).__module__}.{type(error).__qualname__}"
            message = f"the task raised {name}, which cannot be sent back: {type(trouble).__name__}"
            data = pack_plain(message, text)
        return data

    # --- the ring ---------------------------------------------------------------------------------
    def _put(self, number: int, run: int, verdict: int, data: bytes, now: int) -> None:
        record = frames.ANSWER.pack(number, run, len(data), verdict) + data
        need = len(record)
        position = self._written
        offset = position % layout.RING_BYTES
        gap = layout.RING_BYTES - offset
        if gap < need:  # records never wrap: mark the rest as empty and begin again at the start
            position += gap
        if position + need > self._room:
            self._room = self._words[layout.CONSUMED] + layout.RING_BYTES
            if position + need > self._room:
                self._send_answer(number, run, verdict, data)
                return
        if gap < need:
            if gap >= 8:
                self._ring[offset : offset + 8] = b"\0" * 8
            offset = 0
        self._ring[offset : offset + need] = record
        self._written = self._words[layout.WRITTEN] = position + need
        if not self._unsaid:
            self._unsaid = now
        elif now - self._unsaid > FLUSH_AFTER:
            self.flush()

    def _send_answer(self, number: int, run: int, verdict: int, data: bytes) -> None:
        """The ring is full because the parent is slow: the socket makes us wait for it."""
        self.flush()
        head = frames.ANSWER.pack(number, run, len(data), verdict)
        self._send_frame(frames.RESULT, head, data, bytes(4))

    # --- large answers ----------------------------------------------------------------------------
    def _send_large(self, number: int, run: int, verdict: int, packed: Packed) -> None:
        self.flush()
        table, inline = self._place(packed.buffers)
        head = frames.ANSWER.pack(number, run, len(packed.data), verdict)
        count = struct.pack("<I", len(packed.buffers))
        self._send_frame(frames.RESULT, head, packed.data, table, count, tail=inline)

    def _place(self, buffers: Any) -> tuple[bytes, list[memoryview]]:
        """Copy buffers into the arena, all or none; what does not fit goes down the socket."""
        self._reclaim()
        total = sum((part.raw.nbytes + 63) & ~63 for part in buffers)
        region = self._regions.take(total) if buffers and total <= layout.ARENA_BYTES else None
        if region is None:
            return tail_table(buffers), [part.raw for part in buffers]
        position, offset = region
        self._lent.append(position)
        self._words[layout.ARENA_DONE] += 1
        return copy_in(buffers, self._arena, offset), []

    def _reclaim(self) -> None:
        freed = self._words[layout.ARENA_FREED]
        while self._freed < freed:
            self._freed += 1
            self._regions.give_back(self._lent.popleft())

    def _send_frame(self, kind: int, *body: Any, tail: Sequence[memoryview] = ()) -> None:
        """Send a frame, however long it takes. The parent looks at the socket when the bell rings, so
        it must ring as soon as the frame has begun, and again when it is complete. It is counted first: a
        signal handler of the task's may raise behind any call, and a frame that is there and not counted
        would hide the next one."""
        length = sum(map(len, body))
        header = frames.FRAME.pack(kind, length, sum(part.nbytes for part in tail))
        with self._sending:
            self._words[layout.FRAMES] += 1
            if not tail and length < SMALL:
                self._send_all(b"".join((header, *body)))
                body = ()
            else:
                self._send_all(header)
            eventfd_write(self._bell, 1)
            if body:
                for part in (*body, *tail):
                    self._send_all(part)
                eventfd_write(self._bell, 1)

    def _send_all(self, data: Any) -> None:
        """Blocking send on a socket that a task may have made non-blocking."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._sock.send(view) :]
            except BlockingIOError:
                room = select.poll()
                room.register(self._sock, select.POLLOUT)
                room.poll()


def copy_in(buffers: Any, arena: memoryview, offset: int) -> bytes:
    """Copy buffers into an arena from `offset` on; returns the table that finds them."""
    table = bytearray()
    for part in buffers:
        length = part.raw.nbytes
        arena[offset : offset + length] = part.raw
        table += frames.BUFFER.pack(offset, length, part.transient)
        offset += (length + 63) & ~63
    return bytes(table)


def tail_table(buffers: list[Aside]) -> bytes:
    """The table for buffers that follow on the socket."""
    return b"".join(frames.BUFFER.pack(-1, part.raw.nbytes, part.transient) for part in buffers)
