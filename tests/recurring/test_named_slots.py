"""Tasks that share a named slot on a real store: however begun, no more run than it has room for."""

from __future__ import annotations

from typing import Any

from millpond import App, JobState, Slot
from millpond.job import Job, Returned, Settlement
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim, Filter
from tests.recurring.planners import align, nothing, plan, planner_of

Store = Any
NODES = ("left", "right")


def dock(store: Store) -> App:
    """Three tasks, two places."""
    app = App(store)
    for name in ("a", "b", "c"):
        app.orchestrator.register(nothing, name=name, every=60, overlap="queue", blocks=[Slot("dock", 2)])
    return app


class Fleet:
    """Two nodes that claim whatever they can."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._sequence = 0
        for node in NODES:
            store.renew(node, "host")

    def claim(self) -> list[Job]:
        """Each takes as much as it gets."""
        self._sequence += 1
        found: list[Job] = []
        for node in NODES:
            found += self.store.exchange(node, self._sequence, claims=[Claim("default", 10)]).claimed
        return found

    def end(self, job: Job) -> None:
        """It completed."""
        self._sequence += 1
        done = Settlement(job.id, job.token, settle(job, Returned(b"null"), self.store.clock.now()))
        for node in NODES:
            self.store.exchange(node, self._sequence, settlements=[done])

    def running(self) -> list[str]:
        """The tasks of what runs."""
        return sorted(job.task for job in self.store.search(Filter(states=(JobState.RUNNING,))).jobs)


def test_no_more_ticks_run_than_their_slot_has_room_for_on_all_nodes(store):
    app = dock(store)
    align(store)
    planner = planner_of(app)
    plan(store, planner, after=60)
    fleet = Fleet(store)
    first = fleet.claim()
    assert [job.task for job in first] == ["a", "b"] == fleet.running()
    assert app.orchestrator.status_of("c").why == (
        "Its tick waits: slot 'dock' has no room, 2 of 2 held by 'a', 'b'."
    )
    fleet.end(first[0])
    plan(store, planner)
    fleet.claim()
    assert fleet.running() == ["b", "c"]


def test_what_is_begun_by_hand_needs_a_place_as_well_and_says_who_has_them(store):
    app = dock(store)
    align(store)
    planner = planner_of(app)
    plan(store, planner, after=60)
    fleet = Fleet(store)
    first = fleet.claim()
    assert app.orchestrator.trigger("c")  # it may overlap in line, not in the slot
    app.tasks["c"].enqueue()
    plan(store, planner)
    assert fleet.claim() == []
    assert fleet.running() == ["a", "b"]
    assert "slot 'dock' has no room, 2 of 2 held by 'a', 'b'" in app.orchestrator.status_of("c").why
    fleet.end(first[1])
    assert [job.task for job in fleet.claim()] == ["c"]
    assert fleet.running() == ["a", "c"]
