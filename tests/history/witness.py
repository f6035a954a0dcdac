"""A store that notes what is said to it and what it answers; and the reading of what is left in it.

The notes go to the evidence, outside the store. The store itself stays what it is: three of its verbs are
wrapped in place, on this one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from millpond.errors import NodeRefused, OutcomeUnknown
from millpond.job import Enqueued, Job, NewJob, Settlement
from millpond.store.protocol import PAGE, Exchanged, Filter, Store
from tests.history.entries import Granted, Moment, Settled
from tests.history.evidence import Evidence, now

S = TypeVar("S", bound=Store)


def witnessed(store: S, evidence: Evidence) -> S:
    """The same store, under observation: `App(witnessed(open_store(url), evidence))`."""
    watch = _Witness(store, evidence)
    for name in ("enqueue", "exchange", "renew"):
        setattr(store, name, getattr(watch, name))
    return store


class _Witness:
    def __init__(self, store: Store, evidence: Evidence) -> None:
        self._enqueue, self._exchange, self._renew = store.enqueue, store.exchange, store.renew
        self.evidence = evidence
        self.incarnations: set[str] = set()

    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """In a transaction of the caller's the end is the caller's: it has to note what it committed."""
        self.evidence.attempted(*(job.id for job in jobs))
        answers = self._enqueue(jobs, transaction)
        if transaction is None:
            self.evidence.acknowledged(*(answer.id for answer in answers))
        return answers

    def renew(self, node: str, *arguments: Any, **options: Any) -> None:
        self._renew(node, *arguments, **options)
        if node not in self.incarnations:
            self.incarnations.add(node)
            self.evidence.joined(node)

    def exchange(self, node: str, sequence: int, **wishes: Any) -> Exchanged:
        asked_at = now()
        told: Sequence[Settlement] = wishes.get("settlements", ())
        try:
            answer = self._exchange(node, sequence, **wishes)
        except NodeRefused:
            self._note(node, asked_at, told, {line.id: False for line in told})
            raise
        except OutcomeUnknown:
            self._note(node, asked_at, told, {})
            raise
        self._note(node, asked_at, told, _verdicts(told, wishes, answer))
        at = now()
        self.evidence.note(Granted(job.id, job.token, node, at) for job in answer.claimed)
        return answer

    def _note(
        self, node: str, asked_at: Moment, told: Sequence[Settlement], accepted: dict[str, bool]
    ) -> None:
        at = now()
        self.evidence.note(
            Settled(
                line.id, line.token, node, str(line.transition.state), accepted.get(line.id), asked_at, at
            )
            for line in told
        )


def _verdicts(told: Sequence[Settlement], wishes: dict[str, Any], answer: Exchanged) -> dict[str, bool]:
    """Which settlements are known to be accepted or refused. A refused id may be that of another wish."""
    if answer.replayed:
        return {}
    others = {wish.id for name in ("started", "progress") for wish in wishes.get(name, ())}
    doubtful = others & set(answer.stale)
    return {line.id: line.id not in answer.stale for line in told if line.id not in doubtful}


def finals(store: Store) -> dict[str, Job]:
    """Every job that is in the store, whole."""
    found: dict[str, Job] = {}
    cursor: str | None = None
    while True:
        page = store.search(Filter(), PAGE, cursor)
        found |= {job.id: job for job in page.jobs}
        cursor = page.cursor
        if cursor is None:
            return found
