"""A clock that was wrong for a moment and is right again: tasks go on, and no instant has two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millpond import App, Node
from millpond.job import MICROSECONDS, JobState
from millpond.node.observability.events import ClockCorrected
from millpond.orchestrator.clock_correction import correct
from millpond.orchestrator.events import Happening
from millpond.orchestrator.ledger import Entry, Waiting
from millpond.recurring import success_since
from millpond.rules.recurring.breaker import Breaker
from millpond.store.protocol import Filter, Retention
from tests.node.waiting import until
from tests.recurring.planners import align, app_on, ids, jobs, nothing, plan, planner_of
from tests.recurring.test_named_slots import Fleet

MINUTE = 60 * MICROSECONDS
YEARS = 10 * 365 * 86_400.0
NOW = 1_794_808_140 * MICROSECONDS


@pytest.mark.parametrize("ahead", [3 * 3600.0, 5 * 86_400.0])
def test_tasks_go_on_by_the_right_clock_and_each_instant_has_one_run(store, ahead):
    start = align(store)
    app, fleet = app_on(store), Fleet(store)
    plan(store, planner_of(app), after=60)
    fleet.end(*fleet.claim())
    wrong = planner_of(app)
    plan(store, wrong, after=ahead)
    wrong.close()
    later = round(ahead * MICROSECONDS)
    assert jobs(store) == ids(start + MINUTE, start + MINUTE + later)
    told: list[Happening] = []
    store.clock.shift -= later
    right, other = planner_of(app, tell=told.append), planner_of(app)  # two that both believe they lead
    (corrected,) = told
    assert isinstance(corrected, ClockCorrected)
    assert abs(corrected.ahead - ahead) < 70.0
    assert corrected.tasks == 1
    store.renew("left", "host")
    assert "the store's clock was" in app.orchestrator.status_of("a").why
    plan(store, right, other, after=60)
    plan(store, right, other)
    assert jobs(store) == ids(start + MINUTE, start + 2 * MINUTE, start + MINUTE + later)


def test_an_instant_that_ran_while_the_clock_was_ahead_does_not_run_again(memory):
    start = align(memory)
    app, fleet = app_on(memory), Fleet(memory)
    plan(memory, planner_of(app), after=60)
    fleet.end(*fleet.claim())
    wrong = planner_of(app)
    plan(memory, wrong, after=180)  # it runs the fourth, and the two before are missed
    fleet.end(*fleet.claim())
    plan(memory, wrong)
    wrong.close()
    memory.clock.shift -= 180 * MICROSECONDS
    right = planner_of(app)
    for _ in range(4):
        plan(memory, right, after=60)
        for job in fleet.claim():
            fleet.end(job)
        plan(memory, right)
    once = ids(start + MINUTE, start + 2 * MINUTE + 1, start + 3 * MINUTE + 1, start + 4 * MINUTE)
    assert jobs(memory) == sorted([*once, *ids(start + 5 * MINUTE)])
    outcomes = {line.at: line.outcome for line in app.orchestrator.history("a")}
    assert outcomes[start + 4 * MINUTE] == outcomes[start + 2 * MINUTE + 1] == "completed"
    assert app.orchestrator.status_of("a").consecutive_failures == 0


def test_a_clock_that_was_set_back_for_a_moment_repeats_and_loses_nothing(memory):
    start = align(memory)
    app, fleet = app_on(memory), Fleet(memory)
    planner = planner_of(app)
    for _ in range(5):
        plan(memory, planner, after=60)
        fleet.end(*fleet.claim())
    planner.close()
    memory.clock.shift -= 240 * MICROSECONDS
    wrong = planner_of(app)
    plan(memory, wrong, after=60)  # an instant that has had its run
    wrong.close()
    memory.clock.shift += 180 * MICROSECONDS
    right = planner_of(app)
    for _ in range(2):
        plan(memory, right, after=60)
        fleet.end(*fleet.claim())
    assert jobs(memory) == ids(*(start + number * MINUTE for number in range(1, 8)))


def test_an_instant_whose_job_has_been_deleted_since_does_not_run_again(memory):
    start = align(memory)
    app, fleet = app_on(memory), Fleet(memory)
    planner = planner_of(app)
    for _ in range(5):
        plan(memory, planner, after=60)
        fleet.end(*fleet.claim())
    plan(memory, planner, after=1)
    planner.close()
    assert memory.prune(Retention(completed=0.0)) == 5
    memory.clock.shift -= 240 * MICROSECONDS
    again = planner_of(app)
    for _ in range(5):
        plan(memory, again, after=60)
    assert jobs(memory) == ids(start + 6 * MINUTE)


def test_a_tick_that_waits_for_a_time_of_the_wrong_clock_is_given_up(memory):
    """It would hold its task up for ten years: ticks of a task do not overlap."""
    start = align(memory)
    app = app_on(memory)
    wrong = planner_of(app)
    plan(memory, wrong, after=YEARS)
    wrong.close()
    memory.clock.shift -= round(YEARS * MICROSECONDS)
    right = planner_of(app)
    plan(memory, right, after=60)
    (job,) = memory.search(Filter(states=(JobState.QUEUED,))).jobs
    assert job.id in ids(start + MINUTE)


def test_nothing_that_is_remembered_stays_in_front_of_the_clock():
    app = App("memory://")
    app.orchestrator.register(nothing, name="a", every=60)
    task = app.orchestrator.register(
        nothing, name="b", every=60, probe_after=60, depends_on=[success_since("a")]
    )
    ahead = NOW + round(YEARS * MICROSECONDS)
    entry = Entry(
        cursor=ahead,
        waiting=(Waiting(ahead, ahead, ""),),
        breaker=Breaker(failures=5, opened_at=ahead, probe_at=ahead, probing=ahead),
        started_at=ahead,
        succeeded_at=ahead,
        succeeded=ahead,
        failed_at=ahead,
    )
    assert correct(task, entry, NOW) == YEARS
    assert (entry.cursor, entry.waiting, entry.breaker.probing) == (NOW, (), None)
    assert entry.started_at == entry.succeeded_at == entry.succeeded == entry.failed_at == NOW
    assert entry.breaker.probe_at is not None
    assert entry.breaker.probe_at <= NOW + 2 * 86_400 * MICROSECONDS
    assert correct(task, entry, NOW) == 0.0


def test_tasks_of_a_node_go_on_after_its_clock_was_years_ahead(tmp_path: Path):
    app = App("memory://")
    app.pool("default", workers=2)
    clock: Any = app.store.clock
    app.orchestrator.register(nothing, name="tick", every=0.2)
    app.orchestrator.register(nothing, name="listens", mode="continuous")
    told: list[object] = []

    def last(name: str) -> int:
        return app.orchestrator.status_of(name).last_success_at or 0

    with Node(app, grace=5) as node:
        node.subscribe(told.append, [ClockCorrected])
        until(lambda: last("tick") and last("listens"))
        clock.shift += round(YEARS * MICROSECONDS)
        year = app.orchestrator.now()
        until(lambda: last("tick") > year - MINUTE)
        clock.shift -= round(YEARS * MICROSECONDS)
        until(lambda: told)
        then = app.orchestrator.now()
        until(lambda: then < last("tick") < year - MINUTE)
        until(lambda: then < last("listens") < year - MINUTE)
