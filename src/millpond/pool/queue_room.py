"""The places of a bounded queue. A semaphore would do, but for Ctrl-C: an interrupt inside one can leave it
locked, have it raise in the next thread that uses it, or lose a place for good.

Here every step is one atomic operation, and a place is an object: one that an interrupt drops on its way
from the room to a task returns by itself.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from contextlib import suppress
from itertools import repeat


class Place(tuple["weakref.ref[Room]"]):
    """One place. A tuple, so that making one runs no code of Python that could be interrupted."""

    __slots__ = ()

    def __del__(self) -> None:
        """Dropped by an interrupt: another like it takes its place."""
        room = self[0]()
        if room is not None:
            room.give_back(Place(self))


class Room:
    """So many places; each is taken by one task and given back once."""

    def __init__(self, places: int) -> None:
        self._fresh = map(Place, repeat((weakref.ref(self),), places))  # places that were never taken
        self._free: deque[Place] = deque()
        self._bells: deque[threading.Lock] = deque()  # of those that wait for a place

    def take(self) -> Place | None:
        """Take a place if there is one."""
        try:
            return self._free.pop()
        except IndexError:
            return next(self._fresh, None)

    def give_back(self, place: Place) -> None:
        """A place is free again; wakes one thread that waits for it."""
        self._free.append(place)
        with suppress(IndexError, RuntimeError):  # no thread waits, or it was woken meanwhile
            self._bells.popleft().release()

    def wait(self, seconds: float) -> Place | None:
        """Take a place, waiting for a while. A thread that is woken and interrupted may leave another one
        asleep for its whole time, no longer."""
        bell = threading.Lock()
        bell.acquire()
        self._bells.append(bell)
        try:
            place = self.take()
            if place is None and bell.acquire(timeout=seconds):
                place = self.take()
            return place
        finally:
            with suppress(ValueError):
                self._bells.remove(bell)
