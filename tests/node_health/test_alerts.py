"""Alerts reach hooks, folded and bounded, and no hook disturbs the node or another hook."""

from __future__ import annotations

import json
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from millpond.node.observability import alerts as module
from millpond.node.observability.alerts import Alert, Alerts
from millpond.node.observability.events import (
    JobCompleted,
    JobDied,
    NodeEvents,
    PoolUnhealthy,
    StoreBack,
    StoreLost,
)
from millpond.node.observability.webhook import Webhook
from tests.node_health.sinks import LIMIT, listening


def died(job: str, task: str = "jobs.resize", message: str = "no such file") -> JobDied:
    return JobDied(job, task, "images", 5, 7, "error", "ValueError", message)


def test_a_hook_gets_the_event_in_words_and_facts():
    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    alerts = Alerts(events, "host-1", [heard.put])
    events.publish(died("a"))
    alert = heard.get(timeout=LIMIT)
    assert isinstance(alert, Alert)
    assert (alert.kind, alert.level, alert.node, alert.folded) == ("JobDied", "error", "host-1", 0)
    assert alert.text == "jobs.resize is dead: error"
    assert alert.facts["job"] == "a"
    assert alert.facts["attempt"] == 5
    events.close(LIMIT)
    alerts.close(LIMIT)


def test_no_hook_means_no_subscription_and_no_thread():
    before = set(threading.enumerate())
    events = NodeEvents()
    Alerts(events, "host-1", []).close()
    assert not events.wanted(JobDied)
    assert not set(threading.enumerate()) - before


def test_jobs_that_complete_are_no_alert():
    events = NodeEvents()
    alerts = Alerts(events, "host-1", [print])
    assert events.wanted(JobDied)
    assert not events.wanted(JobCompleted)
    events.close(LIMIT)
    alerts.close(LIMIT)


def test_a_storm_of_dead_jobs_is_one_alert_for_each_task():
    events = NodeEvents()
    heard: list[Any] = []
    alerts = Alerts(events, "host-1", [heard.append])
    for number in range(1_000):
        events.publish(died(str(number)))
        events.publish(died(str(number), "jobs.send"))
    assert events.close(LIMIT)
    alerts.close(LIMIT)
    assert [alert.facts["task"] for alert in heard] == ["jobs.resize", "jobs.send"]


def test_what_was_held_back_is_told_when_the_quiet_time_is_over():
    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    alerts = Alerts(events, "host-1", [heard.put], quiet=0.2)
    for number in range(5):
        events.publish(died(str(number)))
    first, second = heard.get(timeout=LIMIT), heard.get(timeout=LIMIT)
    assert (first.facts["job"], first.folded) == ("0", 0)
    assert (second.facts["job"], second.folded) == ("4", 3)
    assert second.text == "jobs.resize is dead: error (and 3 more like it)"
    events.close(LIMIT)
    alerts.close(LIMIT)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_hook_that_raises_disturbs_no_other(error, caplog):
    def bad(alert):
        raise error("password=hunter2")

    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    alerts = Alerts(events, "host-1", [bad, heard.put])
    events.publish(StoreLost("gone"))
    events.publish(StoreBack(1.0))
    assert [heard.get(timeout=LIMIT).kind for _ in range(2)] == ["StoreLost", "StoreBack"]
    assert events.close(LIMIT)
    alerts.close(LIMIT)
    assert alerts.dropped == 2
    assert "failed on StoreLost" in caplog.text


def test_a_hook_that_hangs_loses_its_own_alerts_only(monkeypatch):
    monkeypatch.setattr(module, "MOST", 3)
    entered, release = threading.Event(), threading.Event()

    def hang(alert):
        entered.set()
        release.wait(LIMIT)

    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    alerts = Alerts(events, "host-1", [hang, heard.put])
    events.publish(StoreLost("gone"))
    assert entered.wait(LIMIT)
    assert heard.get(timeout=LIMIT).kind == "StoreLost"
    for number in range(10):
        events.publish(PoolUnhealthy(f"pool-{number}", "x"))
        assert heard.get(timeout=LIMIT).facts["pool"] == f"pool-{number}"
    assert events.close(LIMIT)
    assert alerts.dropped == 7
    alerts.close(0.01)
    release.set()
    alerts.close(LIMIT)


def test_secrets_and_control_characters_do_not_get_into_an_alert():
    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    alerts = Alerts(events, "host-1", [heard.put])
    events.publish(died("a", message="postgresql://user:hunter2@db/x\n\x1b[31mred"))
    facts = heard.get(timeout=LIMIT).facts
    assert "hunter2" not in facts["message"]
    assert facts["message"].isprintable()
    events.close(LIMIT)
    alerts.close(LIMIT)


def test_a_hook_must_be_callable():
    with pytest.raises(TypeError, match="callable"):
        Alerts(NodeEvents(), "host-1", ["https://example.com"])  # type: ignore[list-item]


def test_events_arrive_at_a_webhook():
    events = NodeEvents()
    with listening() as sink:
        alerts = Alerts(events, "host-1", [Webhook(sink.url(), allow=["127.0.0.1"])])
        events.publish(StoreLost("connection refused"))
        posted = json.loads(sink.posted.get(timeout=LIMIT).body)
        assert posted["text"] == "the store cannot be reached: connection refused"
        events.close(LIMIT)
        alerts.close(LIMIT)
    assert alerts.dropped == 0


def test_a_webhook_that_is_refused_is_logged_without_its_path(caplog):
    events = NodeEvents()
    alerts = Alerts(events, "host-1", [Webhook("http://169.254.169.254/latest/meta-data")])
    events.publish(StoreLost("gone"))
    assert events.close(LIMIT)
    alerts.close(LIMIT)
    assert alerts.dropped == 1
    assert "is not a public address" in caplog.text
    assert "meta-data" not in caplog.text
