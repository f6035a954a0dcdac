"""What every route works with: the app and its store, the threads to ask it in, who may do what."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, Request

from millpond.api.json_route import Answer, encoded
from millpond.api.options import ApiOptions
from millpond.api.overview import Document, overview
from millpond.api.security.session_ends import SessionEnds
from millpond.api.security.tokens import Caller, Keyring, Tries
from millpond.api.snapshot import Gathering, Snapshot
from millpond.api.store_threads import Threads
from millpond.api.stream.broadcaster import Watch

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.store.protocol import Store

logger = logging.getLogger("millpond.api")
P = ParamSpec("P")
R = TypeVar("R")
TRIES = 3  # looks at a store that is changed all the time


class Desk:
    """One server of the API."""

    def __init__(self, app: App, options: ApiOptions) -> None:
        self.app = app
        self.store: Store = app.store
        self.options = options
        self.limits = options.limits
        self.threads = Threads(options.limits)
        self.ends = SessionEnds(app.store, self.ask)
        self.keyring = Keyring(options.tokens, app.store.url, self.ends.__contains__)
        self.tries = Tries()
        self.gathering = Gathering(app, knows_tasks=options.knows_tasks)
        self.version = _version()
        self.watch = Watch(self.overview, self.ask, self.gathering, options.limits)
        self._looking: asyncio.Task[Snapshot] | None = None
        self._made: tuple[Snapshot, asyncio.Task[Document]] | None = None

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call something that waits for the store."""
        return await self.threads.call(function, *args, **kwargs)

    async def answer(self, make: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        """A document made and put into bytes in a thread: whatever it costs, the server answers others."""
        return Answer(await self.threads.call(lambda: encoded(make(*args, **kwargs))))

    async def snapshot(self) -> Snapshot:
        """How things stand, at most as old as the gathering allows. Those who ask at once share one look."""
        for _ in range(TRIES - 1):
            last = self.gathering.last
            if last is not None and self.gathering.is_fresh():
                return last
            looking = self.warm()
            if last is not None and self.gathering.may_lag():
                return last
            await asyncio.shield(looking)
        return await asyncio.shield(self.warm())

    def warm(self) -> asyncio.Task[Snapshot]:
        """Have a look at the store beside whatever else is done."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.ask(self.gathering.snapshot))
            self._looking.add_done_callback(_take_note)
        return self._looking

    async def overview(self) -> Document:
        """The overview as it is now. Those who ask for that of one snapshot share it: it is not changed."""
        return await self.overview_of(await self.snapshot())

    async def overview_of(self, snapshot: Snapshot) -> Document:
        """The overview of a snapshot, made once."""
        if self._made is None or self._made[0] is not snapshot or _has_failed(self._made[1]):
            making = asyncio.create_task(self.ask(self._overview, snapshot))
            making.add_done_callback(_take_note)
            self._made = (snapshot, making)
        return await asyncio.shield(self._made[1])

    def _overview(self, snapshot: Snapshot) -> Document:
        return overview(
            snapshot,
            url=self.store.url,
            durability=self.gathering.durability,
            version=self.version,
            app=self.options.app_name,
        )

    def close(self) -> None:
        """End every stream and begin nothing more."""
        self.watch.close()
        self.threads.close()


def _has_failed(making: asyncio.Task[Document]) -> bool:
    return making.done() and (making.cancelled() or making.exception() is not None)


def _take_note(looking: asyncio.Task[Any]) -> None:
    """Whoever waited was told of an error; nobody may have waited."""
    if not looking.cancelled() and looking.exception() is not None:
        logger.debug("The store could not be looked at: %s", looking.exception())


def _version() -> str:
    try:
        return version("millpond")
    except PackageNotFoundError:
        return "unknown"


def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def caller_of(scope: Any) -> Caller:
    """Who the gate found to be asking."""
    found: Caller = scope["millpond.caller"]
    return found


Seat = Annotated[Desk, Depends(_desk)]
