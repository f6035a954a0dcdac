"""The metrics, read by the parser of the Prometheus library."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from millpond.node.metrics import NODE, POOL, render
from millpond.node.report import NodeReport
from tests.docs.pages import ROOT, code, rows
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
    assert {name for name, labels in found if not labels} == {figure.name for figure in NODE}
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


def test_the_guide_lists_every_metric_and_no_other():
    guide = ROOT / "docs" / "howto" / "monitoring.md"
    listed = {
        code(row[0])[0].partition("{")[0]
        for row in rows(guide.read_text(encoding="utf-8"))
        if "millpond_" in row[0]
    }
    assert listed == {name for name, _ in samples(node())}
