"""Which recurring tasks must not run at the same time, and whose turn it is.

Safety is the store's: each pair that excludes one another is a slot of capacity one, taken inside the claim,
so that no two of them run on any nodes. Fairness is decided here, when ticks are let go: by priority, one
level higher for each minute waited, and a tick that is passed over holds back all that would get in its way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Instant, Slot
from millpond.options import nearest
from millpond.rules.ticks import Overlap

AGEING = 60.0  # seconds of waiting that weigh as much as one level of priority
HIGHEST = 9  # the highest priority there is: after (9 - its own) x AGEING a tick is ahead of every newcomer

Pair = tuple[str, str]


class Waiting(NamedTuple):
    """A tick that is due and may run but for what blocks it."""

    name: str
    priority: int
    due_at: Instant


class Held(NamedTuple):
    """A tick that must wait, and the task it waits for."""

    tick: Waiting
    behind: str


class Released(NamedTuple):
    """Which ticks go now, in order, and which wait for whom."""

    start: tuple[Waiting, ...]
    held: tuple[Held, ...]


def pairs_of(blocks: Mapping[str, Collection[str]], known: Collection[str]) -> frozenset[Pair]:
    """The pairs that exclude one another: blocking is mutual, whoever said it."""
    for name, others in blocks.items():
        for other in others:
            if other not in known:
                raise OptionError(
                    f"{name!r} blocks {other!r}, which is not a recurring task{nearest(other, known)}"
                )
            if other == name:
                raise OptionError(
                    f"{name!r} blocks itself: overlap='skip' or 'queue' is what keeps its ticks apart"
                )
    return frozenset(pair(name, other) for name, others in blocks.items() for other in others)


def pair(one: str, other: str) -> Pair:
    """The two in the order in which their slot names them."""
    return (one, other) if one < other else (other, one)


def slots_of(
    name: str, pairs: Collection[Pair], overlap: Overlap = "skip", max_concurrent: int | None = None
) -> tuple[Slot, ...]:
    """The slots that a tick of the task holds while it runs.

    One of its own keeps ticks of the task apart, also those begun by hand, whatever the planner believed.
    """
    own = 1 if overlap != "allow" else max_concurrent
    mine = () if own is None else (Slot(f"recurring:{name}", own),)
    return (
        *mine,
        *(Slot(f"blocks:{one}|{other}", 1) for one, other in sorted(pairs) if name in (one, other)),
    )


def level(tick: Waiting, now: Instant) -> float:
    """Its priority and one more for each AGEING it has waited."""
    return tick.priority + max(0, now - tick.due_at) // round(AGEING * MICROSECONDS)


def release(
    waiting: Sequence[Waiting], occupied: Collection[str], pairs: frozenset[Pair], now: Instant
) -> Released:
    """Which of the waiting ticks go now; `occupied` are the tasks with a tick let go and not ended.

    Whoever is passed over keeps its place: all later ticks that it conflicts with wait behind it. So it waits
    for those already let go, for those of a higher level, and for nobody else.
    """
    against = _conflicts(pairs)
    ahead = set(occupied)  # running, or in front
    start: list[Waiting] = []
    held: list[Held] = []
    for tick in sorted(waiting, key=lambda tick: (-level(tick, now), tick.due_at, tick.name)):
        behind = next((name for name in against.get(tick.name, ()) if name in ahead), None)
        if behind is None:
            start.append(tick)
        else:
            held.append(Held(tick, behind))
        ahead.add(tick.name)
    return Released(tuple(start), tuple(held))


@lru_cache(maxsize=8)
def _conflicts(pairs: frozenset[Pair]) -> dict[str, tuple[str, ...]]:
    against: dict[str, tuple[str, ...]] = {}
    for one, other in sorted(pairs):
        against[one] = (*against.get(one, ()), other)
        against[other] = (*against.get(other, ()), one)
    return against
