"""The judge: a run's evidence and the records it left in the store in, every broken promise out.

Pure: it reads no clock, no file and no store. What it says is certain; where evidence is missing because
somebody was killed before writing it, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from millpond.job import Job
from tests.history import budgets, ends, executions, fencing
from tests.history.entries import Entry
from tests.history.rules import Bug, Rules, Violation
from tests.history.timeline import Past, Story, past_of

EVERY_RUN = Rules()


def judge(
    evidence: Iterable[Entry], finals: Mapping[str, Job] | Iterable[Job], rules: Rules = EVERY_RUN
) -> list[Violation]:
    """What is wrong with a run: at most one violation of each sort for each job, in order of the ids."""
    jobs = finals if isinstance(finals, Mapping) else {job.id: job for job in finals}
    past = past_of(evidence, rules.aftermath)
    found: dict[tuple[str, Bug], Violation] = {}
    for violation in _all(past, jobs, rules):
        found.setdefault((violation.job, violation.bug), violation)
    return [found[key] for key in sorted(found)]


def _all(past: Past, jobs: Mapping[str, Job], rules: Rules) -> Iterator[Violation]:
    for job in jobs.keys() | past.stories.keys():
        story, final = past.stories.get(job) or Story(job), jobs.get(job)
        found = list(_one(story, final, past, rules))
        yield from found
        if final is not None and not found:  # where more is wrong, that its end was not seen says nothing
            yield from fencing.check_end(story, final, past.faults)
    yield from executions.check_slots(past, jobs, rules)


def _one(story: Story, final: Job | None, past: Past, rules: Rules) -> Iterator[Violation]:
    yield from ends.check(story, final, rules)
    yield from fencing.check(story, final, rules)
    yield from executions.check(story, final, past.faults, rules)
    if final is not None:
        yield from budgets.check(story, final, past.faults, rules)
