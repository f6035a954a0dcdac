"""The numbers that a node tells as metrics: their names, what they mean, and where in the report they are.

Names follow the conventions of Prometheus: base units, `_total` for what only grows. Labels are names of
pools, of tasks in the code, and fixed words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from millpond.node.observability.job_tally import OUTCOMES, Timing
from millpond.node.observability.report import NodeReport, PoolReport
from millpond.rules.node.health import is_live, is_ready

STORE_RETRIES = ("deadlock", "serialization", "session", "silence")
STORE_ERRORS = {"StoreBusy": "busy", "StoreUnavailable": "unavailable", "OutcomeUnknown": "unknown"}
WORKER_ENDS = (
    "idle", "resize", "tasks", "memory", "age", "timeout", "killed", "stalled", "start", "stray", "changed",
    "shutdown", "recycled", "died", "other",
)  # fmt: skip


class Figure(NamedTuple):
    """One number of a node or of a pool. A name that ends in _total is a counter."""

    name: str
    meaning: str
    of: Callable[[Any], float | None]  # of a NodeReport or a PoolReport; None leaves it out


NODE: tuple[Figure, ...] = (
    Figure("millpond_node_live", "1 unless a restart would help", lambda n: is_live(n).ok),
    Figure("millpond_node_ready", "1 while the node takes work", lambda n: is_ready(n).ok),
    Figure("millpond_node_age_seconds", "since the node started", lambda n: n.age),
    Figure("millpond_node_round_age_seconds", "since the last completed round", lambda n: n.round_age),
    Figure("millpond_node_lease_left_seconds", "until the lease runs out", lambda n: n.lease_left),
    Figure("millpond_node_store_reachable", "0 while the store is away", lambda n: n.store_trouble is None),
    Figure("millpond_node_unsettled_outcomes", "outcomes the store does not know", lambda n: n.unsettled),
    Figure("millpond_node_quarantined_outcomes", "of those, set apart from others", lambda n: n.quarantined),
    Figure("millpond_node_unsettled_bytes", "memory they take", lambda n: n.unsettled_bytes),
    Figure("millpond_node_settled_total", "outcomes the store has taken", lambda n: n.settled),
    Figure("millpond_node_stale_writes_total", "late writes the store refused", lambda n: n.stale),
    Figure("millpond_node_rescued_jobs_total", "jobs of dead nodes revived here", lambda n: n.rescued),
    Figure("millpond_node_exchanges_total", "round trips with the store", lambda n: n.exchanges),
)
POOL: tuple[Figure, ...] = (
    Figure("millpond_pool_workers_min", "fewest workers", lambda p: p.least),
    Figure("millpond_pool_workers_max", "most workers", lambda p: p.most),
    Figure("millpond_pool_workers_wanted", "workers by the last decision", lambda p: p.wanted),
    Figure("millpond_pool_concurrency", "jobs at once in one worker", lambda p: p.concurrency),
    Figure("millpond_pool_waiting_jobs", "jobs due in the queues it serves", lambda p: p.waiting),
    Figure("millpond_pool_oldest_wait_seconds", "wait of the first in line", lambda p: p.oldest_wait or 0),
    Figure("millpond_pool_max_wait_seconds", "the wait that is accepted, if given", lambda p: p.max_wait),
    Figure("millpond_pool_claimed_jobs", "jobs held: running or claimed ahead", lambda p: p.claimed),
    Figure("millpond_pool_running_jobs", "jobs that run", lambda p: p.running),
    Figure("millpond_pool_jobs_done_total", "attempts that ended", lambda p: p.done),
    Figure("millpond_pool_jobs_failed_total", "attempts that raised", lambda p: p.failed),
    Figure("millpond_pool_jobs_crashed_total", "attempts whose worker died", lambda p: p.crashed),
    Figure("millpond_pool_jobs_timed_out_total", "attempts that overran", lambda p: p.timed_out),
    Figure("millpond_pool_workers_recycled_total", "workers replaced by a budget", lambda p: p.recycled),
    Figure("millpond_pool_workers_started_total", "workers that came up", lambda p: p.workers_started),
    Figure("millpond_pool_worker_start_failures_total", "workers that did not", lambda p: p.starts_failed),
    Figure(
        "millpond_pool_memory_bytes",
        "resident memory of its workers",
        lambda p: sum(w.rss for w in p.workers),
    ),
)
RESOURCES: tuple[Figure, ...] = (
    Figure("millpond_node_memory_limit_bytes", "what the jobs may use together", lambda r: r.memory_limit),
    Figure("millpond_node_memory_used_bytes", "of it in use", lambda r: r.memory_used),
    Figure("millpond_node_memory_reserved_bytes", "set aside for jobs that run", lambda r: r.memory_reserved),
    Figure("millpond_node_short_jobs", "claimed jobs that lack memory, cores or tokens", lambda r: r.waiting),
)
RECURRING: tuple[Figure, ...] = (
    Figure("millpond_recurring_leader", "1 on the node that plans recurring tasks", lambda r: r.is_leader),
    Figure("millpond_recurring_ticks_missed_total", "ticks nobody planned in time", lambda r: r.missed),
    Figure("millpond_recurring_ticks_late_total", "ticks planned long after they were due", lambda r: r.late),
    Figure("millpond_recurring_breakers_opened_total", "times a breaker opened", lambda r: r.opened),
)
TASK: tuple[Figure, ...] = (
    Figure("millpond_recurring_breaker_open", "1 while its breaker stops a task", lambda t: t.is_open),
    Figure("millpond_recurring_failures", "failed ticks in a row", lambda t: t.failures),
    Figure("millpond_recurring_unfinished_ticks", "ticks that have not ended", lambda t: t.unfinished),
    Figure("millpond_recurring_late_seconds", "by which the last tick was late", lambda t: t.late),
    Figure(
        "millpond_recurring_last_success_timestamp_seconds",
        "when the last tick that succeeded ended",
        lambda t: t.succeeded_at,
    ),
)


def _store_errors(node: NodeReport) -> dict[str, float]:
    found = dict.fromkeys((*STORE_ERRORS.values(), "other"), 0.0)
    for name, number in node.store_errors.items():
        found[STORE_ERRORS.get(name, "other")] += number
    return found


def _worker_ends(pool: PoolReport) -> dict[str, float]:
    found = dict.fromkeys(WORKER_ENDS, 0.0)
    for reason, number in pool.workers_ended.items():
        found[reason if reason in found else "other"] += number
    return found


class Split(NamedTuple):
    """A number of a node or of a pool, by one more label whose values are known in advance."""

    name: str
    meaning: str
    label: str
    of: Callable[[Any], Mapping[str, float]]


NODE_SPLITS: tuple[Split, ...] = (
    Split("millpond_node_store_errors_total", "exchanges that failed", "kind", _store_errors),
    Split(
        "millpond_store_retries_total",
        "transactions the server refused that were repeated",
        "kind",
        lambda n: {kind: n.store_retries.get(kind, 0) for kind in STORE_RETRIES},
    ),
)
RESOURCE_SPLITS: tuple[Split, ...] = (
    Split(
        "millpond_node_admission",
        "1 for what is done with jobs that need something",
        "step",
        lambda r: {step: step == r.step for step in ("admit", "hold", "stop")},
    ),
    Split("millpond_node_tokens", "tokens that the node has", "token", lambda r: r.tokens),
    Split("millpond_node_tokens_used", "of them in use", "token", lambda r: r.tokens_used),
)
POOL_SPLITS: tuple[Split, ...] = (
    Split(
        "millpond_pool_attempts_total",
        "attempts by how they ended",
        "outcome",
        lambda p: {word: p.ends.get(word, 0) for word in OUTCOMES},
    ),
    Split("millpond_pool_workers_ended_total", "workers that ended", "reason", _worker_ends),
    Split(
        "millpond_pool_scalings_total",
        "changes of its size",
        "direction",
        lambda p: {"up": p.scaled_up, "down": p.scaled_down},
    ),
)


class Curve(NamedTuple):
    """Durations of a node or of a pool, as a histogram."""

    name: str
    meaning: str
    of: Callable[[Any], Timing]


NODE_CURVES: tuple[Curve, ...] = (
    Curve("millpond_node_exchange_seconds", "round trips with the store", lambda n: n.exchange),
)
POOL_CURVES: tuple[Curve, ...] = (
    Curve("millpond_pool_wait_seconds", "from due to begun", lambda p: p.wait),
    Curve("millpond_pool_run_seconds", "from begun to ended", lambda p: p.run),
)
