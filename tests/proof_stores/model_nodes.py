"""The other half of the model: nodes, their leases, and what they claim and settle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from millpond.errors import NodeRefused
from millpond.job import DAY, MICROSECONDS, WAITING, Attempt, Job, JobState, Lost, Settlement
from millpond.rules.jobs.lifecycle import settle as verdict_on
from millpond.rules.jobs.rate_limit import allowed, fill
from millpond.store.protocol import (
    Claim,
    Exchanged,
    Filter,
    Held,
    HeldJob,
    NodeRecord,
    Progress,
    Rescued,
    Retention,
    Started,
)
from tests.proof_stores.model import Jobs, Kept, Queue


@dataclass
class Node:
    """One incarnation and its lease."""

    host: str
    info: bytes
    lease_until: int
    lease: int
    steady_since: int
    sequence: int = 0
    sealed: bool = False


@dataclass
class Model(Jobs):
    """A whole store."""

    nodes: dict[str, Node] = field(default_factory=dict)
    graves: dict[str, int] = field(default_factory=dict)  # when it was buried

    # --- leases ---------------------------------------------------------------------------------------
    def renew(self, node: str, host: str, info: bytes, lease: float) -> None:
        if lease <= 0:
            if node in self.nodes:
                self.nodes[node].sealed = True
                self._revive(node)
            return
        known = self.nodes.get(node)
        if node in self.graves or (known and known.sealed):
            raise NodeRefused(node)
        length = round(lease * MICROSECONDS)
        if known and self._is_fresh(known):
            known.host, known.info, known.lease_until, known.lease = host, info, self.now + length, length
        else:
            sequence = known.sequence if known else 0
            self.nodes[node] = Node(host, info, self.now + length, length, self.now, sequence)

    def _is_fresh(self, node: Node) -> bool:
        since = self.now - (node.lease_until - node.lease)
        return since < node.lease / 2  # half a lease without a renewal ends the steadiness of a node

    def speaking(self, node: str) -> Node:
        """A node that may speak."""
        if node not in self.nodes or self.nodes[node].sealed:
            raise NodeRefused(node)
        return self.nodes[node]

    def held(self, node: str) -> Held:
        jobs = [kept.job for kept in self.running(node)]
        return Held(
            self.speaking(node).sequence,
            tuple(HeldJob(job.id, job.token, job.queue, job.task) for job in jobs),
        )

    def running(self, node: str) -> list[Kept]:
        """What a node holds, by id."""
        return [kept for kept in self.chosen(Filter(), {JobState.RUNNING}) if kept.job.node == node]

    def rescue(self, node: str, gone: Sequence[str]) -> Rescued:
        rescuer = self.nodes.get(node)
        if rescuer is None or rescuer.sealed or rescuer.lease_until <= self.now:
            return Rescued()
        steady = self._is_fresh(rescuer) and self.now - rescuer.steady_since >= rescuer.lease
        dead = [
            name
            for name, other in sorted(self.nodes.items())
            if name != node
            and (
                other.sealed
                or (steady and other.lease_until <= self.now)
                or (name in gone and other.host == rescuer.host)
            )
        ]
        each = tuple(self._revive(name) for name in dead)
        return Rescued(tuple(dead), sum(each), each)

    def _revive(self, dead: str) -> int:
        jobs = self.running(dead)
        for kept in jobs:
            started = kept.job.started_at
            verdict = verdict_on(kept.job, Lost(started=started is not None), self.now)
            attempt = Attempt(
                number=verdict.attempt, node=dead, ended="lost", ended_at=self.now, started_at=started
            )
            line = msgspec.json.encode(attempt)
            self.settle(kept.job.id, msgspec.structs.replace(verdict, line=line), raise_token=1)
        del self.nodes[dead]
        self.graves[dead] = self.now
        return len(jobs)

    def prune(self, retention: Retention) -> int:
        self.graves = {node: at for node, at in self.graves.items() if at >= self.now - 7 * DAY}
        return super().prune(retention)

    def node_records(self) -> list[NodeRecord]:
        return [
            NodeRecord(
                name,
                node.host,
                node.info,
                (node.lease_until - self.now) / MICROSECONDS,
                node.sequence,
                node.sealed,
                len(self.running(name)),
            )
            for name, node in sorted(self.nodes.items())
        ]

    # --- exchange -------------------------------------------------------------------------------------
    def exchange(
        self,
        node: str,
        sequence: int,
        *,
        settlements: Sequence[Settlement],
        started: Sequence[Started],
        progress: Sequence[Progress],
        claims: Sequence[Claim],
    ) -> Exchanged:
        record = self.speaking(node)
        if sequence <= record.sequence:
            return Exchanged(replayed=True)
        record.sequence = sequence
        stale = self._settle_all(node, settlements)
        for begun in started:
            if kept := self._held_under(node, begun.id, begun.token):
                kept.change(started_at=self.now)
            else:
                stale.append(begun.id)
        for report in progress:
            if kept := self._held_under(node, report.id, report.token):
                kept.change(progress=report.data)
            else:
                stale.append(report.id)
        jobs = self._claim_all(node, claims) if claims else []
        cancelling = [kept.job.id for kept in self.running(node) if kept.job.cancelling]
        return Exchanged(tuple(jobs), tuple(stale), cancelling=tuple(cancelling))

    def _held_under(self, node: str, job: str, token: int) -> Kept | None:
        kept = self.jobs.get(job)
        if kept is None or kept.job.state is not JobState.RUNNING:
            return None
        return kept if kept.job.node == node and kept.job.token == token else None

    def _settle_all(self, node: str, settlements: Sequence[Settlement]) -> list[str]:
        stale = []
        for settlement in settlements:
            kept = self._held_under(node, settlement.id, settlement.token)
            if kept is None:
                stale.append(settlement.id)
                continue
            self.settle(settlement.id, settlement.transition)
            if settlement.wait is not None:
                self.count(kept.job.queue, "wait", settlement.wait)
            if settlement.run is not None:
                self.count(kept.job.queue, "run", settlement.run)
        return stale

    def _claim_all(self, node: str, claims: Sequence[Claim]) -> list[Job]:
        late = [
            kept.job.id
            for kept in self.chosen(Filter(), WAITING)
            if kept.job.expires_at is not None and kept.job.expires_at <= self.now
        ]
        self.cancel_waiting(late, "expired")
        for kept in self.jobs.values():
            if kept.job.state is JobState.SCHEDULED and kept.job.run_at <= self.now:
                kept.change(state=JobState.QUEUED)
        return [job for entry in claims for job in self._claim(node, entry)]

    def _claim(self, node: str, entry: Claim) -> list[Job]:
        queue = self.queues.get(entry.queue, Queue())
        if queue.paused or entry.limit <= 0:
            return []
        if queue.bucket is None:
            return self._take(node, entry, entry.limit)
        bucket = fill(queue.bucket, self.now)
        jobs = self._take(node, entry, min(entry.limit, allowed(bucket)))
        queue.bucket = bucket._replace(tokens=bucket.tokens - len(jobs))
        return jobs

    def _take(self, node: str, entry: Claim, limit: int) -> list[Job]:
        """The first in line, each if all its slots have room at that moment."""
        line = self.chosen(Filter(queue=entry.queue), {JobState.QUEUED})
        jobs: list[Job] = []
        for kept in sorted(line, key=lambda kept: (kept.job.rank, kept.job.id.encode())):
            if len(jobs) < limit and kept.job.task not in entry.without and self._has_room(kept.job):
                kept.change(state=JobState.RUNNING, node=node, token=kept.job.token + 1, started_at=None)
                if kept.unique_for == "waiting":
                    self.release(kept.job)
                jobs.append(claimed(kept.job))
        return jobs

    def _has_room(self, job: Job) -> bool:
        used = Counter(
            slot.name
            for kept in self.jobs.values()
            if kept.job.state is JobState.RUNNING
            for slot in kept.job.slots
        )
        return all(used[slot.name] < self.capacities[slot.name] for slot in job.slots)


def claimed(job: Job) -> Job:
    """The job without what a claim leaves out."""
    return msgspec.structs.replace(job, result=None, progress=None, attempts=(), parked=None)
