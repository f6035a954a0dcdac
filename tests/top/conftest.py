"""Fixtures of the terminal's tests: an app on SQLite, jobs that died, and a screen that is driven by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from millpond import App
from millpond.tui.poller import Watching
from tests.top.driving import Driver, watching_of

Open = Callable[..., AbstractAsyncContextManager[Driver]]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    made.store.migrate()
    made.pool("images", workers=(1, 2), max_wait="10s")

    @made.task(queue="images", name="resize")
    def resize(path: str) -> str:
        return path

    @made.task(queue="mail", name="send")
    def send(user: int) -> None: ...

    @made.recurring(every="1h", name="tick")
    def tick() -> None: ...

    yield made
    made.store.close()


@pytest.fixture
def screen() -> Open:
    """Open the screen on an app's store, headless, 80 columns wide and 24 lines high."""
    from millpond.tui.screen import Top

    @asynccontextmanager
    async def opened(
        app: App, size: tuple[int, int] = (80, 24), watching: Watching | None = None
    ) -> AsyncIterator[Driver]:
        watching = watching or watching_of(app)
        watching.start()
        top = Top(app, watching)
        try:
            async with top.run_test(size=size, notifications=True) as pilot:
                yield Driver(top, pilot)
        finally:
            watching.stop(10)

    return opened
