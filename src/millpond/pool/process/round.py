"""What the parts of a dispatcher's round share: the engine, the moment, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable

from millpond.pool.process.engine import Engine


class Round:
    """One round of the dispatcher, taken with the engine's lock held."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.options = engine.options
        self.by_fd: dict[int, Callable[[], None]] = {}  # whom to tell about a descriptor
        self.now = 0.0
        self.wake_at = math.inf

    def by(self, instant: float) -> None:
        """Have the next round no later than this."""
        self.wake_at = min(self.wake_at, instant)
