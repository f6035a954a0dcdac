"""What a node knows about its tasks, kept over a restart: a document for each pool in the store.

Where there is none, how long jobs of its queues took lately is a first guess. What cannot be read is learned
anew; nothing here is needed for a pool to work.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from millpond.errors import Conflict
from millpond.rules.estimate import ANY, Estimates
from millpond.rules.histogram import bounds

if TYPE_CHECKING:
    from millpond.store.protocol import Minute, Store

logger = logging.getLogger("millpond")
MINUTES = 60  # of the past that a first guess is made from
GUESSED = 8.0  # runs that a guess is worth


def recall(store: Store, pool: str, queues: Sequence[str]) -> Estimates:
    """What was known when somebody last wrote it down."""
    data = store.record(_name(pool)).value
    if data:
        try:
            return Estimates.from_value(msgspec.json.decode(data))
        except msgspec.DecodeError:
            logger.warning("What was known about pool %s cannot be read: it is learned anew", pool)
    minute = int(time.time() // 60)
    return guess(store.statistics(minute - MINUTES, minute + 1), queues)


def guess(minutes: Iterable[Minute], queues: Sequence[str]) -> Estimates:
    """How long a job of these queues takes, whatever its task."""
    runs: Counter[int] = Counter()
    for minute in minutes:
        if minute.queue in queues:
            runs.update(minute.run)
    number = sum(runs.values())
    if not number:
        return Estimates()
    mean = sum(sum(bounds(bucket)) / 2 * times for bucket, times in runs.items()) / number
    return Estimates.from_value({ANY: [mean, min(number, GUESSED), math.log(mean), 0.0]})


def keep(store: Store, pool: str, estimates: Estimates) -> None:
    """Write it down. Of two nodes the last one wins: both know the same tasks."""
    name = _name(pool)
    try:
        store.record(name, msgspec.json.encode(estimates.to_value()), store.record(name).version)
    except Conflict:
        return


def _name(pool: str) -> str:
    return f"estimates/{pool}"
