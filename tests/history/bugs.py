"""Small histories of one job, each with one bug in it, and what the judge is to call it.

As in `scenes`, each plays on nodes of its own and returns the rules it needs beyond the usual, if any.
"""

from __future__ import annotations

from millpond.job import Crashed, JobState, Raised, Slot
from tests.history.entries import Breaking, Effect, Granted, How, Kind, Settled
from tests.history.reference import FAILURE, Hold, World
from tests.history.rules import Bug, Rules
from tests.history.scenes import Scene, begun, completed, failed_for_good
from tests.history.unseen import UNSEEN


def _put_back(world: World, job: str) -> None:
    """What no correct store does: a job in somebody's hands is free again."""
    world.change(job, state=JobState.QUEUED, node=None, started_at=None)


def lost_job(world: World, job: str) -> None:
    world.enqueue(job)
    del world.jobs[job]


def lost_after_it_was_claimed(world: World, job: str) -> None:
    world.enqueue(job, acknowledged=False)
    world.claim(job, f"{job}-a")
    del world.jobs[job]


def job_from_nowhere(world: World, job: str) -> None:
    completed(world, job)
    world.entries = [entry for entry in world.entries if _of(entry, job) != "Attempted"]


def still_running_at_the_end(world: World, job: str) -> None:
    world.enqueue(job)
    begun(world, job)


def still_queued_at_the_end(world: World, job: str) -> None:
    world.enqueue(job)
    world.release(world.claim(job, f"{job}-a"))


def completed_without_effect(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.leave(hold)
    world.settle(hold)


def dead_without_a_rule(world: World, job: str) -> None:
    failed_for_good(world, job)


def exit_taken_for_success(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.effect(hold)
    hold.how = How.RETURNED
    world.kill(pid=hold.worker)
    world.settle(hold)


def doubled_end_under_one_token(world: World, job: str) -> None:
    world.enqueue(job)
    hold = world.complete(job, f"{job}-a")
    now = world.tick()
    world.entries.append(Settled(job, hold.job.token, f"{job}-a", "completed", True, now, world.tick()))


def doubled_end_on_record(world: World, job: str) -> None:
    """The worker died after its result was taken, and that counted for nothing."""
    world.enqueue(job)
    first = world.run(job, f"{job}-a")
    world.settle(first, noted=False)
    world.kill(pid=first.worker)
    _put_back(world, job)
    world.settle(world.run(job, f"{job}-b"), noted=False)


def completed_and_then_dead(world: World, job: str) -> Rules:
    world.enqueue(job)
    hold = world.complete(job, f"{job}-a")
    line = world.jobs[job].attempts
    world.settle(hold, Raised(FAILURE, final=True), force=True, noted=False)
    world.change(job, attempts=line, attempt=1, errors=0, reason="result")
    return Rules(ends={job: ["dead"]})


def stale_end_accepted(world: World, job: str) -> None:
    """A node that was stopped wakes up, and the store takes its late result while another runs the job."""
    world.enqueue(job)
    zombie = world.run(job, f"{job}-a")
    number = world.fault(Kind.STOPPED, node=f"{job}-a")
    world.change(job, state=JobState.QUEUED, node=None, started_at=None, token=zombie.job.token + 1)
    second = begun(world, job, "b")
    world.effect(second)
    world.leave(second)
    world.over(number)
    world.settle(zombie, force=True)
    assert not world.settle(second)


def zombie_result_after_the_kill(world: World, job: str) -> None:
    """The node was killed, its job rescued and claimed anew; what its orphan did is taken for the result."""
    world.enqueue(job)
    orphan = begun(world, job)
    world.kill(node=f"{job}-a")
    world.rescue(f"{job}-a")
    world.claim(job, f"{job}-b")
    world.effect(orphan)
    world.leave(orphan)
    world.settle(orphan, force=True, noted=False)


def stale_retry_accepted(world: World, job: str) -> None:
    world.enqueue(job)
    zombie = world.run(job, f"{job}-a", How.RAISED)
    world.over(world.fault(Kind.CUT, node=f"{job}-a"))
    world.change(job, state=JobState.QUEUED, node=None, started_at=None, token=zombie.job.token + 1)
    second = world.claim(job, f"{job}-b")
    world.settle(zombie, force=True)
    world.begin(second)
    world.kill(node=f"{job}-b")
    world.complete(job, f"{job}-c")


def record_that_went_back(world: World, job: str) -> Rules:
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a", How.RAISED))
    begun(world, job, "b")
    world.change(job, token=1)
    world.entries = [e for e in world.entries if _of(e, job) != "Settled"]
    return Rules(drained=False)


def one_token_given_out_twice(world: World, job: str) -> None:
    completed(world, job)
    world.entries.append(Granted(job, 1, f"{job}-b", world.tick()))


def double_execution_without_a_fault(world: World, job: str) -> None:
    world.enqueue(job)
    world.run(job, f"{job}-a")
    _put_back(world, job)
    world.complete(job, f"{job}-b")


def double_execution_under_one_token(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.effect(hold)
    world.begin(hold)
    world.effect(hold)
    world.leave(hold)
    world.settle(hold)


def rerun_of_what_left_no_word(world: World, job: str) -> None:
    world.enqueue(job)
    begun(world, job)
    _put_back(world, job)
    world.complete(job, f"{job}-b")


def two_at_a_time_without_a_fault(world: World, job: str) -> None:
    world.enqueue(job)
    first = begun(world, job)
    _put_back(world, job)
    second = begun(world, job, "b")
    world.effect(first)
    world.effect(second)
    world.leave(second)
    world.settle(second)


def slot_with_too_many(world: World, job: str) -> None:
    slots = (Slot(f"{job}-slot", 1),)
    for name in (f"{job}-first", job):
        world.enqueue(name, slots=slots)
    holds = [world.claim(name, f"{job}-a") for name in (f"{job}-first", job)]
    for hold in holds:
        world.begin(hold)
    for hold in holds:
        world.effect(hold)
        world.leave(hold)
        world.settle(hold)


def life_after_the_kill(world: World, job: str) -> None:
    world.enqueue(job)
    hold = begun(world, job)
    world.kill(pid=hold.worker)
    world.pass_time(1)
    world.effect(hold)
    world.leave(hold)
    world.settle(hold)


def attempt_burnt_by_an_unstarted_job(world: World, job: str) -> None:
    world.enqueue(job)
    world.settle(world.claim(job, f"{job}-a"), Crashed(FAILURE))
    world.complete(job, f"{job}-a")


def attempt_burnt_by_a_release(world: World, job: str) -> None:
    world.enqueue(job)
    world.release(world.claim(job, f"{job}-a"))
    world.change(job, attempt=1)
    hold = world.complete(job, f"{job}-a")
    assert hold.job.attempt == 1


def crash_that_never_was(world: World, job: str) -> None:
    world.enqueue(job)
    world.settle(world.run(job, f"{job}-a", How.RAISED), Crashed(FAILURE))
    world.complete(job, f"{job}-a")


def rescued_from_a_living_node(world: World, job: str) -> None:
    world.enqueue(job)
    world.claim(job, f"{job}-a")
    world.rescue(f"{job}-a")
    world.complete(job, f"{job}-b")


def one_crash_too_many(world: World, job: str) -> Rules:
    world.enqueue(job, max_crashes=4)
    for _ in range(4):
        world.breaks(begun(world, job))
    return _with_budget(world, job, 3)


def one_crash_too_few(world: World, job: str) -> Rules:
    world.enqueue(job, max_crashes=2)
    for _ in range(2):
        world.breaks(begun(world, job))
    return _with_budget(world, job, 3)


def uncounted_crashes(world: World, job: str) -> Rules:
    world.enqueue(job, max_crashes=2)
    for _ in range(2):
        world.breaks(begun(world, job))
    hidden = _begun_by_force(world, job)
    world.entries.append(Breaking(job, hidden.job.token, hidden.worker, world.tick()))
    world.change(job, state=JobState.DEAD, node=None)
    world.entries = [e for e in world.entries if _of(e, job) not in ("Settled", "Granted")]
    return Rules(ends={job: ["dead"]})


def resurrected_after_its_end(world: World, job: str) -> None:
    world.enqueue(job)
    first = world.complete(job, f"{job}-a")
    ended = world.jobs[job]
    world.over(world.fault(Kind.KILLED, pid=first.worker))
    _put_back(world, job)
    hold = begun(world, job, "b")
    world.effect(hold)
    world.leave(hold)
    world.jobs[job] = ended


def queued_again_after_its_end(world: World, job: str) -> Rules:
    world.enqueue(job)
    world.complete(job, f"{job}-a")
    _put_back(world, job)
    return Rules(drained=False)


def effect_of_what_never_began(world: World, job: str) -> None:
    completed(world, job)
    world.entries.append(Effect(job, 9, 1, world.tick()))


def effect_of_an_older_token_only(world: World, job: str) -> None:
    world.enqueue(job)
    first = world.run(job, f"{job}-a")
    world.kill(pid=first.worker)
    world.settle(first, Crashed(FAILURE))
    second = begun(world, job)
    world.leave(second)
    world.settle(second)


def ended_under_two_tokens(world: World, job: str) -> None:
    world.enqueue(job)
    first = world.complete(job, f"{job}-a")
    lines = world.jobs[job].attempts
    world.kill(pid=first.worker)
    _put_back(world, job)
    world.complete(job, f"{job}-b")
    world.change(job, attempts=lines, attempt=1)


def claimed_again_after_its_end(world: World, job: str) -> Rules:
    world.enqueue(job)
    world.complete(job, f"{job}-a")
    _put_back(world, job)
    world.claim(job, f"{job}-b")
    return Rules(drained=False)


def went_on_after_it_returned(world: World, job: str) -> Rules:
    world.enqueue(job)
    first = world.run(job, f"{job}-a")
    world.settle(first, noted=False)
    world.kill(pid=first.worker)
    _put_back(world, job)
    world.settle(world.run(job, f"{job}-b", How.RAISED), Raised(FAILURE, final=True), noted=False)
    return Rules(ends={job: ["dead"]})


def completed_without_a_line(world: World, job: str) -> None:
    completed(world, job)
    world.change(job, attempts=(), attempt=0)


def errors_that_never_were(world: World, job: str) -> None:
    completed(world, job)
    world.change(job, errors=2)


def failures_that_were_not_counted(world: World, job: str) -> None:
    world.enqueue(job)
    for _ in range(6):
        world.settle(world.run(job, f"{job}-a", How.RAISED))
        world.change(job, errors=0, attempt=0, attempts=())
    world.complete(job, f"{job}-a")


def _with_budget(world: World, job: str, most: int) -> Rules:
    options = world.jobs[job].options
    world.change(job, options=type(options)(max_crashes=most))
    return Rules(ends={job: ["dead"]})


def _begun_by_force(world: World, job: str) -> Hold:
    hold = world.claim(job, f"{job}-a", force=True)
    world.begin(hold)
    return hold


def _of(entry: object, job: str) -> str:
    return type(entry).__name__ if getattr(entry, "job", None) == job else ""


BUGS: dict[Scene, Bug] = {
    lost_job: Bug.LOST,
    lost_after_it_was_claimed: Bug.LOST,
    job_from_nowhere: Bug.INVENTED,
    still_running_at_the_end: Bug.UNFINISHED,
    still_queued_at_the_end: Bug.UNFINISHED,
    completed_without_effect: Bug.NO_EFFECT,
    dead_without_a_rule: Bug.WRONG_END,
    exit_taken_for_success: Bug.FALSE_END,
    doubled_end_under_one_token: Bug.DOUBLED_END,
    doubled_end_on_record: Bug.DOUBLED_END,
    completed_and_then_dead: Bug.DOUBLED_END,
    stale_end_accepted: Bug.STALE,
    zombie_result_after_the_kill: Bug.STALE,
    stale_retry_accepted: Bug.STALE,
    record_that_went_back: Bug.STALE,
    one_token_given_out_twice: Bug.DOUBLE_CLAIM,
    double_execution_without_a_fault: Bug.RERUN,
    double_execution_under_one_token: Bug.RERUN,
    rerun_of_what_left_no_word: Bug.RERUN,
    two_at_a_time_without_a_fault: Bug.OVERLAP,
    slot_with_too_many: Bug.OVERFULL,
    life_after_the_kill: Bug.AFTERLIFE,
    attempt_burnt_by_an_unstarted_job: Bug.BURNT,
    attempt_burnt_by_a_release: Bug.BURNT,
    crash_that_never_was: Bug.BURNT,
    rescued_from_a_living_node: Bug.RESCUED_ALIVE,
    one_crash_too_many: Bug.BUDGET,
    one_crash_too_few: Bug.BUDGET,
    uncounted_crashes: Bug.BUDGET,
    resurrected_after_its_end: Bug.RESURRECTED,
    queued_again_after_its_end: Bug.RESURRECTED,
    effect_of_what_never_began: Bug.INVENTED,
    effect_of_an_older_token_only: Bug.STALE,
    ended_under_two_tokens: Bug.DOUBLED_END,
    claimed_again_after_its_end: Bug.RESURRECTED,
    went_on_after_it_returned: Bug.RESURRECTED,
    completed_without_a_line: Bug.FALSE_END,
    errors_that_never_were: Bug.BURNT,
    failures_that_were_not_counted: Bug.BUDGET,
    **dict.fromkeys(UNSEEN, Bug.UNSEEN),
}
