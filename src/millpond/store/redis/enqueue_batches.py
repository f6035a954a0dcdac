"""How very many jobs are stored in Redis: in several scripts, so that none holds the server up for seconds.

While a script runs, the server serves nobody else. What fits into one step is stored all or none. Of more
than that, a failure in between leaves the first steps stored and says so; no child comes before its parent.
"""

from __future__ import annotations

from collections.abc import Sequence

from millpond.errors import OutcomeUnknown
from millpond.job import NewJob

JOBS = 20_000  # in one step: about half a second
BYTES = 16 * 1024 * 1024  # of payload in one step


def in_steps(jobs: Sequence[NewJob]) -> list[Sequence[NewJob]]:
    """What each script stores. A batch in which a child stands before its parent stays whole."""
    if len(jobs) == 1:
        return [jobs]
    if (len(jobs) <= JOBS and sum(len(job.payload) for job in jobs) <= BYTES) or _has_early_child(jobs):
        return [jobs]
    steps: list[Sequence[NewJob]] = []
    first = size = 0
    for place, job in enumerate(jobs):
        if place > first and (place - first == JOBS or size + len(job.payload) > BYTES):
            steps.append(jobs[first:place])
            first, size = place, 0
        size += len(job.payload)
    return [*steps, jobs[first:]]


def _has_early_child(jobs: Sequence[NewJob]) -> bool:
    last = {job.id: place for place, job in enumerate(jobs)}
    return any(last.get(parent, -1) > place for place, job in enumerate(jobs) for parent in job.depends_on)


def parents_outside(jobs: Sequence[NewJob]) -> list[str]:
    """Who must be in the store before."""
    inside = {job.id for job in jobs}
    return sorted({parent for job in jobs for parent in job.depends_on} - inside)


def half_stored(stored: int, number: int, error: Exception) -> OutcomeUnknown:
    """A later step has failed: repeated with the same ids, only what is missing is stored."""
    return OutcomeUnknown(
        f"{error}; of {number} jobs, the first {stored} are stored: repeat with the same ids, or ask for them"
    )
