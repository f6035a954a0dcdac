"""The memory a pool shares with one worker: a status page, a ring of answers and two arenas.

One anonymous memfd, so nothing has a name and the kernel frees it with its last holder, SIGKILL included.
The worker writes what it runs and when it began, so the parent can blame and time it without a message.
Answers lie in the ring from the moment a task is done: they survive the worker's death. Every word has
one writer; a doorbell (an eventfd) or the worker's death orders the reader behind the writer.

    | status words and histograms | ring of answers | arena in | arena out | last stack (file only) |
"""

from __future__ import annotations

import contextlib
import mmap
import os

from millpond.system.kernel import memfd_create

# words of the status page, each a uint64 with a single writer
TASKS_DONE, RSS, WRITTEN, ARENA_DONE, SUM_WAIT, SUM_RUN, ERRORS, ITEM = range(8)  # written by the worker
CONSUMED, ARENA_FREED = 8, 9  # written by the parent
FRAMES = 10  # written by the worker: frames whose beginning is on the socket
UNWANTED = 11  # written by the parent: the task whose end somebody asked for
FENCE = 12  # written by the parent: when what runs here must have stopped (ns since boot), 0 for never
FENCED = 13  # written by the template: it has stopped the worker at its fence
LOOP_AT = 14  # written by an async worker: when its event loop last came round (ns)
TAKING_IN = 15  # written by the worker: it takes in what tasks need of the parent's `__main__`
SLOTS = 16  # from here on: (task number, start in ns) for each task that may run at once
MAX_SLOTS = 1024
HISTOGRAM = 256  # buckets of one histogram: four to each power of two of nanoseconds
WAITS = SLOTS + 2 * MAX_SLOTS
RUNS = WAITS + HISTOGRAM

PAGE = 4096
STATUS_BYTES = -(-(RUNS + HISTOGRAM) * 8 // PAGE) * PAGE
RING_BYTES = 128 * 1024
ARENA_BYTES = 64 << 20
ARENA_IN = STATUS_BYTES + RING_BYTES
ARENA_OUT = ARENA_IN + ARENA_BYTES
STACK = ARENA_OUT + ARENA_BYTES  # not mapped: the stack dumps append here through the descriptor
STACK_LIMIT = 64 * 1024


def bucket(nanoseconds: int) -> int:
    """The histogram bucket of a duration."""
    if nanoseconds < 8:
        return 0
    bits = nanoseconds.bit_length()
    return (bits << 2) | ((nanoseconds >> (bits - 3)) & 3)


def bucket_bounds(index: int) -> tuple[float, float]:
    """The durations, in seconds, that a bucket stands for."""
    bits, quarter = index >> 2, index & 3
    if bits < 4:
        return 0.0, 8e-9
    low = (4 + quarter) << (bits - 3)
    return low / 1e9, (low + (1 << (bits - 3))) / 1e9


class Page:
    """One process's view of the shared memory."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, STACK)
        self.view = memoryview(self.memory)
        self.words = self.view[:STATUS_BYTES].cast("Q")
        self.ring = self.view[STATUS_BYTES:ARENA_IN]
        self.arena_in = self.view[ARENA_IN:ARENA_OUT]
        self.arena_out = self.view[ARENA_OUT:STACK]

    @classmethod
    def create(cls, name: str) -> Page:
        """A new page, all zero; sparse, so unused arenas cost nothing."""
        descriptor = memfd_create(name)
        try:
            os.ftruncate(descriptor, STACK)
            return cls(descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def running(self, slot: int = 0) -> tuple[int, int]:
        """(task number, start in ns) of what runs in a slot; (0, 0) when nothing does.

        The worker writes the start first and the number second, so a new number never comes with an
        old start; reading the number twice around the start rejects a change in between.
        """
        words = self.words
        index = SLOTS + 2 * slot
        while True:
            number = words[index]
            start = words[index + 1]
            if number == words[index]:
                return number, start

    def ask_to_stop(self, number: int) -> None:
        """Let the task of that number know, if it asks, that its end is wanted."""
        self.words[UNWANTED] = number

    def stack(self) -> str:
        """The last stack dumped by the worker, if any."""
        data = os.pread(self.descriptor, STACK_LIMIT, STACK)
        return data.decode("utf-8", "replace").strip("\0\n ")

    def stack_size(self) -> int:
        """How much stack has been dumped so far."""
        return os.fstat(self.descriptor).st_size - STACK

    def empty_arenas(self) -> None:
        """Give the arenas' memory back to the system; no task is here, and no answer waits to be read.

        Whole pages only, and the system may refuse (memory that is locked, other kernels): then they stay.
        """
        start = -(-ARENA_IN // mmap.PAGESIZE) * mmap.PAGESIZE
        with contextlib.suppress(OSError):
            self.memory.madvise(mmap.MADV_REMOVE, start, (STACK - start) // mmap.PAGESIZE * mmap.PAGESIZE)

    def close(self) -> None:
        """Unmap and close; safe to call once."""
        for part in (self.words, self.ring, self.arena_in, self.arena_out, self.view):
            part.release()
        self.memory.close()
        os.close(self.descriptor)


class Regions:
    """Hands out regions of an arena in order and takes them back in any order, with no search.

    Positions only grow; the arena is used modulo its size. Used by the sender of large buffers.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._head = 0
        self._tail = 0
        self._spans: dict[int, tuple[int, bool]] = {}  # start -> (end, freed), in order

    def take(self, length: int) -> tuple[int, int] | None:
        """(position, offset) of `length` contiguous bytes, or None when the arena is too full."""
        head = self._head
        offset = head % self._size
        if offset + length > self._size:  # never split a region across the end
            head += self._size - offset
            offset = 0
        if head + length - self._tail > self._size:
            return None
        self._spans[self._head] = (head + length, False)
        position = self._head
        self._head = head + length
        return position, offset

    def give_back(self, position: int) -> None:
        """Free a region; the space is reusable once everything before it is free too."""
        end, _ = self._spans[position]
        self._spans[position] = (end, True)
        while self._spans:
            first = next(iter(self._spans))
            end, freed = self._spans[first]
            if not freed:
                return
            del self._spans[first]
            self._tail = end
        self._head = self._tail = 0  # empty: the whole arena is one piece again
