"""What a planner learns from the jobs of ticks, and what it tells."""

from __future__ import annotations

import msgspec

from millpond.job import MICROSECONDS, Failure, Job, Raised
from millpond.orchestrator.events import Happening, TickMissed
from millpond.orchestrator.planner import Planner
from millpond.orchestrator.tick_results import started_at
from tests.recurring.planners import Store, align, app_on, ids, jobs, plan, planner_of
from tests.stores.acting import Node

MINUTE = 60 * MICROSECONDS
NO = Raised(Failure("E", "no"), final=True)


def look_at(store: Store, planner: Planner, at: int) -> None:
    """A round at this instant, as it would come by itself: nothing is hurried."""
    store.clock.shift += at - store.clock.now()
    planner.round(at)


def test_there_is_one_probe_also_when_its_planner_dies_at_once(memory):
    """What is remembered of a task is written now and then; that it is probed, before anything else."""
    start = align(memory)
    app = app_on(memory, overlap="allow", max_failures=1, probe_after=60)
    planner = planner_of(app)
    plan(memory, planner, after=60)
    Node(memory).run(NO)
    plan(memory, planner, after=1)
    probed_at = start + 3 * MINUTE
    look_at(memory, planner, probed_at - MINUTE)
    planner.ledger.change("a")
    look_at(memory, planner, probed_at - 1)  # so that it has just been written
    look_at(memory, planner, probed_at)
    assert jobs(memory) == ids(start + MINUTE, probed_at)
    look_at(memory, planner_of(app), start + 6 * MINUTE)
    assert jobs(memory) == ids(start + MINUTE, probed_at)


def test_what_was_missed_for_one_reason_is_told_once(memory):
    told: list[Happening] = []
    start = align(memory)
    planner = planner_of(app_on(memory), tell=told.append)
    plan(memory, planner, after=300 * 60)
    assert told == [TickMissed("a", start + 299 * MINUTE, "missed", 299)]


def test_no_run_began_after_it_ended_whatever_its_node_took_for_the_time(memory):
    """Else a task that waits for a success since then would wait for hours."""
    align(memory)
    plan(memory, planner_of(app_on(memory)), after=60)
    job = Node(memory).run()
    (found,) = memory.get([job.id])
    assert isinstance(found, Job)
    ahead = (found.finished_at or 0) + 120 * MINUTE
    assert started_at(msgspec.structs.replace(found, started_at=ahead)) == found.finished_at
