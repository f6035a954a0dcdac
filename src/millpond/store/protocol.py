"""The Store protocol: eighteen verbs, synchronous, batch-first; and the records they speak in.

Every verb is one atomic step or a loop of atomic, idempotent steps. Writes about a running job carry
(node, token); a stale one changes nothing and is reported. Verbs raise StoreBusy or StoreUnavailable when
nothing happened, OutcomeUnknown when it may have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

import msgspec

from millpond.job import Enqueued, Instant, Job, JobState, NewJob, Settlement, Slot
from millpond.store.upgrade import Upgrade
from millpond.store.versions import Versions

LEASE = 15.0  # seconds a node's lease lasts unless it is renewed
LOOK = 0.002  # seconds between two looks whether an answer is here, for who has other work meanwhile
PAGE = 1000  # the most a reading verb returns at once


class Claim(msgspec.Struct, frozen=True):
    """Ask for up to `limit` jobs of a queue, but none of these tasks: they cannot start here now."""

    queue: str
    limit: int
    without: tuple[str, ...] = ()


class Started(msgspec.Struct, frozen=True):
    """A claimed job has begun: from here on its loss is charged."""

    id: str
    token: int


class Progress(msgspec.Struct, frozen=True):
    """How far a running job has come, as JSON."""

    id: str
    token: int
    data: bytes


class Said(NamedTuple):
    """What one exchange tells the store."""

    settlements: Sequence[Settlement] = ()
    started: Sequence[Started] = ()
    progress: Sequence[Progress] = ()
    claims: Sequence[Claim] = ()


class Exchanged(msgspec.Struct, frozen=True):
    """The answer to an exchange."""

    claimed: Sequence[Job] = ()
    stale: tuple[str, ...] = ()  # ids of settlements, starts and progress that were refused
    cancelling: tuple[str, ...] = ()  # jobs of this node that somebody wants ended
    replayed: bool = False  # this sequence was applied before: ask `held` what came of it
    got: Mapping[str, int] | None = None  # claimed, by queue; from a store that knows before reading them
    deferred: tuple[str, ...] = ()  # ids of settlements that another transaction's lock keeps out: send again
    more: bool = False  # the claim stopped at a bound: claim again at once

    def by_queue(self) -> Mapping[str, int]:
        """How many jobs of which queue were claimed."""
        if self.got is not None:
            return self.got
        if len(self.claimed) == 1:  # somebody waits for it
            return {self.claimed[0].queue: 1}
        return Counter([job.queue for job in self.claimed])


class NodeRecord(msgspec.Struct, frozen=True):
    """A node incarnation and its lease."""

    id: str
    host: str
    info: bytes  # JSON, for people
    lease_left: float  # seconds; negative when it has run out
    sequence: int  # of its last exchange
    sealed: bool  # it is being rescued, and refused
    running: int


class HeldJob(msgspec.Struct, frozen=True):
    """One claim that the store believes a node has; `get` brings the whole job."""

    id: str
    token: int
    queue: str
    task: str


class Held(msgspec.Struct, frozen=True):
    """What the store believes a node has: to settle an exchange whose outcome is unknown, and to find what
    either side has lost."""

    sequence: int
    jobs: tuple[HeldJob, ...]  # by id


class Rescued(msgspec.Struct, frozen=True):
    """What a rescue did."""

    nodes: tuple[str, ...] = ()
    jobs: int = 0  # of all of them
    each: tuple[int, ...] = ()  # of each of them, in their order


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs; everything that is given must hold."""

    states: tuple[JobState, ...] = ()
    queue: str | None = None
    task: str | None = None
    ids: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """Some jobs, newest first, and where to go on."""

    jobs: tuple[Job, ...]
    cursor: str | None


class QueueCounts(msgspec.Struct, frozen=True):
    """One queue at the moment of asking."""

    queue: str
    paused: bool
    rate: float | None
    states: dict[JobState, int]
    oldest: float | None  # seconds the first job in line has been due


class Counts(msgspec.Struct, frozen=True):
    """What there is at the moment of asking."""

    queues: tuple[QueueCounts, ...]  # every queue that is configured or has jobs, by name
    nodes: tuple[NodeRecord, ...]  # every node that has a lease or is being rescued


class Minute(msgspec.Struct, frozen=True):
    """What happened in a queue in one minute."""

    queue: str
    minute: int  # minutes since 1970
    counts: dict[str, int]  # enqueued, completed, dead, cancelled, retried, replayed
    wait: dict[int, int]  # histogram: bucket -> count; bucket b holds [2**(b/2), 2**((b+1)/2)) microseconds
    run: dict[int, int]


class Tick(msgspec.Struct, frozen=True):
    """One instant at which a recurring task is due, with the job it makes (or none: skipped)."""

    recurring: str
    at: Instant
    job: NewJob | None = None


class Document(msgspec.Struct, frozen=True):
    """A small versioned record; version 0 means that it does not exist."""

    value: bytes
    version: int


class Entry(msgspec.Struct, frozen=True):
    """A line of a bounded log."""

    number: int
    at: Instant
    data: bytes


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long ends are kept, in seconds. That a tick was planned has to be known for longer than any planner
    can believe what it read; its job is kept like every other."""

    completed: float = 7 * 86_400.0
    cancelled: float = 7 * 86_400.0
    dead: float = 90 * 86_400.0
    statistics: float = 30 * 86_400.0
    ticks: float = 7 * 86_400.0


Durability = Literal["durable", "survives a crash of the process, not of the machine", "not durable"]


class StoreClock(Protocol):
    """The time by which a store orders and schedules jobs."""

    def now(self) -> Instant:
        """Microseconds since 1970; does not ask a server each time."""


class Store(Protocol):
    """Where jobs live."""

    url: str  # without its password
    versions: Versions  # which schema this code knows, and which the store was last seen to have

    @property
    def clock(self) -> StoreClock:
        """The store's time."""

    def durability(self) -> str:
        """What an acknowledged job survives, in words."""

    def close(self) -> None:
        """Let go of connections; the store can be used again and opens new ones."""

    # 1
    def migrate(self) -> list[str]:
        """Bring the schema up to date; returns what was done. Idempotent, safe to run from many places."""

    def upgrade(self) -> AbstractContextManager[Upgrade]:
        """What `migrate` would do, step by step, and what may be taken away afterwards."""

    def script(self, since: int | None) -> str:
        """The same from a version on, or from nothing, as statements for the shell of the database."""

    # 2
    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none. A known id, or a unique key that is held, makes no second job."""

    # 3
    def exchange(
        self,
        node: str,
        sequence: int,
        *,
        settlements: Sequence[Settlement] = (),
        started: Sequence[Started] = (),
        progress: Sequence[Progress] = (),
        claims: Sequence[Claim] = (),
    ) -> Exchanged:
        """Settle what finished and claim what fits, in one step. Raises NodeRefused without a lease.

        Of an exchange that only claims, gets nothing and tells nothing, a store may forget the number: the
        same one said again would not be refused as replayed, and do no harm.
        """

    # 4
    def renew(self, node: str, host: str, info: bytes = b"{}", lease: float = LEASE) -> None:
        """Take or renew a node's lease; `versions` has what the store says of its schema then. Raises
        NodeRefused once the incarnation was rescued."""

    # 5
    def held(self, node: str) -> Held:
        """What this node holds, without the jobs themselves. Raises NodeRefused without a lease."""

    # 6
    def rescue(self, node: str, gone: Sequence[str] = ()) -> Rescued:
        """Revive the jobs of nodes whose lease has run out, and of those on this host known to be gone.

        Does nothing unless `node` itself has renewed without a gap for a full lease.
        """

    # 7
    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until there may be work in one of the queues, at most `timeout`. Only a hint."""

    # 8
    def cancel(self, chosen: Filter) -> int:
        """End waiting jobs at once and ask for the end of running ones; returns how many."""

    # 9
    def replay(self, chosen: Filter) -> int:
        """Queue dead jobs again with fresh budgets; returns how many."""

    # 10
    def prune(self, retention: Retention, chosen: Filter | None = None) -> int:
        """Delete what ended longer ago than retention says; with a filter, just those (discard)."""

    # 11
    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked."""

    # 12
    def search(self, chosen: Filter, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs, newest first. A page may be short though there is more: go on while there is a cursor."""

    # 13
    def counts(self, *, ready_only: bool = False) -> Counts:
        """How many jobs there are, by queue and state, and which nodes.

        With `ready_only` just those that stand in line and are not parked at a full slot: what more workers
        could run. It is quick however much has ended.
        """

    # 14
    def statistics(self, since: int, until: int) -> list[Minute]:
        """What happened from one minute up to another, by queue and minute."""

    # 15
    def configure(
        self,
        *,
        queue: str | None = None,
        paused: bool | None = None,
        rate: float | None = None,
        slot: Slot | None = None,
    ) -> None:
        """Pause or resume a queue, set its rate (jobs a second, 0 for no limit), set a slot's capacity."""

    # 16
    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        """Record ticks and enqueue their jobs; False where the instant was planned before."""

    # 17
    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read a document; with a value, write it if its version is still `version` (else Conflict)."""

    # 18
    def log(
        self, name: str, entries: Sequence[bytes] = (), *, after: int = 0, limit: int = 100, keep: int = 1000
    ) -> list[Entry]:
        """Append lines to a bounded log and read those after a number."""
