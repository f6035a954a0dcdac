"""Who gets what: how many tasks a worker may hold, and which may be taken back from it.

Short tasks travel in batches worth a few milliseconds, long ones alone. A task that has been sent is not
lost to the others: what has not begun can be recalled at any time, so these numbers cost at most a delay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LOOKAHEAD = 0.005  # seconds of work a worker may hold: below that it starves while the dispatcher sleeps
WINDOW = 512  # tasks a worker may hold, however short
SHARE_FROM = 0.001  # seconds of unbegun work that are worth moving to an idle worker
UNHURRIED = 0.25  # a task that runs this long is one behind which nothing more is put, however large
WATCH = 0.0001
STALLED = 0.010  # a task that runs this long is in the way of what was sent behind it


def fits(held: int, load: float, estimate: float | None, bulky: bool = False) -> bool:
    """May a worker that holds `held` tasks worth `load` seconds be sent one more?

    A task of unknown length goes only to a worker that holds nothing: it might be a long one. Of bulky
    tasks (a chunk of a map, large arrays) one may wait behind the one that runs: moving them takes time
    that their run time does not show.
    """
    if not held:
        return True
    if bulky:
        return held < 2
    return estimate is not None and held < WINDOW and load + estimate <= LOOKAHEAD


def hungry(held: int, load: float, bulky: bool = False, running_for: float = 0.0) -> bool:
    """Is it worth sending this busy worker more? Not before half of what it may hold is gone, and not
    behind a task that is in the way already; of bulky tasks, one may wait."""
    if bulky:
        return held < 2 and running_for < UNHURRIED
    return held <= WINDOW // 2 and load <= LOOKAHEAD * 0.6 and running_for < STALLED


def quota(waiting: int, workers: int) -> int:
    """The most tasks one worker may be sent at once, so that the others get their share."""
    return -(-waiting // workers) if workers > 0 else 0


def learn(estimate: float | None, measured: float) -> float:
    """The new estimate of a function's run time after one more measurement."""
    return measured if estimate is None else estimate + (measured - estimate) * 0.4


def watch_for(estimate: float | None, cores: int) -> float:
    """How long a caller should watch for its answer before it sleeps, in seconds.

    Being woken costs more than a short task runs; on a single core, watching would only keep it from
    running.
    """
    return WATCH if estimate is not None and estimate < WATCH / 2 and cores > 1 else 0.0


class Load(NamedTuple):
    """A busy worker as the sharing rule sees it."""

    worker: int
    unbegun: int
    unbegun_seconds: float
    running_for: float


def in_the_way_for(running: int, slots: int, quiet: float) -> float:
    """How long a worker has held up what it has not begun, `quiet` seconds after anything moved in it.

    One that runs nothing, or several at once, may merely be waiting for a processor: it has a while.
    Recalling from it sooner would only move the tasks to another that waits for the same processor.
    """
    return quiet if running and slots == 1 else max(0.0, quiet - UNHURRIED)


def victim(idle: int, waiting: int, loads: Iterable[Load]) -> int | None:
    """The worker whose unbegun tasks should be recalled, when others stand idle and nothing waits."""
    if idle == 0 or waiting > 0:
        return None
    worthy = [
        load
        for load in loads
        if load.unbegun and (load.unbegun_seconds >= SHARE_FROM or load.running_for >= STALLED)
    ]
    if not worthy:
        return None
    return max(worthy, key=lambda load: (load.unbegun_seconds, load.running_for)).worker


# --- map ------------------------------------------------------------------------------------------
CHUNK_SECONDS = 0.020
CHUNK_WINDOW = 64  # items of a chunk between two marks in the page
SLOW_ITEM = 0.002  # an item that runs this long needs no chunk


def chunk_size(estimate: float | None, items: int, workers: int) -> int:
    """How many items of a map travel as one task: some milliseconds' worth, about four chunks a worker."""
    if estimate is None or estimate >= SLOW_ITEM:
        return 1
    by_time = int(CHUNK_SECONDS / max(estimate, 1e-8))
    by_share = items // (4 * max(1, workers))
    return max(1, min(by_time, by_share))
