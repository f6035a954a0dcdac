"""Small histories of one job in which all is well, most of them in spite of a fault.

Each plays on nodes of its own, whose names begin with the job's, so that whatever happens around it to
others explains nothing here. It returns the rules it needs beyond the usual, if any.
"""

from __future__ import annotations

from collections.abc import Callable

from millpond.job import Cancelled, Crashed, JobState, Lost, Raised, Slot, TimedOut
from tests.history.entries import Breaking, How, Kind
from tests.history.reference import FAILURE, Hold, World
from tests.history.rules import Rules

Scene = Callable[[World, str], Rules | None]


def begun(world: World, job: str, node: str = "a") -> Hold:
    hold = world.claim(job, f"{job}-{node}")
    world.begin(hold)
    return hold


def completed(world: World, job: str) -> None:
    world.enqueue(job)
    world.complete(job, f"{job}-a")


def raised_snoozed_and_completed(world: World, job: str) -> None:
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a", How.RAISED))
    world.settle(world.run(job, f"{job}-b", How.SNOOZED))
    world.complete(job, f"{job}-a")


def worker_killed(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.kill(pid=hold.worker)
    world.settle(hold, Crashed(FAILURE))
    world.complete(job, f"{job}-a")


def worker_killed_before_it_wrote_a_line(world: World, job: str) -> None:
    world.enqueue(job)
    hold = world.claim(job, f"{job}-a")
    hold.worker, hold.started_at = 7, world.at // 1000
    world.kill(pid=7)
    world.settle(hold, Crashed(FAILURE))
    world.complete(job, f"{job}-a")


def worker_killed_after_the_function_returned(world: World, job: str) -> None:
    world.enqueue(job)
    hold = world.run(job, f"{job}-a")
    world.kill(pid=hold.worker)
    world.settle(hold, Crashed(FAILURE))
    world.complete(job, f"{job}-a")


def node_killed(world: World, job: str) -> None:
    world.enqueue(job)
    begun(world, job)
    world.kill(node=f"{job}-a")
    world.rescue(f"{job}-a")
    world.complete(job, f"{job}-b")


def node_killed_before_the_store_was_told_of_the_start(world: World, job: str) -> None:
    world.enqueue(job)
    world.begin(world.claim(job, f"{job}-a"), told=False)
    world.kill(node=f"{job}-a")
    world.rescue(f"{job}-a")
    world.complete(job, f"{job}-b")


def node_stopped_and_its_late_result_refused(world: World, job: str) -> None:
    world.enqueue(job)
    zombie = begun(world, job)
    number = world.fault(Kind.STOPPED, node=f"{job}-a")
    world.rescue(f"{job}-a")
    world.complete(job, f"{job}-b")
    world.over(number)
    world.effect(zombie)
    world.leave(zombie)
    assert not world.settle(zombie)


def late_refusal_before_the_end(world: World, job: str) -> None:
    world.enqueue(job)
    zombie = world.run(job, f"{job}-a")
    world.over(world.fault(Kind.CUT, node=f"{job}-a"))
    world.rescue(f"{job}-a")
    second = begun(world, job, "b")
    assert not world.settle(zombie)
    world.effect(second)
    world.leave(second)
    world.settle(second)


def poison(world: World, job: str) -> Rules:
    world.enqueue(job, max_crashes=3)
    for _ in range(3):
        world.breaks(begun(world, job))
    return Rules(ends={job: ["dead(crashed)"]})


def poison_beside_others_first(world: World, job: str) -> Rules:
    world.enqueue(job, max_crashes=2)
    hold = begun(world, job)
    world.entries.append(Breaking(job, hold.job.token, hold.worker, world.tick()))
    world.settle(hold, Crashed(FAILURE, suspects=2))
    for _ in range(2):
        world.breaks(begun(world, job))
    return Rules(ends={job: ["dead(crashed)"]})


def neighbour_of_poison(world: World, job: str) -> Rules:
    """In an async worker: another's crash is nobody's fault here."""
    poison, node = f"{job}-poison", f"{job}-a"
    world.enqueue(job)
    world.enqueue(poison, max_crashes=1)
    hold = begun(world, job)
    other = world.claim(poison, node)
    world.begin(other, worker=hold.worker)
    world.breaks(other)
    world.settle(hold, Crashed(FAILURE, suspects=2))
    world.complete(job, node)
    return Rules(ends={poison: ["dead"]})


def timed_out_and_completed(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.entries.append(Breaking(job, hold.job.token, hold.worker, world.tick(), hangs=True))
    world.pass_time(20)
    world.settle(hold, TimedOut(FAILURE))
    world.complete(job, f"{job}-a")


def failed_for_good(world: World, job: str) -> Rules:
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a", How.RAISED), Raised(FAILURE, final=True))
    return Rules(ends={job: ["dead(failed)"]})


def cancelled_while_it_ran(world: World, job: str) -> Rules:
    world.enqueue(job)
    world.settle(begun(world, job), Cancelled())
    return Rules(ends={job: ["cancelled"]})


def died_and_was_replayed(world: World, job: str) -> Rules:
    failed_for_good(world, job)
    world.change(job, state=JobState.QUEUED, reason=None, errors=0)
    world.complete(job, f"{job}-b")
    return Rules(replayed=[job])


def broken_off_when_the_grace_ended(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    number = world.fault(Kind.TERMINATED, node=f"{job}-a")
    world.settle(hold, Lost(started=True))
    world.over(number)
    world.complete(job, f"{job}-b")


def one_after_another_in_a_slot(world: World, job: str) -> None:
    for name in (job, f"{job}-2"):
        world.enqueue(name, slots=(Slot(f"{job}-slot", 1),))
        world.complete(name, f"{job}-a")


GOOD: list[Scene] = [
    completed,
    raised_snoozed_and_completed,
    worker_killed,
    worker_killed_before_it_wrote_a_line,
    worker_killed_after_the_function_returned,
    node_killed,
    node_killed_before_the_store_was_told_of_the_start,
    node_stopped_and_its_late_result_refused,
    late_refusal_before_the_end,
    poison,
    poison_beside_others_first,
    neighbour_of_poison,
    timed_out_and_completed,
    failed_for_good,
    cancelled_while_it_ran,
    died_and_was_replayed,
    broken_off_when_the_grace_ended,
    one_after_another_in_a_slot,
]
