"""Whether every write was fenced: one end, which a node saw accepted; none under a token that had been
overtaken, none after the end.

Pure. A token is known to be overtaken from the moment a later one was seen; a verdict sent after that moment
and accepted is stale, whenever its answer came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from millpond.job import ENDS, Job, JobState
from tests.history.entries import Moment, Settled
from tests.history.faults import Faults
from tests.history.rules import Bug, Rules, Violation
from tests.history.timeline import Story


def check(story: Story, final: Job | None, rules: Rules) -> Iterator[Violation]:
    """The writes about one job."""
    job, accepted = story.job, list(story.accepted())
    yield from _claims(story)
    for token, times in Counter(line.token for line in accepted).items():
        if times > 1:
            yield Violation(Bug.DOUBLED_END, job, f"was settled {times} times under token {token}")
    stale = list(_stale(story, accepted))
    yield from stale
    if story.job in rules.replayed:
        return
    ends = [line for line in accepted if line.state in ENDS]
    if len({line.token for line in ends}) > 1:
        tokens = " and ".join(str(line.token) for line in ends)
        yield Violation(Bug.DOUBLED_END, job, f"ended more than once: under tokens {tokens}")
    elif ends and not stale:
        yield from _after_the_end(story, ends[0], final)
    if final is not None:
        yield from _beyond_the_record(story, final)


def _claims(story: Story) -> Iterator[Violation]:
    for token, times in Counter(line.token for line in story.granted).items():
        if times > 1:
            nodes = " and ".join(line.node for line in story.granted if line.token == token)
            yield Violation(
                Bug.DOUBLE_CLAIM, story.job, f"was given out twice under token {token}: to {nodes}"
            )


def _seen(story: Story) -> list[tuple[int, Moment]]:
    """When each token was first known to be given out."""
    began = [(run.token, run.began_at) for run in story.executions]
    return began + [(line.token, line.at) for line in story.granted]


def _stale(story: Story, accepted: list[Settled]) -> Iterator[Violation]:
    for line in accepted:
        later = [token for token, at in _seen(story) if token > line.token and at < line.asked_at]
        if later:
            yield Violation(
                Bug.STALE,
                story.job,
                f"was settled as {line.state} under token {line.token} by {line.node}, and it was accepted, "
                f"though token {max(later)} had been given out",
            )


def _after_the_end(story: Story, end: Settled, final: Job | None) -> Iterator[Violation]:
    later = [token for token, _ in _seen(story) if token > end.token]
    if final is not None and final.token > end.token:
        later.append(final.token)
    ended = f"ended {end.state} under token {end.token}"
    if later:
        yield Violation(Bug.RESURRECTED, story.job, f"{ended} and went on under token {max(later)}")
    elif final is not None and final.state not in ENDS:
        yield Violation(Bug.RESURRECTED, story.job, f"{ended} and is {final.state} now")
    elif final is not None and final.state != end.state:
        yield Violation(Bug.DOUBLED_END, story.job, f"{ended} and is {final.state} now")


def _beyond_the_record(story: Story, final: Job) -> Iterator[Violation]:
    """Nothing may have run under a token that the record has not come to."""
    highest = max((token for token, _ in _seen(story)), default=0)
    if highest > final.token:
        yield Violation(
            Bug.RESURRECTED if final.state in ENDS else Bug.STALE,
            story.job,
            f"had token {highest}, and its record is back at {final.token}",
        )


def check_end(story: Story, final: Job, faults: Faults) -> Iterator[Violation]:
    """The end on record is one that a node told the store and was not refused. Who was killed may have seen
    the answer and left no line of it."""
    node = _settled_by(final)
    if node is None or faults.may_have_silenced(node):
        return
    told = [line for line in story.settled if (line.token, line.state) == (final.token, str(final.state))]
    if all(line.accepted is False for line in told):
        what = f"is {final.state} under token {final.token}"
        why = "to which the store had said no" if told else "which nobody saw the store accept"
        yield Violation(Bug.UNSEEN, story.job, f"{what} by {node}, {why}")


def _settled_by(final: Job) -> str | None:
    """The node that ended it; None where the store may have done so by itself: cancelled or expired while it
    waited, or lost with its node once too often."""
    if not final.attempts:
        return None
    last = final.attempts[-1]
    is_told = {
        JobState.COMPLETED: True,
        JobState.DEAD: last.ended != "lost",
        JobState.CANCELLED: last.ended == "cancelled",
    }
    return last.node if is_told.get(final.state) else None
