"""Which sessions were logged out, kept in the store until they would have expired.

A cookie that was logged out counts at no dashboard of this store, now or after a restart. Every server looks
at the store every few seconds for what was logged out at another. Only the names of sessions are kept, as
digests: nothing in the store opens anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import msgspec

from millpond.errors import Conflict
from millpond.store.protocol import Store

NAME = "dashboard/ended"
MOST = 2_000  # the last ones; a session lasts twelve hours
TRIES = 100
FRESH = 5.0  # seconds between two looks at what others have ended


class SessionEnds:
    """The names of sessions that have ended, and when each would have expired."""

    def __init__(self, store: Store, beside: Callable[..., Awaitable[Any]]) -> None:
        """`beside` runs a function in a thread."""
        self._store = store
        self._beside = beside
        self._ended: dict[str, float] | None = None  # None: the store was not asked yet
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = float("-inf")

    def __contains__(self, session: str) -> bool:
        return self._ended is not None and _digest(session) in self._ended

    async def ready(self, *, has_session: bool) -> None:
        """Ask the store before the first session is judged; later beside whatever else is done."""
        if not has_session or time.monotonic() - self._looked_at < FRESH:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(_take_note)
        if self._ended is None:
            await asyncio.shield(self._looking)

    async def _look(self) -> None:
        found = await self._beside(lambda: _read(self._store.record(NAME).value))
        self._ended = {**(self._ended or {}), **found}
        self._looked_at = time.monotonic()

    async def end(self, session: str, expires_at: float) -> None:
        """The session counts no more, here at once and elsewhere soon. Raises what the store raises."""
        digest, now = _digest(session), time.time()
        kept = {name: ends for name, ends in (self._ended or {}).items() if ends > now}
        self._ended = {**kept, digest: expires_at}
        await self._beside(self._write, digest, expires_at, now)

    def _write(self, digest: str, expires_at: float, now: float) -> None:
        for _ in range(TRIES):
            document = self._store.record(NAME)
            ended = {name: ends for name, ends in _read(document.value).items() if ends > now}
            ended[digest] = expires_at
            kept = dict(sorted(ended.items(), key=lambda item: item[1])[-MOST:])
            try:
                self._store.record(NAME, msgspec.json.encode(kept), document.version)
            except Conflict:
                continue  # another server wrote between: read what it wrote, and add to that
            return
        raise Conflict("the list of sessions that have ended is written all the time: log out again")


def _take_note(looking: asyncio.Task[None]) -> None:
    if not looking.cancelled():
        looking.exception()  # whoever waited was told; else the next look is soon


def _digest(session: str) -> str:
    return sha256(session.encode(errors="replace")).hexdigest()[:32]


def _read(data: bytes | None) -> dict[str, float]:
    """What the store has; a document that was spoilt ends no session, and is replaced by the next."""
    try:
        return msgspec.json.decode(data or b"{}", type=dict[str, float])
    except (msgspec.DecodeError, RecursionError):
        return {}
