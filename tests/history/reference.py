"""A store and its nodes in a few lines, all of whose steps are correct: what the judge must find nothing in.

Every step notes what a real process would have noted. With `force` a step is done though it must not be:
that is how bugs are planted.
"""

from __future__ import annotations

import msgspec

from millpond.job import (
    Attempt,
    Crashed,
    Failure,
    Job,
    JobOptions,
    JobState,
    Lost,
    Outcome,
    Raised,
    Released,
    Returned,
    Slot,
    Snoozed,
)
from millpond.rules.jobs.lifecycle import settle
from millpond.settlement import settlement
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
    Kind,
    Moment,
    Over,
    Settled,
)
from tests.history.rules import Rules, Violation

NOTHING = Rules()
FAILURE = Failure("E", "no")
OUTCOMES: dict[How, Outcome] = {
    How.RETURNED: Returned(b"1"),
    How.RAISED: Raised(FAILURE, retry_in=0.0),
    How.SNOOZED: Snoozed(0.0),
}


class Hold(msgspec.Struct):
    """What a node has in its hands: a job as it was claimed, and how far its execution has come."""

    job: Job
    node: str
    worker: int = 0
    started_at: int | None = None
    how: How | None = None
    effects: int = 0


class World:
    """A reference store, and the evidence of all that was done with it."""

    def __init__(self) -> None:
        self.at: Moment = 1_000_000_000
        self.jobs: dict[str, Job] = {}
        self.entries: list[Entry] = []
        self.nodes: set[str] = set()
        self.workers = 100
        self.faults = 0

    def judged(self, rules: Rules = NOTHING) -> list[Violation]:
        from tests.history.judge import judge

        return judge(self.entries, self.jobs, rules)

    def tick(self, seconds: float = 0.001) -> Moment:
        self.at += round(seconds * 1_000_000_000)
        return self.at

    def pass_time(self, seconds: float) -> None:
        self.tick(seconds)

    # --- enqueue, claim, run ------------------------------------------------------------------------
    def enqueue(
        self, job: str, *, slots: tuple[Slot, ...] = (), acknowledged: bool = True, max_crashes: int = 3
    ) -> None:
        now = self.tick() // 1000
        self.entries.append(Attempted(job, self.at))
        self.jobs[job] = Job(
            id=job, task="t", queue="default", state=JobState.QUEUED, reason=None, priority=1, rank=now,
            run_at=now, created_at=now, started_at=None, finished_at=None, expires_at=None, attempt=0,
            errors=0, crashes=0, lost=0, token=0, node=None, alone=False, cancelling=False, unique=None,
            slots=slots, depends_on=(), options=JobOptions(max_crashes=max_crashes), payload=b"{}",
        )  # fmt: skip
        if acknowledged:
            self.entries.append(Acknowledged(job, self.tick()))

    def claim(self, job: str, node: str, *, force: bool = False) -> Hold:
        found = self.jobs[job]
        assert force or found.state is JobState.QUEUED
        if node not in self.nodes:
            self.nodes.add(node)
            self.entries.append(Joined(node, node, self.tick()))
        claimed = self.change(job, state=JobState.RUNNING, token=found.token + 1, node=node)
        self.entries.append(Granted(job, claimed.token, node, self.tick()))
        return Hold(claimed, node)

    def begin(self, hold: Hold, worker: int | None = None, *, told: bool = True) -> None:
        """`told`: the store knows that it has begun, and charges its loss."""
        if worker is None:
            self.workers += 1
        hold.worker = self.workers if worker is None else worker
        job = hold.job
        at = self.tick()
        self.entries.append(Began(job.id, job.token, job.attempt + 1, hold.node, hold.worker, at))
        hold.started_at = at // 1000
        if told and self.holds(hold):
            self.change(job.id, started_at=hold.started_at)

    def effect(self, hold: Hold) -> None:
        hold.effects += 1
        self.entries.append(Effect(hold.job.id, hold.job.token, hold.job.attempt + 1, self.tick()))

    def leave(self, hold: Hold, how: How = How.RETURNED) -> None:
        hold.how = how
        self.entries.append(Ended(hold.job.id, hold.job.token, how, self.tick()))

    def run(self, job: str, node: str, how: How = How.RETURNED) -> Hold:
        """All of it but the settlement."""
        hold = self.claim(job, node)
        self.begin(hold)
        self.effect(hold)
        self.leave(hold, how)
        return hold

    def complete(self, job: str, node: str) -> Hold:
        hold = self.run(job, node)
        self.settle(hold)
        return hold

    def breaks(self, hold: Hold) -> None:
        """The function ends its own worker, and the node sees that."""
        self.entries.append(Breaking(hold.job.id, hold.job.token, hold.worker, self.tick()))
        self.settle(hold, Crashed(FAILURE))

    # --- settle ---------------------------------------------------------------------------------------
    def holds(self, hold: Hold) -> bool:
        """The fence."""
        found = self.jobs[hold.job.id]
        return (found.state, found.node, found.token) == (JobState.RUNNING, hold.node, hold.job.token)

    def settle(
        self, hold: Hold, outcome: Outcome | None = None, *, force: bool = False, noted: bool = True
    ) -> bool:
        if outcome is None:
            assert hold.how is not None
            outcome = OUTCOMES[hold.how]
        asked_at = self.tick()
        told = settlement(
            hold.job, outcome, hold.node, now=self.at // 1000, started_at=hold.started_at, worker=hold.worker
        )
        accepted = force or self.holds(hold)
        if accepted:
            self._apply(told.transition, hold.job.id)
        if noted:
            state = str(told.transition.state)
            self.entries.append(
                Settled(hold.job.id, hold.job.token, hold.node, state, accepted, asked_at, self.tick())
            )
        return accepted

    def release(self, hold: Hold) -> None:
        self.settle(hold, Released())

    def rescue(self, node: str) -> None:
        """Give back what a node holds, as lost."""
        for job in [job for job in self.jobs.values() if job.node == node and job.state is JobState.RUNNING]:
            now = self.tick() // 1000
            verdict = settle(job, Lost(started=job.started_at is not None), now)
            line = Attempt(verdict.attempt, node, "lost", now, job.started_at)
            self._apply(msgspec.structs.replace(verdict, line=msgspec.json.encode(line)), job.id)
            self.change(job.id, token=job.token + 1)

    def _apply(self, transition: object, job: str) -> None:
        facts = msgspec.structs.asdict(transition)  # type: ignore[arg-type]
        line = facts.pop("line")
        lines = self.jobs[job].attempts
        if line:
            lines += (msgspec.json.decode(line, type=Attempt),)
        if facts["state"] is JobState.SCHEDULED:  # its time comes at once
            facts["state"] = JobState.QUEUED
        self.change(job, **facts, attempts=lines, node=None, started_at=None)

    def change(self, job: str, **facts: object) -> Job:
        self.jobs[job] = msgspec.structs.replace(self.jobs[job], **facts)
        return self.jobs[job]

    # --- faults ---------------------------------------------------------------------------------------
    def fault(self, kind: Kind, *, pid: int | None = None, node: str | None = None) -> str:
        self.faults += 1
        self.entries.append(Fault(str(self.faults), kind, self.tick(), pid, node))
        return str(self.faults)

    def over(self, number: str) -> None:
        self.entries.append(Over(number, self.tick()))

    def kill(self, *, pid: int | None = None, node: str | None = None) -> None:
        self.over(self.fault(Kind.KILLED, pid=pid, node=node))
