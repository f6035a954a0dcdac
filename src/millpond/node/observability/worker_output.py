"""What workers print: read by the node, and told in its log line by line, with pool, worker and job.

Job data is hostile text. Were it written to the node's own stderr as it is, a job could forge lines of the
log and steer the terminal that shows it. Each worker prints into a pipe of its own; a thread reads them all,
little of each at a time. Of a flood only the first lines of each second are told, and how many were not. The
rest is read and thrown away as quickly as `EACH_SECOND` allows, so that no worker stands still because it
prints, and none keeps the node busy. A stream is read until its last writer has gone: closed sooner, it would
kill the process that prints.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import threading
import time
from typing import Any, Protocol

from millpond.node.observability.logs import FIELDS
from millpond.node.worker.output_marks import BEGIN, END
from millpond.shown_text import shown

logger = logging.getLogger("millpond.output")
AT_ONCE = 65_536  # bytes read of one worker before the next has its turn
EACH_SECOND = 16 << 20  # bytes of one worker; one that prints more waits for the next second
LINES = 200  # of all workers together in a second
LONGEST = 1_000  # characters of a line
TICK = 1.0  # seconds


class Printing(Protocol):
    """The node's end of a worker."""

    output: int | None
    pid: int


class _Stream:
    """What one worker prints."""

    def __init__(self, pool: str, worker: Printing, descriptor: int) -> None:
        self.pool = pool
        self.worker = worker
        self.descriptor = descriptor
        self.mark: bytes | None = None  # what the worker puts before each line, as it said first
        self.rest = b""  # a line that has not ended
        self.taken = 0  # bytes in this second

    def lines(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. One that is too long is cut, and its end begins another."""
        if self.mark is None:
            data = self._greeting(data)
        *whole, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > 4 * LONGEST:
            whole, self.rest = [*whole, self.rest], b""
        return [piece for line in whole for piece in self.pieces(line)]

    def pieces(self, line: bytes) -> list[bytes]:
        """A line, cut where the mark of another job stands in it: jobs of one worker print at the same time,
        and one may begin before another has ended its line. The late end of that line says nothing."""
        if not self.mark or self.mark not in line[1:]:
            return [line] if line or not self.mark else []
        head, *others = line.split(self.mark)
        return [*filter(None, [head]), *(self.mark + piece for piece in others)]

    def _greeting(self, data: bytes) -> bytes:
        head, end, rest = data.partition(END)
        is_one = bool(end) and head.startswith(BEGIN) and len(head) < 100
        self.mark = head if is_one else b""
        return rest if is_one else data

    def told(self, line: bytes) -> tuple[str, str]:
        """The job that printed a line, if that is known, and its text."""
        job = b""
        if self.mark and line.startswith(self.mark):
            job, _, line = line[len(self.mark) :].partition(END)
        text = line[: 4 * LONGEST].decode("utf-8", "backslashreplace").rstrip("\r")
        return job.decode("ascii", "replace"), text


class Output:
    """Reads what all workers of a node print, in a thread of its own."""

    _epoll: select.epoll  # this and the bell are opened for the first worker
    _bell: int
    _ring = -1

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}
        self._resting: list[_Stream] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._ends_at: float | None = None
        self._second = 0.0
        self._told = self._left_out = 0

    def take(self, pool: str, worker: Printing) -> None:
        """Read what this worker prints from now on."""
        descriptor, worker.output = worker.output, None
        if descriptor is None:
            return
        with self._lock:
            if self._thread is None:
                self._epoll = select.epoll()
                self._bell, self._ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._epoll.register(self._bell, select.EPOLLIN)
            self._streams[descriptor] = _Stream(pool, worker, descriptor)
            self._epoll.register(descriptor, select.EPOLLIN)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="millpond-output", daemon=True)
                self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Read what is left, for so long, and end. The workers have ended."""
        with self._lock:  # the thread closes the bell under it, too
            self._ends_at = time.monotonic() + timeout
            if self._ring >= 0:
                os.write(self._ring, b"!")
        if self._thread is not None:
            self._thread.join(timeout + TICK)

    def _run(self) -> None:
        while not self._is_over():
            try:
                self._round()
            except Exception:  # a pipe that is not read any more would stop its worker in the middle of a job
                logger.exception("What workers print could not be read for a moment")
                time.sleep(0.1)
        self._next_second(time.monotonic())
        with self._lock:
            for descriptor in (*self._streams, self._bell, self._ring):
                os.close(descriptor)
            self._ring = -1
            self._streams.clear()
            self._epoll.close()

    def _round(self) -> None:
        now = time.monotonic()
        if now - self._second >= TICK:
            self._next_second(now)
        for descriptor, _ in self._epoll.poll(0.1 if self._ends_at is not None else TICK):
            if descriptor in self._streams:
                self._read(self._streams[descriptor])
            else:
                os.read(self._bell, 16)

    def _is_over(self) -> bool:
        return self._ends_at is not None and (not self._streams or time.monotonic() >= self._ends_at)

    def _next_second(self, now: float) -> None:
        self._second, self._told = now, 0
        if self._left_out:
            _write("", 0, "", f"{self._left_out:,} lines that workers printed were left out")
            self._left_out = 0
        resting, self._resting = self._resting, []
        for stream in list(self._streams.values()):  # others are added meanwhile
            stream.taken = 0
        for stream in resting:
            self._epoll.register(stream.descriptor, select.EPOLLIN)

    def _read(self, stream: _Stream) -> None:
        try:
            data = os.read(stream.descriptor, AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(stream)
            return
        stream.taken += len(data)
        lines = stream.lines(data)
        room = max(0, LINES - self._told)
        self._told += len(lines[:room])
        self._left_out += len(lines[room:])
        for line in lines[:room]:
            _write(stream.pool, stream.worker.pid, *stream.told(line))
        if stream.taken >= EACH_SECOND:
            self._epoll.unregister(stream.descriptor)
            self._resting.append(stream)

    def _forget(self, stream: _Stream) -> None:
        for piece in stream.pieces(stream.rest) if stream.rest else ():
            _write(stream.pool, stream.worker.pid, *stream.told(piece))
        with self._lock:
            self._epoll.unregister(stream.descriptor)
            del self._streams[stream.descriptor]
            os.close(stream.descriptor)


def _write(pool: str, worker: int, job: str, text: str) -> None:
    """One line into the log, whatever its level; to stderr in a program that has set up none."""
    where = " ".join(str(part) for part in (pool, worker, job) if part)
    line = f"[{where}] {shown(text, most=LONGEST)}" if where else text
    with contextlib.suppress(Exception):  # the program's handlers, or its stderr: the workers go on
        if logger.hasHandlers():
            facts: dict[str, Any] = {"pool": pool or None, "worker": worker or None, "job": job or None}
            logger.handle(
                logger.makeRecord(
                    logger.name, logging.INFO, __file__, 0, "%s", (line,), None, extra={FIELDS: facts}
                )
            )
        else:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
