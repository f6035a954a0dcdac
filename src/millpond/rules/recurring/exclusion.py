"""Which recurring tasks must not run at the same time, and whose turn it is.

Safety is the store's: each pair that excludes one another is a slot of capacity one, a named slot has the
capacity it was given, and both are taken inside the claim, so that it holds on all nodes. Fairness is decided
here, when ticks are let go: by priority, one level higher for each minute waited, and a tick that is passed
over keeps its place before all that would get in its way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.job import MICROSECONDS, Instant, Slot
from millpond.options import nearest
from millpond.rules.recurring.due_ticks import Overlap

AGEING = 60.0  # seconds of waiting that weigh as much as one level of priority
HIGHEST = 9  # the highest priority there is: after (9 - its own) x AGEING a tick is ahead of every newcomer

ALL_TICKS = "\0max_concurrent"  # the slot of all tasks with a cadence; no named slot can be called so
SHOWN = 3  # names of those in the way

Pair = tuple[str, str]
Shared = Mapping[str, tuple[Slot, ...]]  # the named slots of each task that has some
NONE: Shared = MappingProxyType({})


class Waiting(NamedTuple):
    """A tick that is due and may run but for what blocks it."""

    name: str
    priority: int
    due_at: Instant


class Held(NamedTuple):
    """A tick that must wait, and the tasks it waits for."""

    tick: Waiting
    behind: tuple[str, ...]  # running, or before it in line
    slot: Slot | None = None  # the named slot that has no room; None: they exclude one another

    @property
    def reason(self) -> str:
        """Why, for a person."""
        others = listed(self.behind)
        if self.slot is None:
            return f"{others} must not run beside it"
        number, most = len(self.behind), self.slot.capacity
        if self.slot.name == ALL_TICKS:
            return f"max_concurrent is {most}, and {others} {'runs' if number == 1 else 'run'}"
        return f"slot {self.slot.name!r} has no room, {min(number, most)} of {most} held by {others}"


class Released(NamedTuple):
    """Which ticks go now, in order, and which wait for whom."""

    start: tuple[Waiting, ...]
    held: tuple[Held, ...]


def check_endless(pairs: Iterable[Pair], endless: Collection[str]) -> None:
    """Refuse that a task which never ends excludes others: they would never run."""
    for name in sorted({name for pair in pairs for name in pair} & set(endless)):
        others = listed(sorted({other for pair in pairs if name in pair for other in pair} - {name}))
        raise OptionError(
            f"{name!r} is continuous and excludes {others}, which would never run: it runs for ever. Let the "
            "continuous task look by itself whether it may go on"
        )


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


def capacities_of(slots: Shared) -> dict[str, int]:
    """The capacity of each named slot; all who hold it must say the same."""
    first: dict[str, tuple[str, int]] = {}
    for name, held in slots.items():
        for slot in held:
            other, capacity = first.setdefault(slot.name, (name, slot.capacity))
            if capacity != slot.capacity:
                raise OptionError(
                    f"slot {slot.name!r} has a capacity of {capacity} in {other!r} and of {slot.capacity} in "
                    f"{name!r}: give both the same, or two names"
                )
    return {name: capacity for name, (_, capacity) in first.items()}


def slots_of(
    name: str,
    pairs: Collection[Pair],
    overlap: Overlap = "skip",
    max_concurrent: int | None = None,
    shared: Iterable[Slot] = (),
) -> tuple[Slot, ...]:
    """The slots that a tick of the task holds while it runs.

    One of its own keeps ticks of the task apart, also those begun by hand, whatever the planner believed.
    """
    own = 1 if overlap != "allow" else max_concurrent
    mine = () if own is None else (Slot(f"recurring:{name}", own),)
    return (
        *mine,
        *(Slot(f"blocks:{one}|{other}", 1) for one, other in sorted(pairs) if name in (one, other)),
        *(Slot(f"slot:{slot.name}", slot.capacity) for slot in shared),
    )


def level(tick: Waiting, now: Instant) -> float:
    """Its priority and one more for each AGEING it has waited."""
    return tick.priority + max(0, now - tick.due_at) // round(AGEING * MICROSECONDS)


def release(
    waiting: Sequence[Waiting],
    occupied: Mapping[str, int] | Iterable[str],
    pairs: frozenset[Pair],
    now: Instant,
    shared: Shared = NONE,
    *,
    holders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Released:
    """Which of the waiting ticks go now; `occupied` are the tasks with ticks let go and not ended. Those hold
    the named slots of their tasks, except of slots in `holders`, which says who holds one.

    Whoever is passed over keeps its place: all later ticks that it conflicts with wait behind it. So it waits
    for those already let go, for those of a higher level, and for nobody else.
    """
    against = conflicts(pairs)
    ahead = Counter(occupied)  # running, or in front
    held_by = _holders(ahead, shared)
    held_by.update((name, list(names)) for name, names in holders.items())
    start: list[Waiting] = []
    held: list[Held] = []
    for tick in sorted(waiting, key=lambda tick: (-level(tick, now), tick.due_at, tick.name)):
        slots = shared.get(tick.name, ())
        behind = tuple(name for name in against.get(tick.name, ()) if ahead[name] > 0)
        full = next((slot for slot in slots if len(held_by[slot.name]) >= slot.capacity), None)
        if behind:
            held.append(Held(tick, behind))
        elif full is not None:
            held.append(Held(tick, tuple(held_by[full.name][: full.capacity]), full))
        else:
            start.append(tick)
        ahead[tick.name] += 1
        for slot in slots:
            held_by[slot.name].append(tick.name)
    return Released(tuple(start), tuple(held))


def _holders(ahead: Mapping[str, int], shared: Shared) -> dict[str, list[str]]:
    """Who holds each named slot, once for each tick."""
    found: dict[str, list[str]] = {slot.name: [] for slots in shared.values() for slot in slots}
    for name, number in ahead.items():
        for slot in shared.get(name, ()):
            found[slot.name] += [name] * number
    return found


@lru_cache(maxsize=8)
def conflicts(pairs: frozenset[Pair]) -> dict[str, tuple[str, ...]]:
    """For each task, those it must not run beside."""
    against: dict[str, tuple[str, ...]] = {}
    for one, other in sorted(pairs):
        against[one] = (*against.get(one, ()), other)
        against[other] = (*against.get(other, ()), one)
    return against


def listed(names: Iterable[str]) -> str:
    """Some names, for a sentence."""
    found = list(dict.fromkeys(names))
    shown = ", ".join(repr(name) for name in found[:SHOWN])
    return f"{shown} and {len(found) - SHOWN} more" if len(found) > SHOWN else shown
