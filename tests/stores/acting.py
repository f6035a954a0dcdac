"""What the store tests are written with: jobs in one line, and a node that claims and settles by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import msgspec

from millpond.ids import new_id
from millpond.job import MICROSECONDS, Job, JobState, NewJob, Outcome, Returned, Settlement, Transition
from millpond.rules.jobs.lifecycle import settle
from millpond.store.open import open_store
from millpond.store.protocol import LEASE, Claim, Exchanged, Progress, Started, Store

DAY = 86_400.0
OK = Returned(b"1")


class AnyClock(Protocol):
    """A store's clock as tests move it."""

    shift: int

    def now(self) -> int: ...
    def freeze(self) -> None: ...


class AnyStore(Store, Protocol):
    """A store whose time can be moved."""

    clock: AnyClock


def opened(url: str) -> AnyStore:
    """The store at a URL, with its schema."""
    store = cast("AnyStore", open_store(url))
    store.migrate()
    return store


def travel(store: AnyStore, seconds: float) -> None:
    """Move the store's time."""
    store.clock.shift += round(seconds * MICROSECONDS)


def new_job(task: str = "work", **facts: Any) -> NewJob:
    """A job that nobody has seen before."""
    return NewJob(**{"id": new_id(), "task": task, "payload": b"{}"} | facts)


def id_of(name: str) -> str:
    """An id that a test can name; such ids sort as their names do."""
    return f"00000000-0000-4000-8000-{name.encode().hex():0<12}"


def put(store: Store, *jobs: NewJob) -> list[str]:
    """Enqueue jobs; every one must be new."""
    answers = store.enqueue(jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert all(answer.created for answer in answers), answers
    return [job.id for job in jobs]


def put_many(store: Store, number: int, **facts: Any) -> list[str]:
    """Enqueue so many jobs alike."""
    return put(store, *(new_job(**facts) for _ in range(number)))


def the(store: Store, job: str | Job) -> Job:
    """The job as the store has it."""
    (found,) = store.get([job if isinstance(job, str) else job.id])
    assert found is not None
    return found


def state(store: Store, job: str | Job) -> JobState:
    return the(store, job).state


def states(store: Store, jobs: Sequence[str]) -> list[JobState]:
    return [the(store, job).state for job in jobs]


def tally(store: Store, queue: str = "default") -> dict[str, int]:
    """How many jobs of a queue are in each state that has any."""
    found = [counts.states for counts in store.counts().queues if counts.queue == queue]
    return {str(name): number for states in found for name, number in states.items() if number}


def happened(store: Store, queue: str = "default") -> dict[str, int]:
    """Everything that was ever counted in a queue."""
    total: dict[str, int] = {}
    for minute in store.statistics(0, 10**9):
        if minute.queue == queue:
            for what, number in minute.counts.items():
                total[what] = total.get(what, 0) + number
    return total


class Node:
    """A node incarnation that does by hand what a real one does by itself."""

    def __init__(self, store: AnyStore, name: str = "n1", host: str = "here", lease: float = LEASE) -> None:
        self.store, self.name, self.host, self.lease = store, name, host, lease
        self.sequence = 0
        self.renew()

    def renew(self) -> None:
        self.store.renew(self.name, self.host, lease=self.lease)

    def exchange(
        self,
        *,
        settlements: Sequence[Settlement] = (),
        started: Sequence[Started] = (),
        progress: Sequence[Progress] = (),
        claims: Sequence[Claim] = (),
    ) -> Exchanged:
        self.sequence += 1
        return self.store.exchange(
            self.name,
            self.sequence,
            settlements=settlements,
            started=started,
            progress=progress,
            claims=claims,
        )

    def claim(self, limit: int = 100, queue: str = "default", without: tuple[str, ...] = ()) -> list[Job]:
        return list(self.exchange(claims=[Claim(queue, limit, without)]).claimed)

    def claim_one(self, queue: str = "default") -> Job:
        (job,) = self.claim(1, queue)
        return job

    def start(self, *jobs: Job) -> Exchanged:
        return self.exchange(started=[Started(job.id, job.token) for job in jobs])

    def verdict(self, job: Job, outcome: Outcome = OK) -> Settlement:
        return Settlement(job.id, job.token, settle(job, outcome, self.store.clock.now()))

    def settle(self, *jobs: Job, outcome: Outcome = OK) -> Exchanged:
        """End attempts in one way; every one must be accepted."""
        answer = self.exchange(settlements=[self.verdict(job, outcome) for job in jobs])
        assert (answer.stale, answer.deferred) == ((), ())
        return answer

    def settle_among_others(self, *jobs: Job) -> None:
        """The same beside other nodes: a claim that comes a moment too late keeps a lock on a row that it
        does not get, until its own end, and an end that meets it is deferred."""
        left = {job.id: job for job in jobs}
        while left:
            answer = self.exchange(settlements=[self.verdict(job) for job in left.values()])
            assert answer.stale == ()
            left = {job_id: left[job_id] for job_id in answer.deferred}

    def reach_all(self) -> None:
        """Claim from an empty queue until every dependent of what ended was reached: each claim goes on."""
        while self.exchange(claims=[Claim("empty", 1)]).more:
            pass

    def run(self, outcome: Outcome = OK, queue: str = "default") -> Job:
        """Claim the first job in line and end it."""
        job = self.claim_one(queue)
        self.settle(job, outcome=outcome)
        return job


def dead_job(store: AnyStore, node: Node, **facts: Any) -> str:
    """A job that has failed for good."""
    from millpond.job import Failure, Raised

    (job,) = put(store, new_job(**facts))
    node.run(Raised(Failure("E", "no"), final=True), queue=facts.get("queue", "default"))
    assert state(store, job) is JobState.DEAD
    return job


def changed(transition: Transition, **facts: Any) -> Transition:
    return msgspec.structs.replace(transition, **facts)
