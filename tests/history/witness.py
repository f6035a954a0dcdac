"""A store that notes what is said to it and what it answers; and the reading of what is left in it.

The notes go to the evidence, outside the store. The store itself stays what it is: the ways in which it is
told something are wrapped in place, on this one object. Reading an answer is left to whoever asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from millpond.errors import NodeRefused, OutcomeUnknown
from millpond.job import Enqueued, Job, NewJob, Settlement
from millpond.store.protocol import PAGE, Exchanged, Filter, Said, Store
from tests.history.entries import Granted, Moment, Settled
from tests.history.evidence import Evidence, now

S = TypeVar("S", bound=Store)
Meanwhile = Callable[[], None]
VERBS = ("enqueue", "exchange", "renew")
ALSO = "exchange_meanwhile"  # of stores that send first and listen later: large rounds go this way
EVERYTHING = Filter()
LONG: Moment = 1_000_000_000  # nanoseconds from which on an exchange is worth a line by itself


def witnessed(store: S, evidence: Evidence) -> S:
    """The same store, under observation: `App(witnessed(open_store(url), evidence))`."""
    watch = _Witness(store, evidence)
    for name in (*VERBS, ALSO) if hasattr(store, ALSO) else VERBS:
        setattr(store, name, getattr(watch, name))
    return store


class _Witness:
    def __init__(self, store: Store, evidence: Evidence) -> None:
        self._enqueue, self._exchange, self._renew = store.enqueue, store.exchange, store.renew
        self._exchange_meanwhile = getattr(store, ALSO, None)
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
        answer = self._heard(node, Said(**wishes), lambda: self._exchange(node, sequence, **wishes))
        self._grant(node, now(), answer.claimed)
        return answer

    def exchange_meanwhile(self, meanwhile: Meanwhile, node: str, sequence: int, said: Said) -> Exchanged:
        """What was claimed is noted when it is read, with the moment of the answer."""
        call = self._exchange_meanwhile
        assert call is not None
        answer: Exchanged = self._heard(node, said, lambda: call(meanwhile, node, sequence, said))
        at = now()
        claimed = _Seen(answer.claimed, lambda jobs: self._grant(node, at, jobs))
        return msgspec.structs.replace(answer, claimed=claimed)

    def _heard(self, node: str, said: Said, ask: Callable[[], Exchanged]) -> Exchanged:
        """The answer; what became of the settlements is noted, also where none came."""
        asked_at, told = now(), said.settlements
        try:
            answer = ask()
        except NodeRefused:
            self._note(node, asked_at, told, {line.id: False for line in told})
            raise
        except OutcomeUnknown:
            self._note(node, asked_at, told, {})
            raise
        finally:
            if now() - asked_at > LONG:
                self.evidence.slow(asked_at)
        taken = [line for line in told if line.id not in answer.deferred]  # the others will be sent again
        self._note(node, asked_at, taken, _verdicts(said, answer))
        return answer

    def _grant(self, node: str, at: Moment, jobs: Sequence[Job]) -> None:
        self.evidence.note(Granted(job.id, job.token, node, at) for job in jobs)

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


class _Seen(Sequence[Job]):
    """Claimed jobs that tell when they are read: they are read no earlier than without us."""

    def __init__(self, jobs: Sequence[Job], tell: Callable[[Sequence[Job]], None]) -> None:
        self._jobs, self._tell = jobs, tell
        self._is_told = False

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, index: Any) -> Any:
        if not self._is_told:
            read = self._jobs[:]
            self._is_told = True
            self._tell(read)
        return self._jobs[index]


def _verdicts(said: Said, answer: Exchanged) -> dict[str, bool]:
    """Which settlements are known to be accepted or refused. A refused id may be that of another wish."""
    if answer.replayed:
        return {}
    stale = set(answer.stale)
    doubtful = stale & {wish.id for wishes in (said.started, said.progress) for wish in wishes}
    return {line.id: line.id not in stale for line in said.settlements if line.id not in doubtful}


def finals(store: Store, chosen: Filter = EVERYTHING) -> dict[str, Job]:
    """Every job that is in the store, or those chosen, whole."""
    found: dict[str, Job] = {}
    cursor: str | None = None
    while True:
        page = store.search(chosen, PAGE, cursor)
        found |= {job.id: job for job in page.jobs}
        cursor = page.cursor
        if cursor is None:
            return found
