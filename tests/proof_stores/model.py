"""A store in plain Python: dictionaries, lists and loops over everything, slow and easy to believe.

It is written from what the stores promise, not from how they do it: nothing is parked, counted ahead or
indexed, so it can only disagree with a store where one of the two is wrong. Nodes are in `model_nodes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from millpond.errors import Conflict, UnknownJob
from millpond.job import (
    DAY,
    ENDS,
    MICROSECONDS,
    WAITING,
    Attempt,
    Enqueued,
    Job,
    JobState,
    NewJob,
    Slot,
    Transition,
)
from millpond.rules.histogram import bucket
from millpond.rules.jobs.rate_limit import Bucket, depth
from millpond.store.protocol import Document, Entry, Filter, Minute, QueueCounts, Retention, Tick

MINUTE = 60 * MICROSECONDS


@dataclass
class Kept:
    """A job, and what no reader of a store sees of it."""

    job: Job
    unique_for: str | float
    waiting_for: set[str] = field(default_factory=set)  # parents that have not completed

    def change(self, **fields: object) -> None:
        self.job = msgspec.structs.replace(self.job, **fields)


@dataclass
class Queue:
    """A queue that somebody configured."""

    paused: bool = False
    bucket: Bucket | None = None


@dataclass
class Jobs:
    """Everything in a store but its nodes."""

    now: int
    jobs: dict[str, Kept] = field(default_factory=dict)
    uniques: dict[tuple[str, str], tuple[str, int | None]] = field(default_factory=dict)  # holder, until
    capacities: dict[str, int] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    numbers: Counter[tuple[str, int, str, int]] = field(default_factory=Counter)
    ticks: dict[tuple[str, int], int] = field(default_factory=dict)  # when it was planned
    documents: dict[str, Document] = field(default_factory=dict)
    logs: dict[str, list[Entry]] = field(default_factory=dict)

    # --- enqueue --------------------------------------------------------------------------------------
    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers: list[Enqueued] = []
        made: dict[str, NewJob] = {}
        uniques = dict(self.uniques)
        for new in jobs:
            holder = new.id if new.id in self.jobs or new.id in made else self._holder(uniques, new)
            answers.append(Enqueued(new.id if holder is None else holder, holder is None))
            if holder is None:
                made[new.id] = new
                if new.unique is not None:
                    uniques[new.task, new.unique] = (new.id, self._until(new))
        for new in made.values():
            for parent in new.depends_on:
                if parent not in self.jobs and parent not in made:
                    raise UnknownJob(parent)
        self.uniques = uniques
        for new in made.values():
            self._add(new)
        self._doom(made.values())
        return answers

    def _holder(self, uniques: dict[tuple[str, str], tuple[str, int | None]], new: NewJob) -> str | None:
        """The other job that has this one's unique key."""
        if new.unique is None or (new.task, new.unique) not in uniques:
            return None
        holder, until = uniques[new.task, new.unique]
        return None if holder == new.id or (until is not None and until <= self.now) else holder

    def _until(self, new: NewJob) -> int | None:
        lasts = new.unique_for
        return None if isinstance(lasts, str) else self.now + round(lasts * MICROSECONDS)

    def _add(self, new: NewJob) -> None:
        run_at = self.now + round(new.delay * MICROSECONDS) if new.run_at is None else new.run_at
        job = Job(
            id=new.id,
            task=new.task,
            queue=new.queue,
            state=JobState.QUEUED,
            reason=None,
            priority=new.priority,
            rank=run_at - new.priority * DAY,
            run_at=run_at,
            created_at=self.now,
            started_at=None,
            finished_at=None,
            expires_at=None if new.expires is None else self.now + round(new.expires * MICROSECONDS),
            attempt=0,
            errors=0,
            crashes=0,
            lost=0,
            token=0,
            node=None,
            alone=False,
            cancelling=False,
            unique=new.unique,
            slots=new.slots,
            depends_on=new.depends_on,
            options=new.options,
            payload=new.payload,
        )
        self.jobs[new.id] = Kept(job, new.unique_for)
        self.capacities.update({slot.name: slot.capacity for slot in new.slots})
        self.count(new.queue, "enqueued")

    def _doom(self, made: Iterable[NewJob]) -> None:
        """Now that all of them are there: who waits for whom, and who waits in vain."""
        doomed = []
        for new in made:
            kept = self.jobs[new.id]
            states = {parent: self.jobs[parent].job.state for parent in new.depends_on}
            kept.waiting_for = {parent for parent, state in states.items() if state != JobState.COMPLETED}
            kept.change(state=self._waiting_state(kept))
            if {JobState.DEAD, JobState.CANCELLED} & set(states.values()):
                doomed.append(new.id)
        self.cancel_waiting(doomed, "dependency")

    def _waiting_state(self, kept: Kept) -> JobState:
        if kept.waiting_for:
            return JobState.BLOCKED
        return JobState.SCHEDULED if kept.job.run_at > self.now else JobState.QUEUED

    # --- ends -----------------------------------------------------------------------------------------
    def cancel_waiting(self, ids: Iterable[str], reason: str) -> int:
        ended = [job for job in ids if job in self.jobs and self.jobs[job].job.state in WAITING]
        for job in ended:
            self.jobs[job].change(state=JobState.CANCELLED, reason=reason, finished_at=self.now)
        for job in ended:
            self.after_end(job)
        return len(ended)

    def after_end(self, ended: str) -> None:
        """A job has ended: its key is free, its children start or fall."""
        job = self.jobs[ended].job
        self.count(job.queue, job.state.value)
        self.release(job)
        children = [kept for kept in self.jobs.values() if ended in kept.waiting_for]
        if job.state is JobState.COMPLETED:
            for kept in children:
                kept.waiting_for.discard(ended)
                if kept.job.state is JobState.BLOCKED:
                    kept.change(state=self._waiting_state(kept))
        else:
            self.cancel_waiting([kept.job.id for kept in children], "dependency")

    def release(self, job: Job) -> None:
        """Let go of a unique key, unless it lasts for a time or is another's by now."""
        if job.unique is not None and self.uniques.get((job.task, job.unique)) == (job.id, None):
            del self.uniques[job.task, job.unique]

    def settle(self, job_id: str, verdict: Transition, raise_token: int = 0) -> None:
        """Carry out a verdict on a running job; its slots are free because it runs no longer."""
        kept = self.jobs[job_id]
        kept.change(
            attempt=verdict.attempt,
            errors=verdict.errors,
            crashes=verdict.crashes,
            lost=verdict.lost,
            token=kept.job.token + raise_token,
            node=None,
            attempts=(*kept.job.attempts, *_attempts(verdict.line)),
        )
        if verdict.state in ENDS:
            self._end(kept, verdict.state, verdict.reason, verdict.result)
        elif kept.job.cancelling:
            self._end(kept, JobState.CANCELLED, "cancelled", None)
        else:
            kept.change(
                state=verdict.state,
                rank=verdict.rank,
                run_at=verdict.run_at,
                alone=verdict.alone,
                started_at=None,
            )
            self.count(kept.job.queue, "retried")

    def _end(self, kept: Kept, state: JobState, reason: str | None, result: bytes | None) -> None:
        kept.change(state=state, reason=reason, result=result, finished_at=self.now, cancelling=False)
        self.after_end(kept.job.id)

    # --- people ---------------------------------------------------------------------------------------
    def chosen(self, chosen: Filter, states: Iterable[JobState] = tuple(JobState)) -> list[Kept]:
        """The jobs that a filter means, by id."""
        found = [
            kept
            for kept in self.jobs.values()
            if kept.job.state in states
            and (not chosen.states or kept.job.state in chosen.states)
            and (chosen.queue is None or kept.job.queue == chosen.queue)
            and (chosen.task is None or kept.job.task == chosen.task)
            and (not chosen.ids or kept.job.id in chosen.ids)
        ]
        return sorted(found, key=lambda kept: kept.job.id.encode())

    def cancel(self, chosen: Filter) -> int:
        running = [kept for kept in self.chosen(chosen, {JobState.RUNNING}) if not kept.job.cancelling]
        for kept in running:
            kept.change(cancelling=True)
        waiting = [kept.job.id for kept in self.chosen(chosen, WAITING)]
        return len(running) + self.cancel_waiting(waiting, "cancelled")

    def replay(self, chosen: Filter) -> int:
        dead = [kept for kept in self.chosen(chosen, {JobState.DEAD}) if kept.job.reason != "damaged"]
        for kept in dead:
            self.count(kept.job.queue, "replayed")
            kept.change(
                state=JobState.QUEUED,
                reason=None,
                run_at=self.now,
                rank=self.now - kept.job.priority * DAY,
                errors=0,
                crashes=0,
                lost=0,
                alone=False,
                cancelling=False,
                expires_at=None,
                started_at=None,
                finished_at=None,
                result=None,
            )
        return len(dead)

    def discard(self, chosen: Filter) -> int:
        found = self.chosen(chosen, ENDS)
        for kept in found:
            del self.jobs[kept.job.id]
        return len(found)

    def prune(self, retention: Retention) -> int:
        kept_for = {
            JobState.COMPLETED: retention.completed,
            JobState.CANCELLED: retention.cancelled,
            JobState.DEAD: retention.dead,
        }
        old = [
            kept.job.id
            for kept in self.chosen(Filter(), ENDS)
            if (kept.job.finished_at or 0) <= self._ago(kept_for[kept.job.state])
        ]
        for job in old:
            del self.jobs[job]
        first = self._ago(retention.statistics) // MINUTE
        self.numbers = Counter({key: n for key, n in self.numbers.items() if key[1] >= first})
        self.ticks = {key: at for key, at in self.ticks.items() if at >= self._ago(retention.ticks)}
        return len(old)

    def _ago(self, seconds: float) -> int:
        return self.now - round(seconds * MICROSECONDS)

    def configure(
        self, queue: str | None, paused: bool | None, rate: float | None, slot: Slot | None
    ) -> None:
        if queue is not None:
            record = self.queues.setdefault(queue, Queue())
            if paused is not None:
                record.paused = paused
            if rate is not None:
                record.bucket = Bucket(rate, depth(rate), self.now) if rate else None
        if slot is not None:
            self.capacities[slot.name] = slot.capacity

    # --- small records --------------------------------------------------------------------------------
    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        new: dict[tuple[str, int], Tick] = {}
        answers = []
        for tick in ticks:
            key = (tick.recurring, tick.at)
            answers.append(key not in self.ticks and key not in new)
            if answers[-1]:
                new[key] = tick
        self.enqueue([new[key].job for key in sorted(new) if new[key].job is not None])  # type: ignore[misc]
        self.ticks.update(dict.fromkeys(new, self.now))
        return answers

    def record(self, name: str, value: bytes | None, version: int | None) -> Document:
        known = self.documents.get(name, Document(b"", 0))
        if value is None:
            return known
        if known.version != (version or 0):
            raise Conflict(name)
        self.documents[name] = Document(value, known.version + 1)
        return self.documents[name]

    def log(self, name: str, lines: Sequence[bytes], after: int, limit: int, keep: int) -> list[Entry]:
        entries = self.logs.setdefault(name, [])
        for line in lines:
            entries.append(Entry(entries[-1].number + 1 if entries else 1, self.now, line))
        if lines:
            self.logs[name] = entries = entries[-keep:]
        return [entry for entry in entries if entry.number > after][:limit]

    # --- reading --------------------------------------------------------------------------------------
    def count(self, queue: str, what: str, seconds: float | None = None) -> None:
        part = 0 if seconds is None else bucket(seconds)
        self.numbers[queue, self.now // MINUTE, what, part] += 1

    def statistics(self) -> list[Minute]:
        found: dict[tuple[str, int], Minute] = {}
        for (queue, minute, what, part), number in self.numbers.items():
            record = found.setdefault((queue, minute), Minute(queue, minute, {}, {}, {}))
            if what in ("wait", "run"):
                getattr(record, what)[part] = number
            else:
                record.counts[what] = number
        return [found[key] for key in sorted(found)]

    def queue_counts(self) -> list[QueueCounts]:
        names = set(self.queues) | {kept.job.queue for kept in self.jobs.values()}
        return [self._counts_of(name) for name in sorted(names)]

    def _counts_of(self, name: str) -> QueueCounts:
        settings = self.queues.get(name, Queue())
        jobs = [kept.job for kept in self.jobs.values() if kept.job.queue == name]
        due = [job.run_at for job in jobs if job.state is JobState.QUEUED]
        return QueueCounts(
            name,
            settings.paused,
            None if settings.bucket is None else settings.bucket.rate,
            dict(Counter(job.state for job in jobs)),
            max(0.0, (self.now - min(due)) / MICROSECONDS) if due else None,
        )


def _attempts(line: bytes) -> list[Attempt]:
    return [msgspec.json.decode(line, type=Attempt)] if line else []
