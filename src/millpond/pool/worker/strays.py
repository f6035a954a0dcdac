"""Finds and ends the processes that workers left behind under the template, and no others.

Each worker has a number that its descendants inherit, in RLIMIT_LOCKS: Linux has ignored this limit since
2.4.25 and copies it at every fork and exec, whatever a process does to its group, session or environment.
Never ends a process that may belong to a living worker.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Mapping
from contextlib import suppress

from millpond.pool.proc import birth
from millpond.pool.worker.resource_limits import resource

LOCKS = 10  # RLIMIT_LOCKS; the resource module does not name it
BITS = 20  # of a worker's number
MOST = (1 << BITS) - 1
DEEPEST = 3 * BITS  # a limit has 64 bits: room for the numbers of pools three deep


class Marks:
    """The numbers of one template's workers. A template inside a worker of another pool puts its own numbers
    above the number of that worker, so that both templates can read whose a process is."""

    def __init__(self) -> None:
        limit, self._hard = resource.getrlimit(LOCKS)
        self._outer = 0 if limit == resource.RLIM_INFINITY else limit
        self._shift = -(-self._outer.bit_length() // BITS) * BITS
        self._last = 0

    def new(self, taken: Collection[int]) -> int:
        """A number for one more worker; one that was used a million workers ago may come again."""
        self._last = self._last % MOST + 1
        while self._last in taken:
            self._last = self._last % MOST + 1
        return self._last

    def put_on(self, number: int) -> None:
        """Mark this process and all that it starts; without a mark where the limit is forbidden or full."""
        if self._shift < DEEPEST:
            with suppress(OSError, ValueError):
                resource.setrlimit(LOCKS, (self._outer | number << self._shift, self._hard))

    def of(self, pid: int) -> int | None:
        """The number of the worker that a process descends from; None if that cannot be known."""
        try:
            limit, _ = resource.prlimit(pid, LOCKS)
        except OSError:
            return None
        if limit == resource.RLIM_INFINITY or limit & ((1 << self._shift) - 1) != self._outer:
            return None
        return limit >> self._shift & MOST or None


class Strays:
    """The children of the template that are no workers: their parents have ended."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._template = os.getpid()
        self._own: frozenset[int] = frozenset()
        self._killed: set[int] = set()  # and not reaped yet

    def keep(self) -> None:
        """What runs now was started by the modules that the template imported, and lives as long as it."""
        self._own = frozenset(self._children())

    def kill(self, living: Mapping[int, int]) -> None:
        """End what workers left behind that are not among the living (pid -> number)."""
        numbers = frozenset(living.values())
        for pid in self._children():
            if pid not in living and pid not in self._own and numbers.isdisjoint(self._owners(pid, living)):
                self._kill(pid)

    def kill_all(self) -> None:
        """End whatever is left: the template goes, and all its workers are killed."""
        for pid in self._children():
            self._kill(pid)

    def reaped(self, pid: int) -> bool:
        """A child has been reaped. True if it was killed here: what it had started is the template's now."""
        self._own -= {pid}
        killed = pid in self._killed
        self._killed.discard(pid)
        return killed

    def _owners(self, pid: int, living: Mapping[int, int]) -> frozenset[int]:
        """The workers to which a stray may belong.

        A helper of a living worker's task comes here too, as soon as its own parent has left (a double fork,
        `sh -c "x &"`): killed with another worker's strays it would fail that task at random. A helper that
        has set the limit anew, as a login does, may be the helper of any worker that is not younger: it stays
        until all of those have ended. Shown in tests/pool/test_strays.py.
        """
        number = self._marks.of(pid)
        if number is not None:
            return frozenset((number,))
        leader = living.get(os.getpgid(pid))  # a group's number is no other process's while it lasts
        if leader is not None:
            return frozenset((leader,))
        born = birth(pid)
        return frozenset(number for worker, number in living.items() if birth(worker) <= born)

    def _kill(self, pid: int) -> None:
        with suppress(ProcessLookupError, PermissionError):  # it may run as another user
            os.kill(pid, signal.SIGKILL)
            self._killed.add(pid)

    def _children(self) -> list[int]:
        """Read only when a worker has ended: nothing is looked for while tasks run."""
        try:
            with open(f"/proc/self/task/{self._template}/children") as file:
                return [int(pid) for pid in file.read().split()]
        except OSError:
            return []
