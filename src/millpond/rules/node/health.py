"""Is a node alive, does it take work, and what about it should worry somebody.

Reports in, verdicts with their reasons out. A store that is away never costs a node its life: running jobs go
on, so only readiness turns red. A concern is told once when it begins and once when it is over, and one that
comes and goes within its patience is never told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

DEAF_AFTER = 15.0  # seconds without a completed round with the store: a lease
STUCK_AFTER = 60.0  # the same while the store answers: then the node itself stands still
MOST_UNSETTLED = 64 * 1024 * 1024  # bytes of outcomes beyond which nothing more is started
CROWD = 5  # jobs in line for each that can run at once

Status = Literal["ok", "degraded", "failed"]
ConcernKind = Literal["backing_up", "wait", "pool", "store"]


class PoolFacts(Protocol):
    """What must be known of a pool; a PoolReport has it."""

    @property
    def name(self) -> str: ...
    @property
    def most(self) -> int: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def claimed(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def max_wait(self) -> float | None: ...
    @property
    def oldest_wait(self) -> float | None: ...
    @property
    def rates(self) -> Mapping[str, float]: ...
    @property
    def status(self) -> Status: ...
    @property
    def reasons(self) -> Sequence[str]: ...


class NodeFacts(Protocol):
    """What must be known of a node; a NodeReport has it."""

    @property
    def state(self) -> str: ...
    @property
    def round_age(self) -> float: ...
    @property
    def lease_left(self) -> float: ...
    @property
    def store_trouble(self) -> str | None: ...
    @property
    def unsettled(self) -> int: ...
    @property
    def unsettled_bytes(self) -> int: ...
    @property
    def unrecorded(self) -> Sequence[str]: ...
    @property
    def schema_trouble(self) -> str | None: ...
    @property
    def pools(self) -> Sequence[PoolFacts]: ...


class Verdict(NamedTuple):
    """Yes or no. `reason` is one word that tells nothing about the jobs; `sentence` is for the log."""

    ok: bool
    reason: str = "ok"
    sentence: str = ""


class Concern(NamedTuple):
    """Something about a pool, or about the node when `pool` is empty, that somebody should look at."""

    kind: ConcernKind
    pool: str
    sentence: str
    amount: float = 0.0  # jobs in line, or seconds
    limit: float = 0.0


class Patience(NamedTuple):
    """How long a concern must last before it is told, and be gone before its end is."""

    begin: float
    end: float


PATIENCE: Mapping[ConcernKind, Patience] = {
    "backing_up": Patience(30.0, 10.0),  # a rush that is worked off in half a minute is what queues are for
    "wait": Patience(0.0, 10.0),  # the wait is a duration by itself
    "pool": Patience(0.0, 5.0),
    "store": Patience(0.0, 0.0),
}


class Seen(NamedTuple):
    """A concern that was there when last looked, or has not been gone for long."""

    concern: Concern
    first_at: float
    last_at: float
    is_told: bool


Watch = Mapping[tuple[ConcernKind, str], Seen]


class Change(NamedTuple):
    """A concern that has to be told: it `began`, or it is over after `lasted` seconds."""

    concern: Concern
    began: bool
    lasted: float = 0.0


# --- alive and ready -------------------------------------------------------------------------------------
def is_live(node: NodeFacts, *, stuck_after: float = STUCK_AFTER) -> Verdict:
    """Would a restart help? Not while the store is away, and not while the node drains."""
    if node.state == "stopped":
        return Verdict(False, "stopped", "the node has stopped")
    if node.state == "running" and node.store_trouble is None and _is_silent(node, stuck_after):
        return Verdict(
            False, "stuck", f"no round was completed for {node.round_age:.0f} s though the store answers"
        )
    return Verdict(True)


def is_ready(node: NodeFacts, *, deaf_after: float = DEAF_AFTER) -> Verdict:
    """Does the node take work now? The first reason against it is given."""
    if node.state != "running":
        return Verdict(False, node.state, f"the node is {node.state} and claims nothing")
    if _is_silent(node, deaf_after):
        why = f": {node.store_trouble}" if node.store_trouble else ""
        reason = "store" if node.store_trouble else "deaf"
        return Verdict(False, reason, f"no round with the store for {node.round_age:.0f} s{why}")
    if node.schema_trouble is not None:
        return Verdict(False, "schema", node.schema_trouble)
    if node.lease_left <= 0:
        return Verdict(False, "lease", "the lease has run out, so nothing may be claimed")
    if node.unsettled_bytes >= MOST_UNSETTLED:
        return Verdict(False, "full", f"{node.unsettled_bytes:,} bytes of outcomes wait for the store")
    if node.pools and all(pool.status != "ok" for pool in node.pools):
        return Verdict(False, "pools", "no pool can run jobs: " + "; ".join(_troubles(node.pools)))
    if node.unrecorded:  # it takes work all the same: the others are settled
        return Verdict(True, "unrecorded", "; ".join(node.unrecorded))
    return Verdict(True)


def _is_silent(node: NodeFacts, longest: float) -> bool:
    """Has it had something to say to the store for longer than this, and not said it?

    A node whose workers are busy with long jobs, and which has nothing to settle, rightly asks for nothing.
    """
    has_room = any(pool.status == "ok" and pool.claimed < pool.most * pool.concurrency for pool in node.pools)
    has_to_speak = has_room or node.unsettled > 0 or node.store_trouble is not None
    return has_to_speak and node.round_age > longest


# --- concerns --------------------------------------------------------------------------------------------
def concerns(node: NodeFacts) -> tuple[Concern, ...]:
    """Everything worrying about the node at this moment, the node itself first."""
    found = [] if node.store_trouble is None else [Concern("store", "", node.store_trouble, node.round_age)]
    for pool in node.pools:
        found += _concerns_of(pool)
    return tuple(found)


def _concerns_of(pool: PoolFacts) -> Iterable[Concern]:
    if pool.status != "ok":
        yield Concern("pool", pool.name, "; ".join(_troubles([pool])))
    crowd = CROWD * pool.most * pool.concurrency
    if pool.waiting > crowd:
        cause = _limits(pool) or f"{pool.most * pool.concurrency:,} can run at once"
        sentence = f"{pool.waiting:,} jobs are in line, {cause}"
        yield Concern("backing_up", pool.name, sentence, pool.waiting, crowd)
    if pool.max_wait is not None and pool.oldest_wait is not None and pool.oldest_wait > pool.max_wait:
        limits = _limits(pool)
        sentence = f"the first job in line has waited {pool.oldest_wait:.1f} s of {pool.max_wait:g} s"
        sentence += f"; {limits}" if limits else ""
        yield Concern("wait", pool.name, sentence, pool.oldest_wait, pool.max_wait)


def _limits(pool: PoolFacts) -> str:
    """The rates that hold jobs back: there, more workers would not help."""
    return " and ".join(
        f"queue {queue} is limited to {rate:g} a second" for queue, rate in pool.rates.items()
    )


def _troubles(pools: Sequence[PoolFacts]) -> Iterable[str]:
    return (f"{pool.name} is {pool.status}" + "".join(f", {why}" for why in pool.reasons) for pool in pools)


def observe(
    watch: Watch, found: Iterable[Concern], now: float
) -> tuple[dict[tuple[ConcernKind, str], Seen], list[Change]]:
    """The watch after one more look, and what has to be told now."""
    present = {(concern.kind, concern.pool): concern for concern in found}
    after: dict[tuple[ConcernKind, str], Seen] = {}
    changes: list[Change] = []
    for key, concern in present.items():
        before = watch.get(key)
        first_at = now if before is None else before.first_at
        was_told = before is not None and before.is_told
        is_due = now - first_at >= PATIENCE[concern.kind].begin
        if is_due and not was_told:
            changes.append(Change(concern, True, now - first_at))
        after[key] = Seen(concern, first_at, now, was_told or is_due)
    for key, seen in watch.items():
        if key in present or not seen.is_told:
            continue
        if now - seen.last_at >= PATIENCE[seen.concern.kind].end:
            changes.append(Change(seen.concern, False, now - seen.first_at))
        else:
            after[key] = seen
    return after, changes
