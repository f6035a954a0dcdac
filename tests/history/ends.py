"""Whether a job came to its end: none lost, none invented, none left over, none ended for nothing.

Pure, as all of the checker.
"""

from __future__ import annotations

from collections.abc import Iterator

from millpond.job import ENDS, Job, JobState
from tests.history.entries import How
from tests.history.rules import Bug, Rules, Violation, end_of
from tests.history.timeline import Story


def check(story: Story, final: Job | None, rules: Rules) -> Iterator[Violation]:
    """The end of one job."""
    job = story.job
    if not story.attempted and (final is not None or story.executions or story.granted):
        yield Violation(Bug.INVENTED, job, "exists, though nobody ever tried to enqueue it")
    if story.strays:
        token = story.strays[0].token
        yield Violation(Bug.INVENTED, job, f"went on under token {token}, under which it never began")
    if final is None:
        yield from _gone(story)
    elif final.state not in ENDS:
        if rules.drained:
            yield Violation(Bug.UNFINISHED, job, f"is still {final.state} at the end of a drained run")
    else:
        if not rules.allow(final):
            yield Violation(Bug.WRONG_END, job, f"ended {end_of(final)}, which no rule allows it")
        if final.state is JobState.COMPLETED:
            yield from _completed(story, final)


def _gone(story: Story) -> Iterator[Violation]:
    if story.acknowledged:
        yield Violation(Bug.LOST, story.job, "was acknowledged, and the store does not know it any more")
    elif story.executions or story.granted:
        yield Violation(Bug.LOST, story.job, "was given to a node, and the store does not know it any more")


def _completed(story: Story, final: Job) -> Iterator[Violation]:
    """A result comes from the function that returned under the last token, and from no other."""
    winner = story.under(final.token)
    if not any(run.effects for run in story.executions):
        yield Violation(Bug.NO_EFFECT, story.job, "is recorded as completed, and never had an effect")
    elif winner is None or not winner.effects:
        others = ", ".join(str(run.token) for run in story.executions if run.effects)
        yield Violation(
            Bug.STALE,
            story.job,
            f"completed under token {final.token}, which had no effect; what ran under {others} was stale",
        )
    elif winner.how is not How.RETURNED:
        left = "never left" if winner.how is None else f"left as {winner.how}"
        yield Violation(
            Bug.FALSE_END, story.job, f"completed under token {final.token}, whose function {left}"
        )
