"""Node leases: renewing, claiming and settling under one, and reviving the jobs of nodes that are gone.

A lease that has run out refuses nothing by itself. A rescue first seals the dead node's exchanges, which
every exchange of that node must lock too; from then on it is refused. Then its jobs go back in batches,
each one atomic step that any entitled node may repeat: being killed half-way leaves work, not damage.

A node has two rows: its lease, which only renewals and rescues lock, and its exchanges. So a long exchange
keeps neither the node's own heartbeat waiting nor a rescue of other nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from millpond.errors import NodeRefused
from millpond.job import MICROSECONDS, Instant, Job, JobState, Settlement, Transition
from millpond.rules.jobs.lifecycle import rescued
from millpond.rules.store.schema import Schema
from millpond.store.protocol import Claim, Exchanged, Held, HeldJob, NodeRecord, Progress, Started
from millpond.store.sql import claim, settle
from millpond.store.sql.query import LeaseClock, Query, Row, Steps
from millpond.store.sql.rows import Damaged, job_of

BATCH = 500  # jobs revived in one step
_encode = msgspec.json.Encoder().encode


class Lease(NamedTuple):
    """A node's lease."""

    id: str
    host: str
    epoch: str
    info: bytes
    lease_until: int
    lease: int
    steady_since: int

    def expired(self, now: int, epoch: str) -> bool:
        """Has its lease run out? A lease of another boot of the machine has."""
        return self.epoch != epoch or self.lease_until <= now

    def steady_at(self, now: int, epoch: str) -> int:
        """Since when it has renewed without a gap, if it renews now.

        A gap of half a lease counts: while the store was away other nodes could not renew either, and the
        first to come back would otherwise rescue living nodes whose leases ran out meanwhile.
        Shown by tests/stores/test_leases.py, test_a_node_that_missed_half_a_lease_may_not_rescue_at_once.
        """
        renewed_at = self.lease_until - self.lease
        if self.expired(now, epoch) or now - renewed_at >= self.lease / 2:
            return now
        return self.steady_since


def give_up(node: str) -> Steps[bool]:
    """End a node's lease at its own wish; False if it had none."""
    rows = yield Query("lock_lease", (node,))
    if rows:
        yield Query("lock_exchange", (node,))
        yield Query("seal", (node,))
    return bool(rows)


def renew(node: str, host: str, info: bytes, lease: float) -> Steps[Schema]:
    """Take or renew a lease; returns which schema the store has."""
    length = round(lease * MICROSECONDS)
    rows = yield Query("lock_lease", (node,))
    ((now, epoch),) = yield LeaseClock()
    if rows:
        # Read after the lock: a rescue seals while it holds the lease, so that either this renewal comes
        # first and the rescue sees it, or the seal does and the node is refused.
        if (yield from _is_sealed(node)):
            raise _refused(node)
        steady_since = Lease(*rows[0]).steady_at(now, epoch)
    else:
        steady_since = now
        dead = yield Query("was_rescued", (node,))
        if dead:
            raise _refused(node)
        yield Query("open_exchange", (node,))
    ((version, compatible_from),) = yield Query(
        "write_node", (node, host, epoch, info, now + length, length, steady_since)
    )
    return Schema(version, compatible_from)


def _is_sealed(node: str) -> Steps[bool]:
    rows = yield Query("exchange_of", (node,))
    return not rows or bool(rows[0][1])


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
    deferred: list[str] = []
    for refused in (
        (yield from settle.settle(node, settlements, now)) if settlements else settle.NONE_REFUSED,
        (yield from settle.start(node, started, now)) if started else settle.NONE_REFUSED,
        (yield from settle.progress(node, progress)) if progress else settle.NONE_REFUSED,
    ):
        stale += refused.stale
        deferred += refused.deferred
    got = (yield from claim.claim(node, claims, now)) if claims else claim.NOTHING
    cancelling = (yield Query("cancelling", (node,))) if got.asked else []
    return Exchanged(
        tuple(got.jobs),
        tuple(stale),
        tuple(row[0] for row in cancelling),
        deferred=tuple(deferred),
        more=got.more,
    )


def is_vain(node: str, sequence: int, claims: Sequence[Claim], now: Instant) -> Steps[bool]:
    """May this node speak, and would an exchange that only claims change nothing but its number?"""
    rows = yield Query("exchange_of", (node,))
    if not rows or rows[0][1] or rows[0][0] >= sequence:
        return False
    return (yield from claim.is_vain(node, claims, now))


def claim_on(node: str, entries: Sequence[Claim], damaged: Sequence[str], now: Instant) -> Steps[list[Job]]:
    """Bury what was claimed and cannot be read, and claim others in its place."""
    yield from _why_refused(node)
    yield from claim.bury(damaged, "running", now)
    return (yield from claim.claim(node, entries, now)).jobs


def _why_refused(node: str) -> Steps[None]:
    """Raise if the node may not speak; return if it has merely said this before."""
    yield from _own_exchange(node)


def _own_exchange(node: str) -> Steps[int]:
    """Lock the node's exchanges; returns the number of the last. Raises if the node may not speak."""
    rows = yield Query("lock_exchange", (node,))
    if not rows:
        raise NodeRefused(f"node {node} has no lease: renew it first, or it was rescued meanwhile")
    ((sequence, sealed),) = rows
    if sealed:
        raise _refused(node)
    return int(sequence)


def held(node: str) -> Steps[Held]:
    """What a node has, as the store sees it."""
    sequence = yield from _own_exchange(node)
    rows = yield Query("held_claims", (node,))
    return Held(sequence, tuple(HeldJob(*row) for row in rows))


def to_rescue(node: str, gone: Sequence[str]) -> Steps[list[str]]:
    """Which nodes this one may rescue now; seals them."""
    rows = yield Query("all_nodes", ())
    ((now, epoch),) = yield LeaseClock()
    leases = {row[0]: Lease(*row[:7]) for row in rows}
    sealed = {row[0] for row in rows if row[8]}
    rescuer = leases.get(node)
    if rescuer is None or node in sealed or rescuer.expired(now, epoch):
        return []
    # As it would be if the node renewed now: one that was away and rescues first has a gap as well
    steady = now - rescuer.steady_at(now, epoch) >= rescuer.lease

    def may_rescue(other: Lease) -> bool:
        is_gone = other.id in gone and other.host == rescuer.host
        return other.id in sealed or is_gone or (steady and other.expired(now, epoch))

    chosen = sorted(lease.id for lease in leases.values() if lease.id != node and may_rescue(lease))
    return (yield from _seal(chosen, may_rescue))


def _seal(chosen: Sequence[str], may_rescue: Callable[[Lease], bool]) -> Steps[list[str]]:
    """Seal these nodes; returns which were.

    A node whose lease or exchange is locked is passed over: it renews or exchanges at this moment, so it
    lives, or its server has not noticed its death yet. Waiting for it would keep all other dead nodes from
    being rescued. Shown by tests/stores/test_locks.py, test_a_node_in_a_long_exchange_keeps_no_other_...
    """
    done: list[str] = []
    for other in chosen:
        # Read again under its lock: it may have renewed meanwhile, and then it lives
        row = yield Query("try_lease", (other,))
        if row and may_rescue(Lease(*row[0])) and (yield Query("try_exchange", (other,))):
            yield Query("seal", (other,))
            done.append(other)
    return done


def rescue_batch(dead: str, now: Instant) -> Steps[int]:
    """Revive some jobs of a sealed node; 0 when none can be now. When none is left its record is gone too;
    a job that another transaction has locked is left to the next rescue."""
    if not (yield Query("lock_lease", (dead,))):
        return 0
    jobs = yield Query("rescue_jobs", (dead, BATCH))
    if not jobs:
        if not (yield Query("held_left", (dead,))):
            yield Query("forget_node", (dead, now))
            yield Query("delete_node", (dead,))
            yield Query("close_exchange", (dead,))
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
        lease = Lease(*row[:7])
        left = (lease.lease_until - now) / MICROSECONDS if lease.epoch == epoch else -1.0
        sequence, sealed, running = row[7:10]
        found.append(
            NodeRecord(lease.id, lease.host, bytes(lease.info), left, sequence, bool(sealed), int(running))
        )
    return sorted(found, key=lambda record: record.id)
