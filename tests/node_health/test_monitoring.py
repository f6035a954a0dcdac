"""What watches a node, as one: events of jobs after the store has them, alerts, a start and an end."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import pytest

from millpond.job import Failure, Outcome, Raised, Released, Returned
from millpond.node.observability import monitor as module
from millpond.node.observability.events import JobCompleted, JobDied, JobRetried, NodeEvents, StoreLost
from millpond.node.observability.monitor import JobNews, Monitoring
from millpond.settlement import settlement
from tests.node_health.reports import node
from tests.node_health.test_events import LIMIT, NOW, job

FAILED = Raised(Failure("ValueError", "no"))


def settled(news: JobNews, outcome: Outcome, *, is_valid: bool = True, **changes) -> None:
    one = job(**changes)
    said = settlement(one, outcome, "n", now=NOW, started_at=NOW - 1, worker=7)
    news.note(one, outcome, said, 7)
    news.accepted(said, is_valid)


def heard_of(*kinds: type) -> tuple[NodeEvents, JobNews, list[Any]]:
    events = NodeEvents()
    heard: list[Any] = []
    events.subscribe(heard.append, kinds)
    return events, JobNews(events), heard


def test_the_end_of_a_job_is_told_once_the_store_has_it():
    events, news, heard = heard_of(JobCompleted, JobDied, JobRetried)
    settled(news, Returned(b"1"), id="a")
    settled(news, FAILED, id="b")
    settled(news, FAILED, id="c", attempt=4, errors=4)
    settled(news, Released(), id="d")
    assert events.close(LIMIT)
    assert [(type(event), event.job) for event in heard] == [
        (JobCompleted, "a"),
        (JobRetried, "b"),
        (JobDied, "c"),
    ]


def test_a_late_end_that_the_store_refused_is_not_told():
    events, news, heard = heard_of(JobDied)
    settled(news, FAILED, is_valid=False, attempt=4, errors=4)
    assert events.close(LIMIT)
    assert heard == []


def test_nothing_is_noted_where_nobody_listens(monkeypatch):
    monkeypatch.setattr(module, "of_settlement", None)  # calling it would fail
    news = JobNews(NodeEvents())
    settled(news, Returned())


def test_what_waits_for_the_store_is_bounded_and_can_be_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MOST_PENDING", 2)
    events, news, heard = heard_of(JobCompleted)
    said = []
    for name in ("a", "b", "c"):
        one = job(id=name)
        said.append(settlement(one, Returned(), "n", now=NOW, started_at=NOW - 1))
        news.note(one, Returned(), said[-1], None)
    for one_said in said:
        news.accepted(one_said, True)
    news.note(
        job(id="d"), Returned(), settlement(job(id="d"), Returned(), "n", now=NOW, started_at=NOW), None
    )
    news.forget()
    news.accepted(settlement(job(id="d"), Returned(), "n", now=NOW), True)
    assert events.close(LIMIT)
    assert [event.job for event in heard] == ["a", "b"]


def test_a_node_says_that_it_began_and_ended_and_nothing_is_left():
    before = set(threading.enumerate())
    heard: list[Any] = []
    watching = Monitoring(node)
    watching.events.subscribe(heard.append)
    watching.start()
    watching.stop("SIGTERM", released=3)
    watching.stop()
    assert [type(event).__name__ for event in heard] == ["NodeStarted", "NodeStopped"]
    assert (heard[1].reason, heard[1].released) == ("SIGTERM", 3)
    assert not set(threading.enumerate()) - before


def test_a_new_log_level_counts_at_once_and_no_line_is_doubled(caplog):
    completed = JobCompleted("a", "jobs.send", "mail", 1, 7, 0.1, 0.1)
    caplog.set_level("INFO", "millpond.node")
    watching = Monitoring(node)
    watching.start()
    assert not watching.events.wanted(JobCompleted)
    caplog.set_level("DEBUG", "millpond.node")
    watching.follow_log_level()
    watching.events.publish(completed)
    watching.stop()
    assert caplog.text.count("jobs.send completed") == 1


def test_what_is_never_started_can_be_stopped():
    Monitoring(node).stop()


def test_a_store_that_goes_away_reaches_an_alert_hook(monkeypatch):
    monkeypatch.setattr(module, "LOOK", 0.01)
    alerts: SimpleQueue[Any] = SimpleQueue()
    watching = Monitoring(lambda: node(store_trouble="refused"), [alerts.put])
    watching.start()
    alert = alerts.get(timeout=LIMIT)
    watching.stop()
    assert (alert.kind, alert.node, alert.facts["cause"]) == ("StoreLost", "host-1-abcd", "refused")


@pytest.mark.parametrize("failures", [1, 3])
def test_a_look_that_fails_is_not_the_last(monkeypatch, caplog, failures):
    monkeypatch.setattr(module, "LOOK", 0.01)
    looks = iter([node(), *[None] * failures])
    heard: SimpleQueue[Any] = SimpleQueue()

    def report():
        found = next(looks, node(store_trouble="refused"))
        if found is None:
            raise ZeroDivisionError
        return found

    watching = Monitoring(report)
    watching.events.subscribe(heard.put, [StoreLost])
    watching.start()
    assert heard.get(timeout=LIMIT) == StoreLost("refused")
    watching.stop()
    assert "could not be looked at" in caplog.text
