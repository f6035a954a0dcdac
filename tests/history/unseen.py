"""Small histories of one job whose end is on record, though no node saw the store accept it.

What `bugs` is for the rest of the promises; beside them, those in which the missing line is explained.
"""

from __future__ import annotations

import msgspec

from millpond.job import JobState
from tests.history.entries import How, Kind, Settled
from tests.history.reference import World
from tests.history.rules import Rules
from tests.history.scenes import Scene, cancelled_while_it_ran, completed, failed_for_good


def end_that_nobody_told(world: World, job: str) -> None:
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a"), noted=False)


def end_that_was_refused(world: World, job: str) -> None:
    completed(world, job)
    _otherwise(world, job, accepted=False)


def end_that_was_told_otherwise(world: World, job: str) -> None:
    """Its node gave it back, and the record has it completed."""
    completed(world, job)
    _otherwise(world, job, state="queued")


def death_that_nobody_told(world: World, job: str) -> Rules:
    rules = failed_for_good(world, job)
    _forget(world, job)
    return rules


def cancellation_that_nobody_told(world: World, job: str) -> Rules:
    rules = cancelled_while_it_ran(world, job)
    _forget(world, job)
    return rules


def stopped_node_that_never_noted_it(world: World, job: str) -> None:
    """It woke up: whatever it had heard, it would have noted."""
    completed(world, job)
    _forget(world, job)
    world.over(world.fault(Kind.STOPPED, node=f"{job}-a"))


def node_killed_before_it_noted_the_answer(world: World, job: str) -> None:
    completed(world, job)
    _forget(world, job)
    world.kill(node=f"{job}-a")


def answer_that_never_came(world: World, job: str) -> None:
    completed(world, job)
    _otherwise(world, job, accepted=None)


def lost_once_too_often(world: World, job: str) -> Rules:
    """The store ends it, in a rescue."""
    world.enqueue(job)
    world.change(job, options=type(world.jobs[job].options)(max_lost=1))
    world.begin(world.claim(job, f"{job}-a"))
    world.over(world.fault(Kind.STOPPED, node=f"{job}-a"))
    world.rescue(f"{job}-a")
    return Rules(ends={job: ["dead(lost)"]})


def cancelled_before_it_ran_again(world: World, job: str) -> Rules:
    """The store ends it, while it waits."""
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a", How.RAISED))
    world.change(job, state=JobState.CANCELLED, reason="cancelled")
    return Rules(ends={job: ["cancelled"]})


def _forget(world: World, job: str) -> None:
    world.entries = [line for line in world.entries if not _is_settlement(line, job)]


def _otherwise(world: World, job: str, **facts: object) -> None:
    world.entries = [
        msgspec.structs.replace(line, **facts) if _is_settlement(line, job) else line
        for line in world.entries
    ]


def _is_settlement(line: object, job: str) -> bool:
    return isinstance(line, Settled) and line.job == job


UNSEEN: list[Scene] = [
    end_that_nobody_told,
    end_that_was_refused,
    end_that_was_told_otherwise,
    death_that_nobody_told,
    cancellation_that_nobody_told,
    stopped_node_that_never_noted_it,
]
EXPLAINED: list[Scene] = [
    node_killed_before_it_noted_the_answer,
    answer_that_never_came,
    lost_once_too_often,
    cancelled_before_it_ran_again,
]
