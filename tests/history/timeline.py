"""From lines of evidence to the story of each job: its executions with what is proven of how long they lived.

Pure. An execution is taken to have lived from its beginning to its last line and no longer: whatever is
concluded from two that overlap is then certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tests.history.entries import (
    Acknowledged,
    Attempted,
    Began,
    Breaking,
    Effect,
    Ended,
    Entry,
    Fault,
    Granted,
    How,
    Joined,
    Moment,
    Over,
    Settled,
    Slow,
)
from tests.history.faults import FOR_EVER, Faults, Injected


class Execution(msgspec.Struct):
    """One call of the function, as far as it was seen."""

    job: str
    token: int
    attempt: int
    node: str
    worker: int
    began_at: Moment
    last_at: Moment
    how: How | None = None  # unless it was broken off
    effects: int = 0
    breaking: Breaking | None = None


class Story(msgspec.Struct):
    """All that was seen of one job."""

    job: str
    attempted: bool = False
    acknowledged: bool = False
    executions: list[Execution] = []  # by token, then by time
    granted: list[Granted] = []
    settled: list[Settled] = []
    strays: list[Effect | Breaking | Ended] = []  # of executions that nobody saw begin

    def accepted(self) -> Iterator[Settled]:
        """The verdicts that the store took, by token."""
        return (line for line in sorted(self.settled, key=_by_token) if line.accepted)

    def under(self, token: int) -> Execution | None:
        """The last execution under this token; there should be no other."""
        return next((run for run in reversed(self.executions) if run.token == token), None)


class Past(msgspec.Struct):
    """Everything that was seen."""

    stories: dict[str, Story]
    faults: Faults


def past_of(entries: Iterable[Entry], aftermath: float) -> Past:
    """Sort lines by what they are about. They come in any order."""
    stories: dict[str, Story] = {}
    injected: dict[str, Injected] = {}
    labels: dict[str, str] = {}
    breaking: list[Breaking] = []
    for entry in sorted(entries, key=lambda entry: entry.at):
        match entry:
            case Fault(number, kind, at, pid, node):
                injected[number] = Injected(kind, at, FOR_EVER, pid, node)
            case Over(number, at):
                injected[number] = msgspec.structs.replace(injected[number], until=at)
            case Joined(node, incarnation):
                labels[incarnation] = node
            case Slow():
                pass  # of a node, not of a job
            case _:
                _tell(stories.setdefault(entry.job, Story(entry.job)), entry)
                if isinstance(entry, Breaking):
                    breaking.append(entry)
                elif isinstance(entry, Began):
                    labels.setdefault(entry.node, entry.node)
    for story in stories.values():
        story.executions.sort(key=_by_token)
    return Past(stories, Faults(injected.values(), breaking, labels, aftermath))


def _tell(story: Story, entry: Entry) -> None:
    match entry:
        case Attempted():
            story.attempted = True
        case Acknowledged():
            story.acknowledged = True
        case Granted():
            story.granted.append(entry)
        case Settled():
            story.settled.append(entry)
        case Began(job, token, attempt, node, worker, at):
            story.executions.append(Execution(job, token, attempt, node, worker, at, at))
        case Effect() | Breaking() | Ended():
            _go_on(story, entry)


def _go_on(story: Story, entry: Effect | Breaking | Ended) -> None:
    """A line of an execution belongs to the last one that began under its token."""
    run = next((run for run in reversed(story.executions) if run.token == entry.token), None)
    if run is None:
        story.strays.append(entry)
        return
    run.last_at = entry.at
    match entry:
        case Effect():
            run.effects += 1
        case Breaking():
            run.breaking = entry
        case Ended():
            run.how = entry.how


def _by_token(line: Execution | Settled) -> int:
    return line.token
