"""The metrics, read by the parser of the Prometheus library."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from millpond.node.observability.job_tally import Durations, Tally
from millpond.node.observability.metric_definitions import (
    NODE,
    NODE_CURVES,
    POOL,
    RECURRING,
    RESOURCES,
    STORE_RETRIES,
)
from millpond.node.observability.metrics import MOST_TASKS, render
from millpond.node.observability.report import NodeReport, RecurringReport, TickingReport
from tests.docs.pages import ROOT, code, rows, section
from tests.node_health.reports import node, pool

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(report: NodeReport) -> Samples:
    families = text_string_to_metric_families(render(report).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def of_pool(name: str, found: Samples, metric: str, **labels: str) -> float:
    return found[metric, tuple(sorted({"pool": name, **labels}.items()))]


def test_every_number_of_a_node_is_there_once():
    found = samples(node())
    alone = {figure.name for table in (NODE, RESOURCES, RECURRING) for figure in table}
    sums = {f"{curve.name}_{part}" for curve in NODE_CURVES for part in ("sum", "count")}
    assert {name for name, labels in found if not labels} == alone | sums
    assert found["millpond_node_settled_total", ()] == 50
    assert found["millpond_node_round_age_seconds", ()] == 0.2
    assert found["millpond_node_store_reachable", ()] == 1


def test_every_pool_has_its_numbers():
    found = samples(node(pool(), pool(name="images", waiting=7, oldest_wait=3.5, done=9)))
    assert of_pool("images", found, "millpond_pool_waiting_jobs") == 7
    assert of_pool("images", found, "millpond_pool_oldest_wait_seconds") == 3.5
    assert of_pool("images", found, "millpond_pool_jobs_done_total") == 9
    assert of_pool("mail", found, "millpond_pool_oldest_wait_seconds") == 0
    assert of_pool("mail", found, "millpond_pool_memory_bytes") == 100_000_000
    assert {dict(labels)["pool"] for name, labels in found if name == POOL[0].name} == {"mail", "images"}


def test_workers_are_counted_by_state():
    found = samples(node())
    counted = {
        state: of_pool("mail", found, "millpond_pool_workers", state=state)
        for state in ("idle", "busy", "dead")
    }
    assert counted == {"idle": 1, "busy": 1, "dead": 0}


def test_a_state_is_one_of_all():
    found = samples(node(state="draining"))
    states = {
        dict(labels)["state"]: value
        for (name, labels), value in found.items()
        if name == "millpond_node_state"
    }
    assert states == {"starting": 0, "running": 0, "held": 0, "draining": 1, "stopped": 0}


def test_warnings_are_there_before_they_hold():
    found = samples(node(pool(oldest_wait=60.0, status="degraded")))
    held = {
        kind: of_pool("mail", found, "millpond_pool_warning", warning=kind)
        for kind in ("wait", "pool", "backing_up")
    }
    assert held == {"wait": 1, "pool": 1, "backing_up": 0}


def test_a_longest_wait_that_is_not_given_is_left_out():
    assert not [
        name for name, _ in samples(node(pool(max_wait=None))) if name == "millpond_pool_max_wait_seconds"
    ]


def test_a_node_without_pools_has_metrics_too():
    assert samples(node()._replace(pools=()))["millpond_node_live", ()] == 1


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "ü€", 'x"} 1\nmillpond_forged 1'])
def test_no_name_can_break_out_of_its_label(name):
    found = samples(node(pool(name=name)))
    assert of_pool(name, found, "millpond_pool_waiting_jobs") == 0
    assert not [metric for metric, _ in found if "forged" in metric]


def test_the_address_of_the_store_is_not_shown():
    page = render(node(store="postgresql://user:hunter2@db.internal/jobs")).decode()
    assert 'store="postgresql"' in page
    assert "hunter2" not in page
    assert "db.internal" not in page


def test_the_number_of_lines_does_not_grow_with_jobs_and_workers():
    few = render(node(pool(workers=())))
    many = render(node(pool(workers=node().pools[0].workers * 50, waiting=10**6, done=10**9)))
    assert few.count(b"\n") == many.count(b"\n")


def test_durations_are_histograms_whose_buckets_add_up():
    times = Durations()
    for microseconds in (-5, 0, 900, 1_000, 1_100, 1_000_000, 2**40):
        times.add(microseconds)
    found = samples(node(pool(wait=times.timing())))
    buckets = {
        float(dict(labels)["le"]): value
        for (name, labels), value in found.items()
        if name == "millpond_pool_wait_seconds_bucket"
    }
    assert buckets[0.001024] == 4
    assert buckets[0.002048] == 5
    assert buckets[1.04858] == 6
    assert buckets[float("inf")] == of_pool("mail", found, "millpond_pool_wait_seconds_count") == 7
    assert sorted(buckets.values()) == [value for _, value in sorted(buckets.items())]
    assert of_pool("mail", found, "millpond_pool_wait_seconds_sum") == pytest.approx(1_099_512.63)


def test_attempts_are_told_by_how_they_ended_also_those_that_never_did():
    tally = Tally()
    tally.returned(wait=1_000, run=-3)
    found = samples(node(pool(ends=tally.told(), run=tally.runs.timing())))
    assert of_pool("mail", found, "millpond_pool_attempts_total", outcome="completed") == 1
    assert of_pool("mail", found, "millpond_pool_attempts_total", outcome="dead") == 0
    assert of_pool("mail", found, "millpond_pool_run_seconds_sum") == 0


def test_words_that_are_not_known_are_counted_as_others():
    found = samples(
        node(pool(workers_ended={"died": 2, "bored": 1}), store_errors={"Odd": 3, "StoreBusy": 1})
    )
    assert of_pool("mail", found, "millpond_pool_workers_ended_total", reason="died") == 2
    assert of_pool("mail", found, "millpond_pool_workers_ended_total", reason="other") == 1
    assert found["millpond_node_store_errors_total", (("kind", "other"),)] == 3
    assert found["millpond_node_store_errors_total", (("kind", "busy"),)] == 1


def test_transactions_that_the_store_repeated_are_counted_by_kind():
    found = samples(node(store_retries={"deadlock": 7}))
    counts = {kind: found["millpond_store_retries_total", (("kind", kind),)] for kind in STORE_RETRIES}
    assert counts == {"deadlock": 7, "serialization": 0, "session": 0, "silence": 0}


def test_of_very_many_recurring_tasks_those_in_trouble_are_told():
    tasks = tuple(TickingReport(f"t{n}", n == 4_999, 0, 0, 0.0, None) for n in range(5_000))
    found = samples(node(recurring=RecurringReport(True, tasks)))
    told = {labels for name, labels in found if name == "millpond_recurring_breaker_open"}
    assert len(told) == MOST_TASKS
    assert (("task", "t4999"),) in told


def test_a_node_that_does_not_plan_tells_nothing_of_the_tasks():
    found = samples(node(recurring=RecurringReport(is_leader=False)))
    assert found["millpond_recurring_leader", ()] == 0
    assert not [name for name, _ in found if name == "millpond_recurring_failures"]
    assert not [name for name, _ in samples(node(recurring=None)) if "recurring" in name]


def test_the_reference_lists_every_metric_and_no_other():
    reference = ROOT / "docs" / "reference" / "metrics.md"
    listed = {
        code(row[0])[0] for row in rows(section(reference, "## Metrics of a node")) if "millpond_" in row[0]
    }
    families = list(text_string_to_metric_families(render(node()).decode()))
    told = set()
    for family in families:
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        name = f"{family.name}_total" if family.type == "counter" else family.name
        told.add(f"{name}{{{', '.join(labels)}}}" if labels else name)
    assert {_with_sorted_labels(name) for name in listed} == told


def _with_sorted_labels(name: str) -> str:
    base, _, labels = name.partition("{")
    return f"{base}{{{', '.join(sorted(labels.strip('}').split(', ')))}}}" if labels else base
