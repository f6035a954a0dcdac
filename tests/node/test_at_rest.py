"""A node with nothing to do: it asks seldom, misses nothing, and is awake at once when work comes."""

from __future__ import annotations

import os
import threading
import time

from millpond import Node
from tests.node.waiting import ended, until


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
