"""A node with nothing to do: it asks seldom, misses nothing, and is awake at once when work comes."""

from __future__ import annotations

import os
import threading
import time

import pytest

from millpond import App, Node, Retry
from millpond.job import MICROSECONDS
from millpond.node.jobs import claim_loop
from tests.node.waiting import ended, until
from tests.stores.acting import put_many, tally
from tests.stores.places import place


def test_the_dead_are_asked_for_only_when_a_lease_may_have_run_out(local):
    store = local.store
    store.migrate()
    local.task(name="noop")(print)
    node = Node(local)
    counting, upkeep = node._scaling.counting, node._upkeep
    assert upkeep._may_be_dead(time.monotonic())  # nothing has been counted yet
    store.renew(node._state.identity.id, "here", lease=0.01)
    store.renew("one-1-aaaa", "elsewhere", lease=100.0)
    counting.look()
    at = counting.counted_at
    assert not upkeep._may_be_dead(at + 1.0)  # its own lease does not count
    assert upkeep._may_be_dead(at + 60.0)  # what was counted is too old to tell
    store.renew("two-2-bbbb", "elsewhere", lease=1.0)
    counting.look(soon=True)
    until(lambda: counting.look(soon=True), "another count")
    assert upkeep._may_be_dead(counting.counted_at + 1.5)
    node.stop()


def test_what_measures_sleeps_without_jobs_and_wakes_when_one_comes(local, start, tmp_path):
    gate = tmp_path / "open"

    @local.task(name="hold")
    def hold(path: str) -> None:
        while not os.path.exists(path):
            time.sleep(0.005)

    node = start(local)
    until(lambda: node._watch._is_asleep, "it sleeps")
    handle = hold.enqueue(str(gate))
    until(lambda: handle.id in node._watch._running, "the job is watched")
    assert not node._watch._is_asleep
    gate.write_text("")
    ended(handle)
    until(lambda: node._watch._is_asleep, "it sleeps again")


def test_a_node_at_rest_that_stops_does_not_wait_for_those_who_sleep(local, start):
    local.task(name="noop")(print)
    node = start(local)
    until(lambda: node._watch._is_asleep and node._scaling._is_idle(), "it rests")
    node.stop()
    names = {"millpond-resources", "millpond-scaling"}
    until(lambda: not names & {thread.name for thread in threading.enumerate()}, "its threads have ended")


@pytest.fixture
def on_redis(tmp_path):
    """An app on Redis with nothing in it."""
    with place("redis", tmp_path) as url:
        app = App(url)
        app.store.migrate()
        yield app
        app.store.close()


def test_a_node_at_rest_goes_on_at_once_with_what_one_claim_does_not_reach(on_redis, start, monkeypatch):
    """A page of dependents for each look, once a second, would take a quarter of an hour for a million."""
    monkeypatch.setattr(claim_loop, "POLL", 3600.0)  # no look but one that follows another

    @on_redis.task(retry=Retry(attempts=1))
    def fail() -> None:
        raise ValueError("no")

    parent = fail.enqueue()
    put_many(on_redis.store, 3500, queue="elsewhere", depends_on=(parent.id,))
    start(on_redis)
    until(lambda: tally(on_redis.store, "elsewhere") == {"cancelled": 3500}, "the end of all dependents")


def test_a_node_at_rest_finds_its_job_behind_very_many_of_others_that_fell_due(on_redis, start, monkeypatch):
    monkeypatch.setattr(claim_loop, "POLL", 3600.0)

    @on_redis.task
    def five() -> int:
        return 5

    store = on_redis.store
    put_many(store, 3500, queue="elsewhere", delay=60.0, fresh=True)
    handle = five.using(delay=61.0).enqueue()
    store.clock.shift += 120 * MICROSECONDS
    start(on_redis)
    assert handle.result(timeout=30) == 5
