"""How much memory a store has left that keeps all its jobs in memory, and when that is too little.

Decides by two numbers only; nothing is asked of a server here.
"""

from __future__ import annotations

from typing import NamedTuple

HALF = 0.5  # above it people are told: there is time to act
SHORT = 0.85  # above it what may be deleted is deleted at once


class Memory(NamedTuple):
    """Bytes that a store uses, and may use."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """How full it is; nothing is, where there is no limit."""
        return self.used / self.limit if self.limit > 0 else 0.0


def level(memory: Memory) -> int:
    """0 while there is enough, 1 above half, 2 when it is short."""
    return (memory.share >= HALF) + (memory.share >= SHORT)
