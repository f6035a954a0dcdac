"""A node's report in the text format of Prometheus.

Built anew for each scrape from one report; nothing is counted here. Labels are names of pools, of
recurring tasks and fixed words, never ids of jobs, arguments, or numbers of processes: their number stays
bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, get_args

from millpond.job import MICROSECONDS
from millpond.node.observability.metric_definitions import (
    NODE,
    NODE_CURVES,
    NODE_SPLITS,
    POOL,
    POOL_CURVES,
    POOL_SPLITS,
    RECURRING,
    RESOURCE_SPLITS,
    RESOURCES,
    TASK,
    Curve,
    Figure,
    Split,
)
from millpond.node.observability.report import (
    NodeReport,
    NodeState,
    PoolReport,
    RecurringReport,
    TickingReport,
    WorkerState,
)
from millpond.node.scaling.fleet import scale_document
from millpond.rules.node.health import concerns

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = ("ok", "degraded", "failed")
CONCERNS = ("backing_up", "wait", "pool")
FLEET = {
    "desired_slots": "running jobs that all nodes together would like to have places for",
    "desired_workers": "workers that all nodes together would like to have",
}
BOUNDS = range(10, 31)  # powers of two of microseconds: from a millisecond to eighteen minutes
EDGES = {bits: f"{2**bits / MICROSECONDS:g}" for bits in BOUNDS}  # in seconds
MOST_TASKS = 1_000  # recurring tasks that are told one by one
Words = dict[tuple[str, ...], tuple[tuple[str, ...], str]]  # labels -> all the words, and the one that holds


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
        yield from _all((), {(): self.report}, NODE, NODE_SPLITS, NODE_CURVES)
        if self.report.resources is not None:
            yield from _all((), {(): self.report.resources}, RESOURCES, RESOURCE_SPLITS)
        pools: dict[tuple[str, ...], PoolReport] = {(pool.name,): pool for pool in self.report.pools}
        yield from _all(("pool",), pools, POOL, POOL_SPLITS, POOL_CURVES)
        if self.report.recurring is not None:
            yield from _all((), {(): self.report.recurring}, RECURRING)
            yield from _all(("task",), _ticking(self.report.recurring), TASK)
        statuses: Words = {name: (STATUSES, pool.status) for name, pool in pools.items()}
        yield _words("millpond_pool_status", "1 for the status", "status", statuses)
        yield _workers(self.report.pools)
        for field, meaning in FLEET.items():
            yield _fleet(field, meaning, self.report)
        yield _warnings(self.report)


def _all(
    labels: tuple[str, ...],
    sources: Mapping[tuple[str, ...], Any],
    figures: Iterable[Figure],
    splits: Iterable[Split] = (),
    curves: Iterable[Curve] = (),
) -> Iterable[Metric]:
    """Every number of some nodes, pools or tasks."""
    for figure in figures:
        yield _numbers(figure, labels, sources)
    for split in splits:
        yield _split(split, labels, sources)
    for curve in curves:
        yield _histogram(curve, labels, sources)


def _ticking(report: RecurringReport) -> dict[tuple[str, ...], TickingReport]:
    """The recurring tasks by name; of very many, those in trouble first."""
    first = sorted(report.tasks, key=lambda task: (not task.is_open, -task.failures))
    return {(task.name,): task for task in first[:MOST_TASKS]}


def _split(split: Split, labels: tuple[str, ...], sources: Mapping[tuple[str, ...], Any]) -> Metric:
    family = _family(split.name, split.meaning, (*labels, split.label))
    for values, source in sources.items():
        for word, number in split.of(source).items():
            family.add_metric((*values, word), float(number))
    return family


def _histogram(curve: Curve, labels: tuple[str, ...], sources: Mapping[tuple[str, ...], Any]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(curve.name, curve.meaning, labels=labels)
    for values, source in sources.items():
        timing = curve.of(source)
        below = list(accumulate(timing.counts))
        buckets = [(EDGES[bits], below[bits]) for bits in BOUNDS]
        family.add_metric(values, [*buckets, ("+Inf", below[-1])], timing.seconds)
    return family


def _family(name: str, meaning: str, labels: tuple[str, ...]) -> CounterMetricFamily | GaugeMetricFamily:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(name, meaning, labels=labels)


def _numbers(figure: Figure, labels: tuple[str, ...], sources: Mapping[tuple[str, ...], Any]) -> Metric:
    family = _family(figure.name, figure.meaning, labels)
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


def _fleet(field: str, meaning: str, report: NodeReport) -> Metric:
    """The same on every node: take the largest, never the sum."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"millpond_fleet_{field}", meaning, labels=("pool",))
    for name, wish in scale_document(report.fleet)["pools"].items():
        family.add_metric((name,), float(wish[field]))
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
