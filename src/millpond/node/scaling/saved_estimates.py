"""What a node knows about its tasks, kept over a restart: a document for each pool in the store with how long
they take, and one with what they were seen to need.

Where there is none, how long jobs of its queues took lately is a first guess. What cannot be read is learned
anew; nothing here is needed for a pool to work.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from millpond.errors import Conflict
from millpond.rules.histogram import bounds
from millpond.rules.resources.learned_needs import Learned
from millpond.rules.scaling.estimates import ANY, Estimates

if TYPE_CHECKING:
    from millpond.store.protocol import Minute, Store

logger = logging.getLogger("millpond")
MINUTES = 60  # of the past that a first guess is made from
GUESSED = 8.0  # runs that a guess is worth
NEEDS = "needs"
MOST_NEEDS = 500  # tasks; a document should stay small


class Written(msgspec.Struct):
    """The document of needs."""

    at: float  # by the clock of whoever wrote it
    tasks: dict[str, Any] = {}


def recall(store: Store, pool: str, queues: Sequence[str]) -> Estimates:
    """What was known when somebody last wrote it down."""
    data = store.record(_name(pool)).value
    if data:
        try:
            return Estimates.from_value(msgspec.json.decode(data))
        except (msgspec.DecodeError, RecursionError):
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


def recall_needs(store: Store) -> dict[str, Learned]:
    """What tasks were seen to need when somebody last wrote it down."""
    written = _written(store.record(NEEDS).value)
    if written is None:
        return {}
    now, elapsed = time.monotonic(), max(0.0, time.time() - written.at)
    return {task: Learned.from_value(value, now, elapsed) for task, value in written.tasks.items()}


def keep_needs(store: Store, learned: Mapping[str, Learned]) -> None:
    """Write it down, beside what other nodes have learned of tasks that this one does not know."""
    document, now = store.record(NEEDS), time.monotonic()
    before = _written(document.value)
    others = {} if before is None else recall_needs(store)
    every = {**others, **learned}
    chosen = sorted(every, key=lambda task: (task in learned, every[task].memory_request(now)), reverse=True)
    tasks = {task: every[task].to_value(now) for task in chosen[:MOST_NEEDS]}
    try:
        store.record(NEEDS, msgspec.json.encode(Written(time.time(), tasks)), document.version)
    except Conflict:
        return  # another node was quicker; there will be a next time


def _written(data: bytes | None) -> Written | None:
    try:
        return msgspec.json.decode(data, type=Written) if data else None
    except (msgspec.DecodeError, RecursionError):
        logger.warning("What tasks were seen to need cannot be read: it is learned anew")
        return None


def _name(pool: str) -> str:
    return f"estimates/{pool}"
