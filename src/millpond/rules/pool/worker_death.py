"""Who pays when a worker dies: exactly the tasks that had begun and not ended.

Tickets are taken in the order tasks were sent, so the number of tickets left tells which tasks had not
begun: the last ones. Those go to another worker and pay nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Toll(NamedTuple):
    """The tasks of a dead worker, by what happens to them."""

    begun: Sequence[int]
    unbegun: Sequence[int]


def toll(held: Sequence[int], tickets_left: int) -> Toll:
    """Split what the worker held, in the order it was sent, into begun and not begun."""
    cut = len(held) - min(max(tickets_left, 0), len(held))
    return Toll(held[:cut], held[cut:])


def may_retry(crashes: int, retries_on_crash: int) -> bool:
    """May a task whose worker has now died `crashes` times under it run once more?"""
    return crashes <= retries_on_crash
