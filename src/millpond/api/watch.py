"""The live stream's source: one poller for all who listen, and none while nobody does.

Each message is encoded once and put in every listener's bounded line. A listener whose line is full is
dropped: it can come back and is told what it missed. The store is asked as often for one as for a hundred.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from millpond.api.gathering import Gathering
from millpond.api.options import Limits
from millpond.api.overview import Document, delta
from millpond.api.problems import Problem

logger = logging.getLogger("millpond.api")
STILL = 5.0  # seconds after which a listener is told the time though nothing changed
RECENT = 50  # events that a new listener is told


def message(event: str, data: Any, number: int | None = None) -> bytes:
    """One event of the stream. JSON has no line breaks, so that no data can begin another event."""
    named = f"id: {number}\n" if number is not None else ""
    return f"{named}event: {event}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


class Listener:
    """One reader of the stream."""

    def __init__(self, address: str, behind: int) -> None:
        self.address = address
        self.line: asyncio.Queue[bytes] = asyncio.Queue(behind)
        self.dropped = asyncio.Event()
        self.reason = ""

    def tell(self, data: bytes) -> None:
        """Put a message in line; one that does not keep up is dropped."""
        try:
            self.line.put_nowait(data)
        except asyncio.QueueFull:
            self.drop("slow")

    def start_anew(self) -> None:
        """Forget what was put in line while it waited: its first words say all of that."""
        while not self.line.empty():
            self.line.get_nowait()

    def drop(self, reason: str) -> None:
        """Let it go."""
        self.reason = self.reason or reason
        self.dropped.set()


class Watch:
    """Everybody who listens, and the poller that serves them."""

    def __init__(self, look: Callable[[], Awaitable[Document]], gathering: Gathering, limits: Limits) -> None:
        self._look = look
        self._gathering = gathering
        self._limits = limits
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._last: Document | None = None
        self._told = 0  # the last event that every listener knows
        self._told_at = 0.0
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    async def attach(self, address: str, last_event: int | None) -> tuple[Listener, list[bytes]]:
        """A new listener, and what it must be told first. A Problem when there are too many."""
        listener = Listener(address, self._limits.behind)
        self._refuse_crowd(address)
        self._listeners.add(listener)  # before anything is awaited, or the bound would not hold
        try:
            if self._is_resting():
                found = await self._look()
                if self._is_resting():  # of several that came at once, one begins
                    self._last, self._told = found, self._gathering.events.last
                    self._task = asyncio.create_task(self._poll())
        except BaseException:
            self._listeners.discard(listener)
            raise
        listener.start_anew()
        return listener, self._first_words(last_event)

    def _is_resting(self) -> bool:
        return self._task is None or self._task.done()

    def _first_words(self, last_event: int | None) -> list[bytes]:
        """The overview, and the events that were missed; without a number that is known, the last few."""
        is_known = last_event is not None and last_event <= self._told
        lines = self._gathering.events.lines((last_event or 0) if is_known else 0, self._told)
        if not is_known:
            lines = lines[-RECENT:]
        return [
            message("overview", self._last),
            *(message("event", line, line["number"]) for line in lines),
        ]

    def _refuse_crowd(self, address: str) -> None:
        each = Counter(listener.address for listener in self._listeners)
        if self.is_closed:
            raise Problem("overloaded", "the server is stopping")
        if len(self._listeners) >= self._limits.streams or each[address] >= self._limits.streams_each:
            raise Problem("overloaded", f"{len(self._listeners)} event streams are open: no more are taken")

    def detach(self, listener: Listener) -> None:
        """It has left."""
        self._listeners.discard(listener)

    @property
    def told(self) -> int:
        """The number of the last event that was told."""
        return self._told

    def close(self) -> None:
        """Let everybody go, and take nobody more."""
        self.is_closed = True
        for listener in list(self._listeners):
            listener.drop("shutdown")
        if self._task is not None:
            self._task.cancel()

    async def _poll(self) -> None:
        """While somebody listens."""
        while self._listeners:
            await asyncio.sleep(self._gathering.every)
            if not self._listeners:
                return
            try:
                self._tell(await self._look())
            except Problem as problem:
                logger.debug("The store could not be looked at: %s", problem.detail)
            except Exception as error:  # one look that fails must not end the stream
                logger.warning("The store could not be looked at: %s", error)

    def _tell(self, found: Document) -> None:
        changed = found if self._last is None else delta(self._last, found)
        self._last = found
        now = time.monotonic()
        if len(changed) > 1 or now - self._told_at >= STILL:
            self._told_at = now
            self._broadcast(message("delta", changed))
        for line in self._gathering.events.lines(self._told, self._gathering.events.last):
            self._told = line["number"]
            self._broadcast(message("event", line, line["number"]))

    def _broadcast(self, data: bytes) -> None:
        for listener in list(self._listeners):
            listener.tell(data)
