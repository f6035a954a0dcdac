"""The hands and eyes of the terminal's tests: press keys, read what is drawn, wait until it is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot

from millpond import App
from millpond.tui.poller import Watching
from millpond.tui.screen import Top
from millpond.tui.snapshot import Looking

BOUND = 25.0  # seconds that only a failure reaches


def watching_of(app: App, **options: Any) -> Watching:
    return Watching(Looking(app), **options)


class Driver:
    """One screen."""

    def __init__(self, top: Top, pilot: Pilot[None]) -> None:
        self.top = top
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def lines(self) -> list[str]:
        """What stands on the screen, line by line."""
        width, height = self.top.size
        strips = self.top.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).ljust(width) for strip in strips][:height]

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines())

    async def until(self, question: Callable[[], Any], what: str = "it") -> Any:
        """Ask until the answer is true."""
        end = time.monotonic() + BOUND
        while not (answer := question()):
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come true within {BOUND:g} s:\n{self.text()}")
            await self.pilot.pause(0.05)
        return answer

    async def shows(self, *words: str) -> str:
        """Wait until all of these stand on the screen; returns the screen."""
        await self.until(lambda: all(word in self.text() for word in words), f"to see {words}")
        return self.text()

    def column(self, title: str) -> list[str]:
        """The cells of a column, from top to bottom."""
        listing = self.top.listing
        place = [column.title for column in listing.tab.columns].index(title)
        return [row.cells[place].text for row in listing.rows]
