"""Each event of a node as a level and a sentence, for logs and alerts.

A table, so that what is said where can be read at one glance. No sentence contains a payload.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from millpond.node.observability.events import (
    BreakerClosed,
    BreakerOpened,
    CleanupHeldBack,
    ClockCorrected,
    JobCompleted,
    JobDied,
    JobDrags,
    JobRetried,
    JobStopped,
    NodeEvent,
    NodeRescued,
    NodeStarted,
    NodeStopped,
    PoolFlaps,
    PoolHealthy,
    PoolUnhealthy,
    QueueBackingUp,
    QueueCaughtUp,
    ScaledDown,
    ScaledUp,
    StoreBack,
    StoreFilling,
    StoreLost,
    TickLate,
    TickMissed,
    TriggersDropped,
    WaitInBounds,
    WaitTooLong,
    WorkerCrashed,
    WorkerGone,
    WorkerStartFailed,
    WorkerUp,
)

SENTENCES: Mapping[type, tuple[int, str]] = {
    NodeStarted: (logging.INFO, "node started on {store} ({durability})"),
    NodeStopped: (logging.INFO, "node stopped: {reason}; {released} jobs given back, {killed} broken off"),
    NodeRescued: (logging.WARNING, "{jobs} jobs of the dead node {node} were rescued"),
    StoreFilling: (
        logging.WARNING,
        "the store uses {share:.0%} of its memory; a full one takes no jobs: raise maxmemory or prune more",
    ),
    CleanupHeldBack: (
        logging.WARNING,
        "a {kind} {name} has kept dead rows from being removed for {age:.0f} s, which slows claims: {cure}",
    ),
    StoreLost: (logging.ERROR, "the store cannot be reached: {cause}"),
    StoreBack: (logging.INFO, "the store is back after {away_for:.1f} s"),
    QueueBackingUp: (logging.WARNING, "pool {pool} falls behind: {cause}"),
    QueueCaughtUp: (logging.INFO, "pool {pool} has caught up after {lasted:.0f} s"),
    WaitTooLong: (logging.WARNING, "jobs of pool {pool} wait {waited:.1f} s, longer than {max_wait:g} s"),
    WaitInBounds: (logging.INFO, "jobs of pool {pool} begin in time again after {lasted:.0f} s"),
    ScaledUp: (logging.INFO, "pool {sentence}"),
    ScaledDown: (logging.INFO, "pool {sentence}"),
    PoolFlaps: (
        logging.INFO,
        "pool {pool} {size}: {changes} more changes between {low} and {high} workers in the last minute",
    ),
    JobDrags: (logging.WARNING, "{task} in pool {pool} has been running for {running_for:.0f} s, too long"),
    PoolUnhealthy: (logging.ERROR, "pool {pool} is in trouble: {cause}"),
    PoolHealthy: (logging.INFO, "pool {pool} is well again after {lasted:.0f} s"),
    WorkerUp: (logging.DEBUG, "worker {worker} of pool {pool} started"),
    WorkerGone: (logging.DEBUG, "worker {worker} of pool {pool} ended: {reason}"),
    WorkerCrashed: (logging.WARNING, "worker {worker} of pool {pool} died while it ran {task}: {cause}"),
    WorkerStartFailed: (logging.ERROR, "a worker of pool {pool} could not start: {cause}"),
    JobCompleted: (logging.DEBUG, "{task} completed"),
    JobRetried: (logging.WARNING, "{task} {cause} and will run again"),
    JobDied: (logging.ERROR, "{task} is dead: {reason}"),
    JobStopped: (logging.INFO, "{task} was cancelled: {reason}"),
    BreakerOpened: (logging.ERROR, "{task} failed {failures} times in a row and rests: {error}"),
    BreakerClosed: (logging.INFO, "{task} works again"),
    TickMissed: (logging.WARNING, "{task} did not run ({reason}; instants: {instants})"),
    ClockCorrected: (
        logging.WARNING,
        "the store's clock is or was wrong, by {ahead:.0f} s; recurring tasks that go on by it now: {tasks}",
    ),
    TriggersDropped: (logging.ERROR, "accepted triggers of {task} that lead to no run: {triggers}; {reason}"),
    TickLate: (logging.WARNING, "ticks enqueued late: {instants}; the latest, of {task}, by {late:.1f} s"),
}


def level_of(event: NodeEvent) -> int:
    """How much an event matters, as a level of `logging`."""
    return logging.DEBUG if getattr(event, "repeated", False) else SENTENCES[type(event)][0]


def sentence_of(event: NodeEvent) -> str:
    """The event in words."""
    return SENTENCES[type(event)][1].format(**event._asdict())


def kinds_from(level: int) -> frozenset[type]:
    """The kinds of events that matter at least so much."""
    return frozenset(kind for kind, (weight, _) in SENTENCES.items() if weight >= level)
