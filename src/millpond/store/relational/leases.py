"""Node leases: renewing, claiming and settling under one, and reviving the jobs of nodes that are gone.

A lease that has run out refuses nothing by itself. A rescue first seals the dead node's record, which
every exchange of that node must lock too; from then on it is refused. Then its jobs go back in batches,
each one atomic step that any entitled node may repeat: being killed half-way leaves work, not damage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from millpond.errors import NodeRefused
from millpond.job import MICROSECONDS, Instant, Job, JobState, Settlement, Transition
from millpond.rules.lifecycle import rescued
from millpond.store.protocol import Claim, Exchanged, Held, NodeRecord, Progress, Started
from millpond.store.relational import claim, settle
from millpond.store.relational.query import LeaseClock, Query, Row, Steps
from millpond.store.relational.rows import Damaged, job_of, readable

BATCH = 500  # jobs revived in one step
_encode = msgspec.json.Encoder().encode


class NodeRow(NamedTuple):
    """A node's record."""

    id: str
    host: str
    epoch: str
    info: bytes
    lease_until: int
    lease: int
    steady_since: int
    sequence: int
    sealed: bool

    def expired(self, now: int, epoch: str) -> bool:
        """Has its lease run out? A lease of another boot of the machine has."""
        return self.epoch != epoch or self.lease_until <= now


def give_up(node: str) -> Steps[bool]:
    """End a node's lease at its own wish; False if it had none."""
    rows = yield Query("lock_node", (node,))
    if rows:
        yield Query("seal", (node,))
    return bool(rows)


def renew(node: str, host: str, info: bytes, lease: float) -> Steps[None]:
    """Take or renew a lease."""
    length = round(lease * MICROSECONDS)
    rows = yield Query("lock_node", (node,))
    ((now, epoch),) = yield LeaseClock()
    steady_since = now
    if rows:
        row = NodeRow(*rows[0])
        if row.sealed:
            raise _refused(node)
        if not row.expired(now, epoch):
            steady_since = row.steady_since
    else:
        dead = yield Query("was_rescued", (node,))
        if dead:
            raise _refused(node)
    yield Query("write_node", (node, host, epoch, info, now + length, length, steady_since))


def _refused(node: str) -> NodeRefused:
    return NodeRefused(f"node {node} was rescued: its jobs belong to others now; go on under a new name")


def exchange(
    node: str,
    sequence: int,
    now: Instant,
    *,
    settlements: Sequence[Settlement],
    started: Sequence[Started],
    progress: Sequence[Progress],
    claims: Sequence[Claim],
) -> Steps[Exchanged]:
    """Settle what finished and claim what fits."""
    rows = yield Query("next_sequence", (node, sequence))
    if not rows:
        yield from _why_refused(node)
        return Exchanged(replayed=True)
    stale: list[str] = []
    if settlements:
        stale += yield from settle.settle(node, settlements, now)
    if started:
        stale += yield from settle.start(node, started, now)
    if progress:
        stale += yield from settle.progress(node, progress)
    jobs, asked = (yield from claim.claim(node, claims, now)) if claims else ([], True)
    cancelling = (yield Query("cancelling", (node,))) if asked else []
    return Exchanged(tuple(jobs), tuple(stale), tuple(row[0] for row in cancelling))


def is_vain(node: str, sequence: int, claims: Sequence[Claim], now: Instant) -> Steps[bool]:
    """May this node speak, and would an exchange that only claims change nothing but its number?"""
    rows = yield Query("lock_node", (node,))
    if not rows or (row := NodeRow(*rows[0])).sealed or row.sequence >= sequence:
        return False
    return (yield from claim.is_vain(node, claims, now))


def claim_on(node: str, entries: Sequence[Claim], damaged: Sequence[str], now: Instant) -> Steps[list[Job]]:
    """Bury what was claimed and cannot be read, and claim others in its place."""
    yield from _why_refused(node)
    yield from claim.bury(damaged, "running", now)
    jobs, _ = yield from claim.claim(node, entries, now)
    return jobs


def _why_refused(node: str) -> Steps[None]:
    """Raise if the node may not speak; return if it has merely said this before."""
    rows = yield Query("lock_node", (node,))
    if not rows:
        raise NodeRefused(f"node {node} has no lease: renew it first, or it was rescued meanwhile")
    if NodeRow(*rows[0]).sealed:
        raise _refused(node)


def held(node: str) -> Steps[Held]:
    """What a node has, as the store sees it."""
    yield from _why_refused(node)
    rows = yield Query("lock_node", (node,))
    jobs = yield Query("held_jobs", (node, 1_000_000))
    return Held(NodeRow(*rows[0]).sequence, tuple(readable(row[:-1] for row in jobs)))


def to_rescue(node: str, gone: Sequence[str]) -> Steps[list[str]]:
    """Which nodes this one may rescue now; seals them."""
    rows = yield Query("all_nodes", ())
    ((now, epoch),) = yield LeaseClock()
    nodes = {row[0]: NodeRow(*row[:9]) for row in rows}
    rescuer = nodes.get(node)
    if rescuer is None or rescuer.sealed or rescuer.expired(now, epoch):
        return []
    steady = now - rescuer.steady_since >= rescuer.lease

    def may_rescue(other: NodeRow) -> bool:
        is_gone = other.id in gone and other.host == rescuer.host
        return other.sealed or is_gone or (steady and other.expired(now, epoch))

    sealed: list[str] = []
    for other in sorted(known.id for known in nodes.values() if known.id != node and may_rescue(known)):
        row = yield Query("lock_node", (other,))
        # Read again under its lock: it may have renewed meanwhile, and then it lives
        if row and may_rescue(NodeRow(*row[0])):
            yield Query("seal", (other,))
            sealed.append(other)
    return sealed


def rescue_batch(dead: str, now: Instant) -> Steps[int]:
    """Revive some jobs of a sealed node; 0 when none is left, and then its record is gone too."""
    rows = yield Query("lock_node", (dead,))
    if not rows:
        return 0
    jobs = yield Query("held_jobs", (dead, BATCH))
    if not jobs:
        yield Query("forget_node", (dead, now))
        yield Query("delete_node", (dead,))
        return 0
    verdicts = [(_held_row(row), _verdict(row, dead, now)) for row in jobs]
    done = yield from settle.apply(dead, verdicts, now, raise_token=1)
    yield from settle.conclude(done, now, Counter())
    return len(verdicts)


def _held_row(row: Row) -> settle.HeldRow:
    """The columns of a whole held job that settling needs; the last one is has_children."""
    return settle.HeldRow(row[0], row[16], bool(row[19]), row[1], row[2], row[20], row[21], bool(row[-1]))


def _verdict(row: Row, dead: str, now: Instant) -> Transition:
    try:
        job = job_of(row[:-1])
    except Damaged:
        return _damaged(row)
    return rescued(job, dead, now)


def _damaged(row: Row) -> Transition:
    return Transition(
        state=JobState.DEAD,
        reason="damaged",
        rank=row[6],
        run_at=row[7],
        attempt=row[12],
        errors=row[13],
        crashes=row[14],
        lost=row[15],
    )


def node_records(now: int, epoch: str, rows: Sequence[Row]) -> list[NodeRecord]:
    """Nodes for people to read; each row ends with the number of jobs it runs."""
    found = []
    for row in rows:
        node = NodeRow(*row[:9])
        left = (node.lease_until - now) / MICROSECONDS if node.epoch == epoch else -1.0
        found.append(
            NodeRecord(
                node.id, node.host, bytes(node.info), left, node.sequence, bool(node.sealed), int(row[9])
            )
        )
    return sorted(found, key=lambda record: record.id)
