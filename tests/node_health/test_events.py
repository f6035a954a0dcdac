"""Events of a node reach their subscribers, whatever some of them do."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from millpond import events as pool_events
from millpond.job import (
    Cancelled,
    Crashed,
    Failure,
    Job,
    JobOptions,
    JobState,
    Outcome,
    Raised,
    Released,
    Returned,
    Snoozed,
)
from millpond.node.observability import events as module
from millpond.node.observability.concerns import Lookout
from millpond.node.observability.events import (
    JobCompleted,
    JobDied,
    JobRetried,
    JobStopped,
    NodeEvent,
    NodeEvents,
    NodeRescued,
    NodeStarted,
    PoolUnhealthy,
    StoreBack,
    StoreLost,
    WorkerCrashed,
    WorkerUp,
    of_pool,
    of_settlement,
)
from millpond.node.observability.wording import SENTENCES, kinds_from, sentence_of
from millpond.settlement import settlement
from tests.node_health.reports import node, pool

LIMIT = 10  # seconds for what takes milliseconds
NOW = 1_800_000_000_000_000


def job(**changes) -> Job:
    facts = {
        "id": "0192-a", "task": "jobs.resize", "queue": "images", "state": JobState.RUNNING, "reason": None,
        "priority": 1, "rank": 0, "run_at": NOW - 5_000_000, "created_at": NOW - 9_000_000,
        "started_at": None, "finished_at": None, "expires_at": None, "attempt": 0, "errors": 0, "crashes": 0,
        "lost": 0, "token": 1, "node": "n", "alone": False, "cancelling": False, "unique": None, "slots": (),
        "depends_on": (), "options": JobOptions(), "payload": b'["secret argument"]',
    }  # fmt: skip
    return Job(**{**facts, **changes})


def event_of(outcome: Outcome, worker: int | None = 7, **changes) -> NodeEvent | None:
    one = job(**changes)
    verdict = settlement(one, outcome, "n", now=NOW, started_at=NOW - 2_000_000, worker=worker)
    return of_settlement(one, outcome, verdict, worker)


# --- where they come from --------------------------------------------------------------------------------
def test_a_job_that_returned_is_completed():
    assert event_of(Returned(b"1")) == JobCompleted("0192-a", "jobs.resize", "images", 1, 7, 3.0, 2.0)


def test_a_job_that_raised_will_run_again_until_its_attempts_are_used_up():
    failure = Failure("ValueError", "no such file")
    event = event_of(Raised(failure))
    assert isinstance(event, JobRetried)
    assert (event.cause, event.error, event.message, event.attempt) == (
        "raised",
        "ValueError",
        "no such file",
        1,
    )
    assert event.retry_at > NOW
    event = event_of(Raised(failure), attempt=4, errors=4)
    assert isinstance(event, JobDied)
    assert (event.attempt, event.error, event.message, event.worker) == (5, "ValueError", "no such file", 7)


def test_a_job_that_kills_its_workers_dies():
    event = event_of(Crashed(Failure("WorkerDied", "signal 9")), crashes=2, attempt=2)
    assert isinstance(event, JobDied)
    assert event.reason == "crashed"


def test_a_result_that_cannot_be_stored_says_why_the_job_died():
    event = event_of(Returned(refused="too large"))
    assert isinstance(event, JobDied)
    assert (event.reason, event.message) == ("result", "too large")


def test_a_snoozed_and_a_cancelled_job_say_so():
    snoozed = event_of(Snoozed(120.0))
    assert isinstance(snoozed, JobRetried)
    assert (snoozed.cause, snoozed.message) == ("snoozed", "for 120 s")
    assert isinstance(event_of(Cancelled()), JobStopped)


def test_a_job_given_back_unstarted_is_no_event():
    assert event_of(Released()) is None


def test_what_a_pool_says_of_its_workers_gets_the_name_of_the_pool():
    assert of_pool("mail", pool_events.WorkerStarted(5)) == WorkerUp("mail", 5)
    crashed = of_pool("mail", pool_events.TaskCrashed("jobs.send", 5, "signal 11"))
    assert crashed == WorkerCrashed("mail", 5, "jobs.send", "signal 11")
    assert of_pool("mail", pool_events.PoolRecovered(3)) is None


def test_every_kind_of_event_has_its_sentence():
    kinds = {kind for kind in vars(module).values() if kind in NodeEvent.__args__}
    assert set(SENTENCES) == kinds == set(NodeEvent.__args__)
    assert sentence_of(NodeRescued("host-2", 12)) == "12 jobs of the dead node host-2 were rescued"
    assert JobCompleted not in kinds_from(20)


# --- where they go ---------------------------------------------------------------------------------------
def test_subscribers_get_what_they_asked_for_in_order():
    events = NodeEvents()
    everything: SimpleQueue[Any] = SimpleQueue()
    some: SimpleQueue[Any] = SimpleQueue()
    events.subscribe(everything.put)
    events.subscribe(some.put, [StoreBack])
    sent: list[NodeEvent] = [StoreLost("gone"), StoreBack(1.0), NodeRescued("n", 2)]
    for event in sent:
        events.publish(event)
    assert events.close(LIMIT)
    assert [everything.get_nowait() for _ in sent] == sent
    assert some.get_nowait() == StoreBack(1.0)
    assert some.empty()


def test_nobody_who_listens_means_nothing_is_wanted_and_no_thread_runs():
    before = set(threading.enumerate())
    events = NodeEvents()
    assert not events.wanted(StoreLost)
    events.publish(StoreLost("gone"))
    assert not set(threading.enumerate()) - before
    assert events.close()


def test_a_kind_is_wanted_while_somebody_listens_to_it():
    events = NodeEvents()
    end = events.subscribe(print, [StoreLost])
    assert events.wanted(StoreLost)
    assert not events.wanted(StoreBack)
    end()
    assert not events.wanted(StoreLost)
    events.close(LIMIT)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_subscriber_that_raises_disturbs_nobody(error, caplog):
    def bad(event):
        raise error

    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    events.subscribe(bad)
    events.subscribe(heard.put)
    events.publish(StoreLost("one"))
    events.publish(StoreLost("two"))
    assert events.close(LIMIT)
    assert [heard.get_nowait().cause for _ in range(2)] == ["one", "two"]
    assert "the node goes on" in caplog.text


def test_a_subscriber_that_hangs_blocks_nobody_and_what_does_not_fit_is_counted():
    entered, release = threading.Event(), threading.Event()

    def hang(event):
        entered.set()
        release.wait(LIMIT)

    events = NodeEvents(most=3)
    events.subscribe(hang)
    events.publish(StoreLost("0"))
    assert entered.wait(LIMIT)
    for number in range(1, 10):
        events.publish(StoreLost(str(number)))
    assert events.dropped == 6
    assert not events.close(timeout=0.01)
    release.set()
    assert events.close(LIMIT)


def test_a_closed_node_says_nothing_more():
    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    events.subscribe(heard.put)
    assert events.close(LIMIT)
    events.publish(StoreLost("late"))
    assert heard.empty()


def test_a_subscriber_must_be_callable():
    with pytest.raises(TypeError, match="callable"):
        NodeEvents().subscribe(5)  # type: ignore[arg-type]


def test_an_event_may_be_published_from_a_signal_handler():
    events = NodeEvents()
    heard: SimpleQueue[Any] = SimpleQueue()
    events.subscribe(heard.put)
    before = signal.signal(signal.SIGUSR1, lambda *_: events.publish(StoreLost("signal")))
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard.get(timeout=LIMIT) == StoreLost("signal")
    events.close(LIMIT)


# --- the lookout -----------------------------------------------------------------------------------------
def test_the_lookout_tells_what_begins_and_what_is_over():
    events = NodeEvents()
    heard: list[Any] = []
    events.subscribe(heard.append)
    lookout = Lookout(events)
    ill = pool(status="degraded", reasons=("no worker starts",), waiting=99, oldest_wait=20.0)
    for now in range(100):
        lookout.look(node(ill, store_trouble="refused") if now < 50 else node(), float(now))
    assert events.close(LIMIT)
    assert [type(event).__name__ for event in heard] == [
        "StoreLost", "PoolUnhealthy", "WaitTooLong", "QueueBackingUp",
        "StoreBack", "PoolHealthy", "QueueCaughtUp", "WaitInBounds",
    ]  # fmt: skip
    assert heard[0] == StoreLost("refused")
    assert heard[1] == PoolUnhealthy("mail", "mail is degraded, no worker starts")
    assert heard[4] == StoreBack(50.0)


def test_events_are_plain_tuples_that_can_be_compared():
    assert NodeStarted("n", "memory://", "none", ("a",)) == ("n", "memory://", "none", ("a",))
