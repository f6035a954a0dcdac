"""Random histories: a correct one is clean however it went, and one bug in it is found, named and located."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.job import JobState
from tests.history.bugs import BUGS
from tests.history.entries import Began, Effect, Granted, Settled
from tests.history.judge import judge
from tests.history.reference import World
from tests.history.rules import Bug, Rules, Violation
from tests.history.scenes import GOOD
from tests.history.unseen import EXPLAINED
from tests.history.wander import RULES, walk

calm = settings(deadline=None, max_examples=30)
chance = st.integers(0, 2**32).map(Random)
long_enough = st.integers(0, 120)


def with_both(ours: Rules | None) -> Rules:
    return msgspec.structs.replace(ours or Rules(), also=RULES.also)


def named(found: list[Violation]) -> set[tuple[Bug, str]]:
    return {(violation.bug, violation.job) for violation in found}


@settings(deadline=None, max_examples=200)
@given(random=chance, steps=st.integers(0, 300))
def test_a_correct_history_is_clean_however_it_went(random: Random, steps: int):
    world = World()
    walk(world, random, steps)
    assert world.judged(RULES) == []


@pytest.mark.parametrize("scene", GOOD + EXPLAINED, ids=lambda scene: scene.__name__)
@settings(deadline=None, max_examples=10)
@given(random=chance, steps=long_enough)
def test_what_is_correct_alone_is_correct_among_others(scene, random: Random, steps: int):
    world = World()
    rules: list[Rules | None] = []
    walk(world, random, steps, lambda: rules.append(scene(world, "victim")))
    assert world.judged(with_both(rules[0])) == []


@pytest.mark.parametrize(("scene", "bug"), BUGS.items(), ids=lambda value: getattr(value, "__name__", value))
@calm
@given(random=chance, steps=long_enough)
def test_one_bug_among_many_jobs_is_named_and_located(scene, bug: Bug, random: Random, steps: int):
    world = World()
    rules: list[Rules | None] = []
    walk(world, random, steps, lambda: rules.append(scene(world, "victim")))
    assert named(world.judged(with_both(rules[0]))) == {(bug, "victim")}


# --- a random history, spoilt afterwards ------------------------------------------------------------------
def walked(random: Random) -> World:
    """A history in which at least one job completed."""
    world = World()

    def one_for_sure() -> None:
        world.enqueue("sure")
        world.complete("sure", "sure-node")

    walk(world, random, 80, one_for_sure)
    return world


def completed_one(world: World, random: Random) -> str:
    return random.choice([job for job, final in world.jobs.items() if final.state is JobState.COMPLETED])


@calm
@given(random=chance)
def test_any_job_that_vanishes_is_missed(random: Random):
    world = walked(random)
    victim = completed_one(world, random)
    del world.jobs[victim]
    assert named(world.judged(RULES)) == {(Bug.LOST, victim)}


@calm
@given(random=chance)
def test_any_completed_job_without_its_effects_is_noticed(random: Random):
    world = walked(random)
    victim = completed_one(world, random)
    kept = [entry for entry in world.entries if not (isinstance(entry, Effect) and entry.job == victim)]
    assert named(judge(kept, world.jobs, RULES)) == {(Bug.NO_EFFECT, victim)}


@calm
@given(random=chance)
def test_any_end_whose_settlement_left_no_line_is_noticed(random: Random):
    world = walked(random)
    kept = [entry for entry in world.entries if not (isinstance(entry, Settled) and entry.job == "sure")]
    assert named(judge(kept, world.jobs, RULES)) == {(Bug.UNSEEN, "sure")}


@calm
@given(random=chance)
def test_any_job_set_back_after_its_end_is_noticed(random: Random):
    world = walked(random)
    victim = completed_one(world, random)
    world.change(victim, state=JobState.QUEUED)
    assert named(world.judged(RULES)) == {(Bug.UNFINISHED, victim), (Bug.RESURRECTED, victim)}


@calm
@given(random=chance)
def test_any_refusal_that_was_an_acceptance_is_noticed(random: Random):
    """Every late word of a zombie, had it been accepted, is a violation on that job."""
    world = walked(random)
    for number, entry in enumerate(world.entries):
        if isinstance(entry, Settled) and entry.accepted is False and _overtaken(world, entry):
            spoilt = list(world.entries)
            spoilt[number] = msgspec.structs.replace(entry, accepted=True)
            found = named(judge(spoilt, world.jobs, RULES))
            assert {job for _, job in found} == {entry.job}
            assert {bug for bug, _ in found} <= {Bug.STALE, Bug.DOUBLED_END}


def _overtaken(world: World, line: Settled) -> bool:
    """Was a later token given out before? Where none was, the job had merely been put back."""
    return any(
        isinstance(entry, Granted | Began)
        and entry.job == line.job
        and entry.token > line.token
        and entry.at < line.asked_at
        for entry in world.entries
    )


@calm
@given(random=chance)
def test_without_its_faults_a_history_with_reruns_is_not_clean(random: Random):
    """A clean history in which somebody was harmed is clean only because of the harm."""
    world = walked(random)
    world.enqueue("harmed")
    hold = world.run("harmed", "harmed-a")
    world.kill(pid=hold.worker)
    world.change("harmed", state=JobState.QUEUED, node=None, started_at=None)
    world.complete("harmed", "harmed-b")
    assert world.judged(RULES) == []
    tame = [entry for entry in world.entries if type(entry).__name__ not in ("Fault", "Over")]
    assert (Bug.RERUN, "harmed") in named(judge(tame, world.jobs, RULES))
