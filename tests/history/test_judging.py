"""The judge: correct histories are clean, and each planted bug is called by its name, on that job alone."""

from __future__ import annotations

import msgspec
import pytest

from millpond.job import Crashed, JobState, Lost, Released, Slot
from tests.history.bugs import BUGS
from tests.history.entries import Effect, How, Kind
from tests.history.reference import FAILURE, World
from tests.history.rules import Bug, Rules
from tests.history.scenes import GOOD
from tests.history.unseen import EXPLAINED


@pytest.mark.parametrize("scene", GOOD + EXPLAINED, ids=lambda scene: scene.__name__)
def test_a_correct_history_has_no_violation(scene):
    world = World()
    rules = scene(world, "j") or Rules()
    assert world.judged(rules) == []


@pytest.mark.parametrize(("scene", "bug"), BUGS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_bug_is_called_by_its_name(scene, bug):
    world = World()
    world.enqueue("other")
    world.complete("other", "quiet")
    rules = scene(world, "victim") or Rules()
    assert {(found.bug, found.job) for found in world.judged(rules)} == {(bug, "victim")}
    assert all("job victim" in str(found) for found in world.judged(rules))


def test_an_empty_history_is_clean():
    assert World().judged() == []


def test_evidence_may_come_in_any_order():
    world = World()
    world.enqueue("j")
    world.complete("j", "n1")
    world.entries.reverse()
    assert world.judged() == []


def test_a_run_that_goes_on_may_have_unfinished_jobs():
    world = World()
    world.enqueue("j")
    assert [found.bug for found in world.judged()] == [Bug.UNFINISHED]
    assert world.judged(Rules(drained=False)) == []


def test_a_job_whose_enqueueing_was_never_acknowledged_may_be_there_or_not():
    world = World()
    world.enqueue("j", acknowledged=False)
    world.complete("j", "n1")
    assert world.judged() == []
    gone = World()
    gone.enqueue("j", acknowledged=False)
    del gone.jobs["j"]
    assert gone.judged() == []


def test_a_job_may_only_have_the_ends_that_are_declared_for_it():
    world = World()
    world.enqueue("j")
    world.complete("j", "n1")
    assert [found.bug for found in world.judged(Rules(ends={"j": ["dead(crashed)"]}))] == [Bug.WRONG_END]


def test_an_end_that_any_job_may_have_is_declared_once():
    world = World()
    world.enqueue("j")
    world.change("j", state=JobState.CANCELLED, reason="expired")
    assert [found.bug for found in world.judged()] == [Bug.WRONG_END]
    assert world.judged(Rules(also=["cancelled(expired)"])) == []
    assert world.judged(Rules(also=["cancelled"])) == []


def test_a_fault_on_another_node_explains_nothing():
    world = World()
    world.enqueue("j")
    world.run("j", "n1")
    world.kill(node="n2")
    world.change("j", state=JobState.QUEUED, node=None)
    world.complete("j", "n3")
    assert [found.bug for found in world.judged()] == [Bug.RERUN]


def test_a_fault_that_came_too_late_explains_nothing():
    world = World()
    world.enqueue("j")
    first = world.run("j", "n1")
    world.change("j", state=JobState.QUEUED, node=None)
    world.complete("j", "n2")
    world.kill(pid=first.worker)
    assert [found.bug for found in world.judged()] == [Bug.RERUN]


def test_a_fault_that_was_long_over_explains_nothing():
    world = World()
    world.kill(node="n1")
    world.pass_time(60)
    world.enqueue("j")
    world.run("j", "n1")
    world.change("j", state=JobState.QUEUED, node=None)
    world.complete("j", "n2")
    assert [found.bug for found in world.judged()] == [Bug.RERUN]
    assert world.judged(Rules(aftermath=100)) == []


def test_the_death_of_a_worker_never_explains_two_executions_at_a_time():
    world = World()
    world.enqueue("j")
    hold = world.claim("j", "n1")
    world.begin(hold)
    world.kill(pid=hold.worker)
    world.settle(hold, Crashed(FAILURE))
    world.complete("j", "n1")
    world.entries.append(Effect("j", hold.job.token, 1, world.tick()))
    assert {found.bug for found in world.judged()} == {Bug.OVERLAP}


def test_a_node_that_was_asked_to_go_must_not_forget_what_returned():
    world = World()
    world.enqueue("j")
    hold = world.run("j", "n1")
    world.over(world.fault(Kind.TERMINATED, node="n1"))
    world.settle(hold, Lost(started=True))
    world.complete("j", "n2")
    assert [found.bug for found in world.judged()] == [Bug.RERUN]


def test_a_store_that_was_away_excuses_only_jobs_that_hold_slots():
    for slots, bugs in (((Slot("s", 1),), []), ((), [Bug.BURNT, Bug.RERUN])):
        world = World()
        world.enqueue("j", slots=slots)
        hold = world.claim("j", "n1")
        world.begin(hold)
        number = world.fault(Kind.STORE)
        world.over(number)
        world.settle(hold, Crashed(FAILURE))
        world.complete("j", "n1")
        assert [found.bug for found in world.judged()] == bugs


def test_only_a_frozen_node_excuses_a_slot_that_is_too_full():
    for kind, bugs in ((Kind.FROZEN, []), (Kind.STOPPED, [Bug.OVERFULL]), (Kind.KILLED, [Bug.OVERFULL])):
        world = World()
        world.enqueue("j", slots=(Slot("s", 1),))
        zombie = world.claim("j", "n1")
        world.begin(zombie)
        number = world.fault(kind, node="n1")
        world.rescue("n1")
        second = world.claim("j", "n2")
        world.begin(second)
        world.over(number)
        world.effect(zombie)
        world.effect(second)
        world.leave(second)
        world.settle(second)
        assert [found.bug for found in world.judged()] == bugs


def test_the_room_of_a_slot_can_be_declared():
    world = World()
    for job in ("a", "b"):
        world.enqueue(job, slots=(Slot("s", 1),))
    holds = [world.claim(job, "n1") for job in ("a", "b")]
    for hold in holds:
        world.begin(hold)
    for hold in holds:
        world.effect(hold)
        world.leave(hold)
        world.settle(hold)
    assert [(found.bug, found.job) for found in world.judged()] == [(Bug.OVERFULL, "b")]
    assert world.judged(Rules(capacity={"s": 2})) == []


def test_what_was_given_back_unstarted_costs_nothing():
    world = World()
    world.enqueue("j")
    for _ in range(5):
        world.settle(world.claim("j", "n1"), Released())
    world.complete("j", "n1")
    assert world.jobs["j"].attempt == 1
    assert world.judged() == []


def test_a_late_answer_to_a_settlement_is_not_a_stale_write():
    world = World()
    world.enqueue("j")
    hold = world.run("j", "n1", How.RAISED)
    world.settle(hold)
    late = world.entries.pop()
    world.complete("j", "n2")
    world.entries.append(msgspec.structs.replace(late, at=world.tick()))
    assert world.judged() == []
