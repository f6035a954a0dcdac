"""A node's report in the text format of Prometheus.

Built anew for each scrape from one report; nothing is counted here. Labels are names of pools and fixed
words, never ids of jobs, arguments, or numbers of processes: their number stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from millpond.node.report import NodeReport, NodeState, PoolReport, WorkerState
from millpond.rules.health import concerns, is_live, is_ready

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = ("ok", "degraded", "failed")
CONCERNS = ("backing_up", "wait", "pool")
Words = dict[tuple[str, ...], tuple[tuple[str, ...], str]]  # labels -> all the words, and the one that holds


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
    Figure("millpond_node_unsettled_bytes", "memory they take", lambda n: n.unsettled_bytes),
    Figure("millpond_node_settled_total", "outcomes the store has taken", lambda n: n.settled),
    Figure("millpond_node_stale_writes_total", "late writes the store refused", lambda n: n.stale),
    Figure("millpond_node_rescued_jobs_total", "jobs of dead nodes revived here", lambda n: n.rescued),
    Figure("millpond_node_exchanges_total", "round trips with the store", lambda n: n.exchanges),
)
POOL: tuple[Figure, ...] = (
    Figure("millpond_pool_workers_min", "fewest workers", lambda p: p.least),
    Figure("millpond_pool_workers_max", "most workers", lambda p: p.most),
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
    Figure(
        "millpond_pool_memory_bytes",
        "resident memory of its workers",
        lambda p: sum(w.rss for w in p.workers),
    ),
)


def render(report: NodeReport) -> bytes:
    """The whole page of metrics."""
    from prometheus_client import generate_latest

    return generate_latest(_Families(report))


class _Families:
    """One report as a collector."""

    def __init__(self, report: NodeReport) -> None:
        self.report = report

    def collect(self) -> Iterable[Metric]:
        yield _information(self.report)
        states = get_args(NodeState)
        yield _words("millpond_node_state", "1 for the state", "state", {(): (states, self.report.state)})
        for figure in NODE:
            yield _numbers(figure, (), {(): self.report})
        pools: dict[tuple[str, ...], PoolReport] = {(pool.name,): pool for pool in self.report.pools}
        for figure in POOL:
            yield _numbers(figure, ("pool",), pools)
        statuses: Words = {name: (STATUSES, pool.status) for name, pool in pools.items()}
        yield _words("millpond_pool_status", "1 for the status", "status", statuses)
        yield _workers(self.report.pools)
        yield _warnings(self.report)


def _numbers(figure: Figure, labels: tuple[str, ...], sources: Mapping[tuple[str, ...], Any]) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if figure.name.endswith("_total") else GaugeMetricFamily
    family = kind(figure.name, figure.meaning, labels=labels)
    for values, source in sources.items():
        number = figure.of(source)
        if number is not None:
            family.add_metric(values, float(number))
    return family


def _words(name: str, meaning: str, label: str, sources: Words) -> Metric:
    """A word out of a few, as one line for each with 1 for the one that holds."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, meaning, labels=("pool", label) if any(sources) else (label,))
    for values, (words, current) in sources.items():
        for word in words:
            family.add_metric((*values, word), float(word == current))
    return family


def _workers(pools: Iterable[PoolReport]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily("millpond_pool_workers", "workers by state", labels=("pool", "state"))
    for pool in pools:
        for state in get_args(WorkerState):
            family.add_metric((pool.name, state), sum(worker.state == state for worker in pool.workers))
    return family


def _warnings(report: NodeReport) -> Metric:
    """A warning that is absent is a 0, so that an alert rule can tell it from a node that is gone."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily("millpond_pool_warning", "1 while it holds", labels=("pool", "warning"))
    found = {(concern.pool, concern.kind) for concern in concerns(report)}
    for pool in report.pools:
        for kind in CONCERNS:
            family.add_metric((pool.name, kind), float((pool.name, kind) in found))
    return family


def _information(report: NodeReport) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    labels = {
        "node": report.id,
        "host": report.host,
        "store": report.store.split(":", 1)[0],  # the kind of store: its address is nobody's business here
        "durability": report.durability,
    }
    family = GaugeMetricFamily("millpond_node_info", "which node this is; always 1", labels=tuple(labels))
    family.add_metric(tuple(labels.values()), 1.0)
    return family
