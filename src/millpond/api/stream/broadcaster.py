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

from millpond.api.json_route import encoded
from millpond.api.options import Limits
from millpond.api.overview import Document, delta
from millpond.api.problems import Problem
from millpond.api.snapshot import Gathering

logger = logging.getLogger("millpond.api")
STILL = 5.0  # seconds after which a listener is told the time though nothing changed
RECENT = 50  # events that a new listener is told


def message(event: str, data: Any, number: int | None = None) -> bytes:
    """One event of the stream. JSON has no line breaks, so that no data can begin another event."""
    named = f"id: {number}\n" if number is not None else ""
    return f"{named}event: {event}\ndata: ".encode() + encoded(data) + b"\n\n"


class Listener:
    """One reader of the stream."""

    def __init__(self, client: str, behind: int) -> None:
        self.client = client  # a session, or an address
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

    def __init__(
        self,
        look: Callable[[], Awaitable[Document]],
        beside: Callable[..., Awaitable[Any]],  # runs a function in a thread
        gathering: Gathering,
        limits: Limits,
    ) -> None:
        self._look = look
        self._beside = beside
        self._gathering = gathering
        self._limits = limits
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._last: Document | None = None
        self._whole: tuple[Document | None, bytes] | None = None  # it as a message
        self._told = 0  # the last event that every listener knows
        self._told_at = 0.0
        self.is_closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    async def attach(self, client: str, last_event: int | None) -> tuple[Listener, list[bytes]]:
        """A new listener, and what it must be told first. A Problem when there are too many."""
        listener = Listener(client, self._limits.behind)
        self._refuse_crowd(client)
        self._listeners.add(listener)  # before anything is awaited, or the bound would not hold
        try:
            if self._is_resting():
                found = await self._look()
                if self._is_resting():  # of several that came at once, one begins
                    self._last, self._told = found, self._gathering.events.last
                    self._task = asyncio.create_task(self._poll())
            # From here on it is told what changes. Its first words are those of this moment, though they are
            # put into bytes in a thread: what was in line before is in them, what comes meanwhile is not.
            listener.start_anew()
            first = await self._beside(self._first_words, self._last, self._told, last_event)
        except BaseException:
            self._listeners.discard(listener)
            raise
        return listener, first

    def _is_resting(self) -> bool:
        return self._task is None or self._task.done()

    def _first_words(self, last: Document | None, told: int, last_event: int | None) -> list[bytes]:
        """The overview, and the events that were missed; without a number that is known, the last few."""
        is_known = last_event is not None and last_event <= told
        lines = self._gathering.events.lines((last_event or 0) if is_known else 0, told)
        if not is_known:
            lines = lines[-RECENT:]
        if self._whole is None or self._whole[0] is not last:
            self._whole = (last, message("overview", last))
        return [
            self._whole[1],
            *(message("event", line, line["number"]) for line in lines),
        ]

    def _refuse_crowd(self, client: str) -> None:
        each = Counter(listener.client for listener in self._listeners)
        if self.is_closed:
            raise Problem("overloaded", "the server is stopping")
        if each[client] >= self._limits.streams_each:
            raise Problem("overloaded", f"{each[client]} event streams of yours are open: no more are taken")
        if len(self._listeners) >= self._limits.streams:
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
                found = await self._look()
                self._tell(found, *await self._beside(self._news, self._last, found, self._told))
            except Problem as problem:
                logger.debug("The store could not be looked at: %s", problem.detail)
            except Exception as error:  # one look that fails must not end the stream
                logger.warning("The store could not be looked at: %s", error)

    def _news(
        self, before: Document | None, found: Document, told: int
    ) -> tuple[bytes | None, list[tuple[int, bytes]]]:
        """What every listener is to be told, in bytes."""
        changed = found if before is None else delta(before, found)
        is_due = len(changed) > 1 or time.monotonic() - self._told_at >= STILL
        lines = self._gathering.events.lines(told, self._gathering.events.last)
        return (
            message("delta", changed) if is_due else None,
            [(line["number"], message("event", line, line["number"])) for line in lines],
        )

    def _tell(self, found: Document, changed: bytes | None, events: list[tuple[int, bytes]]) -> None:
        """In one step of the loop: a listener that comes is told either what was before or what is then."""
        self._last = found
        if changed is not None:
            self._told_at = time.monotonic()
            self._broadcast(changed)
        for number, data in events:
            self._told = number
            self._broadcast(data)

    def _broadcast(self, data: bytes) -> None:
        for listener in list(self._listeners):
            listener.tell(data)
