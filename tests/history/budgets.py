"""Whether a job's own history adds up: what it was charged for happened, and its budgets were kept.

Pure. Attempts are charged in order, one for each execution that began; a crash or a loss has something that
explains it; a job dies of crashes after exactly as many as it may have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from millpond.job import Attempt, Job, JobState
from tests.history.entries import How
from tests.history.faults import FOR_EVER, Faults
from tests.history.rules import Bug, Rules, Violation, end_of
from tests.history.timeline import Execution, Story

SUDDEN = frozenset({"crashed", "lost", "timed out"})  # may strike before the function wrote that it began
UNCHARGED = frozenset({"snoozed"})


def check(story: Story, final: Job, faults: Faults, rules: Rules) -> Iterator[Violation]:
    """The attempts that a job has on record."""
    disorder = list(_order(final))
    yield from disorder
    if final.id not in rules.replayed:
        yield from _after_the_end(final)
        if not disorder:  # which leaves no counter right
            yield from _counters(final)
        yield from _limits(final)
        yield from _seen(story, final, faults)
    for line in final.attempts:
        given_up = bool(final.slots and faults.store)  # a slot is let go while the store is away
        if line.ended == "lost" and not given_up and not faults.may_have_felled(line.node):
            yield Violation(
                Bug.RESCUED_ALIVE, final.id, f"was taken from {line.node}, to which nothing had happened"
            )
        if _is_charged(line):
            yield from _charge(line, story, final, faults)


def _is_charged(line: Attempt) -> bool:
    return line.ended not in UNCHARGED and not (line.ended == "lost" and line.started_at is None)


def _order(final: Job) -> Iterator[Violation]:
    numbers = [line.number for line in final.attempts if _is_charged(line)]
    twice = [number for number, times in Counter(numbers).items() if times > 1]
    if twice:
        yield Violation(Bug.STALE, final.id, f"has more than one attempt {twice[0]} on record")
    elif numbers != list(range(1, final.attempt + 1)):
        yield Violation(
            Bug.BURNT, final.id, f"was charged {final.attempt} attempts, and has {numbers} on record"
        )


def _after_the_end(final: Job) -> Iterator[Violation]:
    ended = [line.ended for line in final.attempts]
    if ended.count("returned") > 1:
        yield Violation(Bug.DOUBLED_END, final.id, f"returned {ended.count('returned')} times on record")
    elif "returned" in ended[:-1]:
        yield Violation(Bug.RESURRECTED, final.id, f"returned, and after that it {ended[-1]}")
    elif final.state is JobState.COMPLETED and ended[-1:] != ["returned"]:
        yield Violation(Bug.FALSE_END, final.id, f"completed, and has {ended} on record")


def _counters(final: Job) -> Iterator[Violation]:
    times = Counter(line.ended for line in final.attempts if _is_charged(line))
    errors = times["raised"] + times["timed out"]
    if final.errors != errors or final.lost != times["lost"] or final.crashes > times["crashed"]:
        yield Violation(
            Bug.BURNT,
            final.id,
            f"was charged {final.errors} errors, {final.crashes} crashes and {final.lost} losses, and has "
            f"{errors}, {times['crashed']} and {times['lost']} on record",
        )


def _limits(final: Job) -> Iterator[Violation]:
    """Used up is dead, and dead of crashes or losses is used up."""
    options = final.options
    budgets = (
        ("crashed", final.crashes, options.max_crashes, ("crashed",)),
        ("lost", final.lost, options.max_lost, ("lost",)),
        ("failed", final.errors, options.max_attempts, ("failed", "timeout")),
    )
    for what, used, budget, reasons in budgets:
        most = max(1, budget)  # the first one is always one too many
        dead = final.state is JobState.DEAD and final.reason in reasons
        early = dead and used < most and what != "failed"  # a failure may be final by itself
        if used > most or (used == most and not dead) or early:
            yield Violation(Bug.BUDGET, final.id, f"is {end_of(final)}, having {what} {used} of {most} times")


def _seen(story: Story, final: Job, faults: Faults) -> Iterator[Violation]:
    """The same as seen from outside, less what it was not charged for or could not be."""
    runs = [run for run in story.executions if not faults.may_have_left_running(run, FOR_EVER)]
    crashes = sum(1 for run in runs if run.breaking is not None and not run.breaking.hangs)
    uncharged = sum(1 for line in final.attempts if line.ended == "crashed") - final.crashes
    if crashes - max(0, uncharged) > max(1, final.options.max_crashes):
        yield Violation(
            Bug.BUDGET,
            final.id,
            f"ended its own worker {crashes} times, and may {final.options.max_crashes} times",
        )
    raised = [run for run in runs if run.how is How.RAISED and not faults.may_have_forgotten(run, FOR_EVER)]
    if len(raised) > max(1, final.options.max_attempts):
        yield Violation(
            Bug.BUDGET, final.id, f"raised {len(raised)} times, and may {final.options.max_attempts} times"
        )


def _charge(line: Attempt, story: Story, final: Job, faults: Faults) -> Iterator[Violation]:
    """A charged attempt began, and a crash has a cause."""
    runs = [run for run in story.executions if run.attempt == line.number]
    if not runs:
        struck = line.ended in SUDDEN and faults.may_have_hit(line.worker, line.node)
        if not struck and line.ended != "cancelled":
            yield Violation(
                Bug.BURNT, final.id, f"was charged attempt {line.number} ({line.ended}), which never began"
            )
    elif line.ended == "crashed" and not any(_may_have_crashed(run, faults, final) for run in runs):
        yield Violation(
            Bug.BURNT, final.id, f"was charged attempt {line.number} as crashed, and nothing explains that"
        )


def _may_have_crashed(run: Execution, faults: Faults, final: Job) -> bool:
    if run.how is None:
        return faults.may_have_broken_off(run, FOR_EVER, slots=bool(final.slots))
    return faults.may_have_forgotten(run, FOR_EVER)
