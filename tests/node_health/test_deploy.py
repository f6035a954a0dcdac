"""The ready dashboard and alert rules: they can be read, and ask for nothing that a node does not tell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from millpond import App, Retry
from millpond.node.health.routes import HealthOptions
from millpond.node.health.server import HealthServer
from millpond.node.node import Node
from millpond.options import Resources
from tests.docs.pages import ROOT, code, rows, section
from tests.node.waiting import ended, until
from tests.node_health.test_health_port import ask, body

DASHBOARD = ROOT / "deploy" / "grafana" / "millpond.json"
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
NAME = re.compile(r"\bmillpond_\w+")
LABELS = re.compile(r"(millpond_\w+)\{([^}]*)\}")
SETTING = re.compile(r'(\w+)\s*(?:=~|!=|=)\s*"([^"]*)"')


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def questions() -> Iterator[str]:
    """Everything that Prometheus is asked."""
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (variable["query"]["query"] for variable in dashboard()["templating"]["list"][1:])
    yield from (rule["expr"] for rule in rules())


@pytest.fixture(scope="module")
def page() -> str:
    """What a real node tells that has done some work and plans a recurring task."""
    app = App("memory://")
    app.pool("images", workers=(1, 2), max_wait="10s")

    @app.task(queue="images", name="resize")
    def resize() -> None: ...

    @app.task(queue="images", name="fail", retry=Retry(attempts=2, first="10ms"))
    def fail() -> None:
        raise ValueError

    @app.recurring(every="1s", name="tick", queue="images")
    def tick() -> None: ...

    node = Node(app, budget=Resources(memory="4GB", gpu=1))
    server = HealthServer(node.report, HealthOptions(port=0, open_metrics=True))
    server.start()
    try:
        with node:
            resize.enqueue().result(timeout=30)
            ended(fail.enqueue())
            until(lambda: app.orchestrator.status_of("tick").last_success_at, "a tick that succeeded")
            is_told = lambda: b"last_success_timestamp_seconds{" in body(ask(server, "/metrics"))
            until(is_told, "the planner to know")
            return body(ask(server, "/metrics")).decode()
    finally:
        server.stop()


@pytest.mark.timeout(60)
def test_a_real_node_tells_everything_that_is_asked_for(page):
    told = set(re.findall(r"^(millpond_\w+)", page, re.MULTILINE))
    asked = {name for question in questions() for name in NAME.findall(question)}
    assert len(asked) > 30
    assert asked <= told


@pytest.mark.timeout(60)
def test_every_label_that_is_asked_for_is_there_with_that_value(page):
    for question in questions():
        for name, inside in LABELS.findall(question):
            for label, value in SETTING.findall(inside):
                if label != "job" and not value.startswith("$"):  # what a scrape adds, and what people choose
                    assert re.search(rf'^{name}\{{[^}}]*{label}="{value}"', page, re.MULTILINE), question


@pytest.mark.timeout(60)
def test_what_the_node_counted_is_what_it_did(page):
    assert re.search(r'millpond_pool_attempts_total\{outcome="completed",pool="images"\} [1-9]', page)
    assert 'millpond_pool_attempts_total{outcome="dead",pool="images"} 1.0' in page
    assert 'millpond_pool_attempts_total{outcome="retried",pool="images"} 1.0' in page
    assert re.search(r'millpond_pool_wait_seconds_count\{pool="images"\} [1-9]', page)
    assert re.search(r'millpond_pool_run_seconds_bucket\{le="\+Inf",pool="images"\} [1-9]', page)
    assert re.search(r"millpond_node_exchange_seconds_count [1-9]", page)
    assert re.search(r'millpond_pool_workers_started_total\{pool="images"\} [1-9]', page)
    assert 'millpond_recurring_breaker_open{task="tick"} 0.0' in page
    assert "millpond_recurring_leader 1.0" in page
    assert 'millpond_node_tokens{token="gpu"} 1.0' in page
    assert "millpond_node_memory_limit_bytes 4e+09" in page


def test_every_rule_says_what_is_wrong_and_what_to_do():
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert rule["alert"].startswith("Millpond")
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert len(rule["annotations"]["summary"]) > 10
        assert len(rule["annotations"]["description"]) > 30


def test_the_guide_lists_every_rule():
    guide = ROOT / "docs" / "howto" / "prometheus-and-grafana.md"
    listed = [code(row[0])[0] for row in rows(section(guide, "## Alert"))]
    assert listed == [rule["alert"] for rule in rules()]


def test_the_panels_have_their_own_ids_and_places():
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_nothing_names_a_place_that_only_its_makers_have():
    text = DASHBOARD.read_text(encoding="utf-8") + RULES.read_text(encoding="utf-8")
    assert "http" not in text
    assert {panel["datasource"]["uid"] for panel in dashboard()["panels"] if "datasource" in panel} == {
        "${datasource}"
    }
