"""Decides what comes when: the mix of work, the shape of the rush, and what goes wrong on purpose.

Values in, values out: nothing here looks at a clock or rolls dice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

Fate = Literal["fine", "torn", "too big", "gone"]
# What one round of customers brings; a fixed order, spread so that any stretch of it has some of each.
MIX = (
    *("images", "mail", "webhooks", "pdf", "images", "mail", "webhooks"),
    *("mail", "images", "webhooks", "exports", "pdf", "mail", "webhooks"),
)
DOOMED: dict[Fate, str] = {"torn": "images", "too big": "exports", "gone": "webhooks"}
WORK = {"images": 5.0, "pdf": 2.0, "exports": 1.25, "mail": 1.75, "webhooks": 1.0}  # about, by measurement
WORK_OF_ONE = sum(WORK[queue] for queue in MIX) / len(MIX)
MOST_FATES = 4  # doomed jobs in one burst
BURSTS = 10
ARRIVING = 0.6  # the part of the rush in which work arrives; the rest works it off
KILLS = 12  # workers killed in a rush
NODE_DIES = 0.45  # when a whole node is killed, as a part of the rush


class Piece(NamedTuple):
    """One job to be: its number, its queue, and what will become of it."""

    number: int
    queue: str
    fate: Fate = "fine"


def pieces(first: int, count: int) -> list[Piece]:
    """Honest work, numbered from `first` on."""
    return [Piece(number, MIX[number % len(MIX)]) for number in range(first, first + count)]


def doomed(first: int, fates: Sequence[Fate]) -> list[Piece]:
    """Work that must end dead."""
    return [Piece(first + place, DOOMED[fate], fate) for place, fate in enumerate(fates)]


def bursts(jobs: int, number: int = BURSTS) -> list[int]:
    """How many jobs each burst brings: few, many at noon, few; all of them together `jobs`."""
    weights = [math.sin(math.pi * (place + 0.7) / (number + 0.4)) for place in range(number)]
    edges = [round(jobs * sum(weights[:place]) / sum(weights)) for place in range(number + 1)]
    return [after - before for before, after in itertools.pairwise(edges)]


def fates(jobs: int, number: int = BURSTS) -> list[tuple[Fate, ...]]:
    """Which doomed jobs come with each burst: a few in a rush, and no kind is left out of a small one."""
    each = max(1, min(3, jobs // 1000))
    all_of_them: list[Fate] = [fate for fate in DOOMED for _ in range(each)]
    dealt: list[list[Fate]] = [[] for _ in range(number)]
    for place, fate in enumerate(all_of_them):
        dealt[1 + place * 3 % (number - 2)].append(fate)
    return [tuple(hand) for hand in dealt]


def kills(length: float, count: int = KILLS) -> Iterator[float]:
    """When workers are killed, in seconds from the begin of the rush; the first ones are left in peace."""
    return (length * (0.1 + 0.65 * place / count) for place in range(count))


def in_jobs_of_the_mix(counts: Mapping[str, int]) -> float:
    """As many jobs of the mix as these are worth, since a picture is more work than a message."""
    return sum(WORK[queue] * count for queue, count in counts.items()) / WORK_OF_ONE


def smoothed(rate: float, measured: float) -> float:
    """A machine has other things to do at times; one look is not the whole truth."""
    return 0.6 * rate + 0.4 * measured


def next_burst(planned: Sequence[int], backlog: float, can_do: int) -> int:
    """How many jobs to bring now: its share (by the plan from now on) of what fits beside the backlog."""
    return max(MOST_FATES, round(planned[0] / max(1, sum(planned)) * (can_do - backlog)))


def affordable(rate: float, seconds: float) -> int:
    """How many jobs fit into these seconds: killed workers, retries and the last one in line take a part."""
    return max(len(MIX), int(0.85 * rate * seconds))
