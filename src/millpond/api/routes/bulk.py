"""Changes to many jobs at once: found page by page, changed by their ids, with a bound on each call.

A call handles some hundred jobs and says where to go on, so that no change takes longer than a request may,
and whoever asked for it can show how far it is. No ids would mean every job to a store: that is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request

from millpond.api.context import Desk
from millpond.api.job_documents import job_row
from millpond.api.job_search import Walk, Wanted, wanted
from millpond.api.json_route import Answer
from millpond.api.problems import Problem
from millpond.api.schemas.requests import Selection
from millpond.api.security.audit import note
from millpond.job import ENDS, JobState
from millpond.store.protocol import Filter, Retention, Store

STATES: dict[str, tuple[JobState, ...]] = {
    "cancel": tuple(state for state in JobState if state not in ENDS),
    "replay": (JobState.DEAD,),
    "discard": tuple(state for state in JobState if state in ENDS),
}
VERBS: dict[str, Callable[[Store, Filter], int]] = {
    "cancel": lambda store, chosen: store.cancel(chosen),
    "replay": lambda store, chosen: store.replay(chosen),
    "discard": lambda store, chosen: store.prune(Retention(), chosen),
}
COUNTED = 10_000  # jobs that a dry run counts
SCANNED = 10_000  # jobs that one call looks at
SAMPLE = 5


async def change(
    desk: Desk, request: Request, action: str, said: Selection, states: tuple[JobState, ...] = ()
) -> Answer:
    """Do it to what was chosen, or only say what it would be done to."""
    asked = _asked(said, STATES[action], states)
    facts = said.model_dump(mode="json", exclude_none=True, exclude={"ids"})
    note(request.scope, action, **{**facts, "ids": len(said.ids or ())})

    def do() -> dict[str, Any]:
        walk = Walk(desk.store, asked, said.cursor)
        ids, sample = _collect(walk, COUNTED if said.dry_run else said.limit)
        changed = 0
        if ids and not said.dry_run:
            changed = VERBS[action](desk.store, Filter(ids=ids, states=asked.states))
        return {
            "action": action,
            "dry_run": said.dry_run,
            "matched": len(ids),
            "changed": changed,
            "scanned": walk.scanned,
            "cursor": walk.cursor,
            "sample": sample,
        }

    return await desk.answer(do)


def _asked(said: Selection, possible: tuple[JobState, ...], only: tuple[JobState, ...]) -> Wanted:
    if (said.ids is None) == (said.filter is None):
        raise Problem("invalid", "say which jobs: `ids` or `filter`, one of the two")
    if said.ids is not None:
        return wanted(ids=said.ids, states=only or possible)
    assert said.filter is not None
    given = said.filter.model_dump(exclude={"state"})
    states = tuple(state for state in said.filter.state or possible if state in possible)
    if not states:
        raise Problem("invalid", f"this can be done only to jobs that are {', '.join(possible)}")
    asked = wanted(**given, states=tuple(state for state in states if not only or state in only))
    if asked.is_everything and not said.all:
        raise Problem("invalid", 'the filter is empty: say "all": true if every one of them is meant')
    return asked


def _collect(walk: Walk, most: int) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The ids of up to `most` jobs that match, and the first few as rows; what they carry is not kept."""
    ids: list[str] = []
    sample: list[dict[str, Any]] = []
    for job in walk.jobs(SCANNED):
        ids.append(job.id)
        if len(sample) < SAMPLE:
            sample.append(job_row(job))
        if len(ids) >= most:
            break
    return tuple(ids), sample
