"""The eighteen verbs of a SQL store, each handed to its driver as steps.

The driver supplies `write` (a transaction), `read`, `joined` (the caller's own transaction), and what
cannot be said in SQL: opening, migrating, waiting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from millpond.ids import GREATEST, is_id
from millpond.job import ENDS, Enqueued, Job, NewJob, Settlement, Slot
from millpond.store.pages import total
from millpond.store.protocol import (
    LEASE,
    PAGE,
    Claim,
    Counts,
    Document,
    Entry,
    Exchanged,
    Filter,
    Held,
    Minute,
    Page,
    Progress,
    Rescued,
    Retention,
    Started,
    Tick,
)
from millpond.store.sql import admin, after_end, documents, enqueue, leases, search, statistics
from millpond.store.sql.query import Steps
from millpond.store.upgrade import Upgrade
from millpond.store.versions import Versions

T = TypeVar("T")
FEW, MANY = 4, 200  # steps in which dependents of jobs that ended are reached


class RelationalStore(ABC):
    """A store in a database that speaks SQL."""

    url: str
    versions: Versions
    enqueue_plain = staticmethod(enqueue.enqueue_plain)
    shares_rows = False  # may a row be locked by another transaction at this moment?

    @abstractmethod
    def ask_version(self) -> None:
        """See which schema is there now."""

    @abstractmethod
    def upgrade(self) -> AbstractContextManager[Upgrade]:
        """The way to the version that this code knows."""

    @abstractmethod
    def script(self, since: int | None) -> str:
        """What `migrate` would say to a store of this version, or to one without tables."""

    def migrate(self) -> list[str]:
        """Create the tables, or bring older ones up to date."""
        with self.upgrade() as upgrade:
            return upgrade.migrate()

    def ask_now_and_then(self) -> None:
        """Before something new is stored: may this code still work on the schema? Asked once a minute."""
        if self.versions.is_due():
            self.ask_version()
        self.versions.refuse()

    @abstractmethod
    def write(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb in a transaction of its own; `make` is told the time."""

    @abstractmethod
    def read(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb that changes nothing."""

    @abstractmethod
    def joined(self, transaction: object, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb in the caller's transaction."""

    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none."""
        if not jobs:
            return []
        self.ask_now_and_then()
        plain = enqueue.is_plain(jobs)
        if transaction is not None:
            steps = self.enqueue_plain if plain else partial(enqueue.enqueue, parks=False)
            return self.joined(transaction, lambda now: steps(jobs, now))
        steps = self.enqueue_plain if plain else enqueue.enqueue
        return self.write_jobs(lambda now: steps(jobs, now))

    def write_jobs(self, make: Callable[[int], Steps[T]]) -> T:
        """Run a verb that stores jobs in a transaction of its own."""
        return self.write(make)

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
        """Settle what finished and claim what fits, in one step."""
        if claims and not (settlements or started or progress):
            claimed = self.claim_alone(node, sequence, claims)
            if claimed is not None:
                return claimed
        return self.write(
            lambda now: leases.exchange(
                node,
                sequence,
                now,
                settlements=settlements,
                started=started,
                progress=progress,
                claims=claims,
            )
        )

    def claim_alone(self, node: str, sequence: int, claims: Sequence[Claim]) -> Exchanged | None:
        """An exchange that only claims, where a driver has a shorter way; None if nothing has happened. One
        that gets nothing and tells nothing need not be counted: to hear it twice changes nothing."""
        return None

    def renew(self, node: str, host: str, info: bytes = b"{}", lease: float = LEASE) -> None:
        """Take or renew a node's lease; a lease of 0 gives it up."""
        if lease > 0:
            self.versions.note(self.write(lambda _: leases.renew(node, host, info, lease)))
        elif self.write(lambda _: leases.give_up(node)):
            self._revive(node)

    def held(self, node: str) -> Held:
        """What this node holds."""
        return self.write(lambda _: leases.held(node))

    def rescue(self, node: str, gone: Sequence[str] = ()) -> Rescued:
        """Revive the jobs of nodes that are gone."""
        sealed = self.write(lambda _: leases.to_rescue(node, gone))
        each = tuple(self._revive(dead) for dead in sealed)
        self._go_on(FEW)
        return Rescued(tuple(sealed), sum(each), each)

    def _revive(self, dead: str) -> int:
        """Batch by batch, each a step of its own: killed in between, another node goes on."""
        jobs = 0
        while number := self.write(lambda now: leases.rescue_batch(dead, now)):
            jobs += number
        return jobs

    def _go_on(self, most: int) -> None:
        """Reach the dependents of jobs that ended, in so many steps at most; claims go on with the rest. A
        rescue must not keep other dead nodes waiting for a million of them."""
        for _ in range(most):
            if not self.write(after_end.go_on):
                return

    def cancel(self, chosen: Filter) -> int:
        """End waiting jobs, ask for the end of running ones."""
        number = total(self._cancelled(chosen))
        self._go_on(MANY)
        return number

    def _cancelled(self, chosen: Filter) -> Iterator[int]:
        """First all that no other transaction has locked, then the rest, which is waited for. A user's
        transaction may hold one of a million for hours: waiting for it first would keep the others from being
        cancelled (tests/stores/test_locks.py, test_a_job_that_is_locked_keeps_no_other_from_being_cancelled).
        """
        narrowed = admin.among(chosen, admin.UNENDED)
        if narrowed is None:
            return
        yield from self._each_page(narrowed, admin.cancel)
        if self.shares_rows:
            yield from self._each_page(narrowed, partial(admin.cancel, waits=True))

    def replay(self, chosen: Filter) -> int:
        """Queue dead jobs again with fresh budgets."""
        return total(self._replayed(chosen))

    def _replayed(self, chosen: Filter) -> Iterator[int]:
        number, below = self.write(lambda now: admin.replay(chosen, now, None))
        yield number
        while below is not None:
            number, below = self.write(partial(admin.replay, chosen, below=below))
            yield number

    def prune(self, retention: Retention, chosen: Filter | None = None) -> int:
        """Delete what ended long ago, or ended jobs by choice."""
        if chosen is not None:
            narrowed = admin.among(chosen, ENDS)
            return total(self._each_page(narrowed, admin.discard)) if narrowed is not None else 0
        return total(self._repeat(lambda now: admin.prune(retention, now)))

    def _repeat(self, make: Callable[[int], Steps[tuple[int, bool]]]) -> Iterator[int]:
        """Page by page, so that no transaction grows with the number of jobs."""
        more = True
        while more:
            number, more = self.write(make)
            yield number

    def _each_page(
        self, chosen: Filter, change: Callable[[Filter, list[str], int], Steps[int]]
    ) -> Iterator[int]:
        """The same for jobs by choice, the newest first."""
        for ids in self._pages_of(chosen):
            yield self.write(partial(change, chosen, ids))

    def _pages_of(self, chosen: Filter) -> Iterator[list[str]]:
        """Pages of ids, below each other. They are looked for before the transaction that changes them: a few
        jobs among ten million that ended long ago would otherwise keep an SQLite file locked for as long as
        it takes to look at all of those (tests/stores/test_looking.py)."""
        if chosen.ids:
            ids = sorted({job for job in chosen.ids if is_id(job)}, reverse=True)
            yield from (ids[first : first + PAGE] for first in range(0, len(ids), PAGE))
            return
        below: str | None = GREATEST
        while below is not None:
            ids, below = self._page_below(chosen, below)
            if ids:
                yield ids

    def _page_below(self, chosen: Filter, below: str) -> tuple[list[str], str | None]:
        return self.read(lambda _: search.look(chosen, PAGE, below))

    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked."""
        return self.read(lambda _: search.get(ids))

    def search(self, chosen: Filter, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs, newest first."""
        return self.read(lambda _: search.search(chosen, limit, cursor))

    def counts(self, *, ready_only: bool = False) -> Counts:
        """How many jobs there are, by queue and state, and which nodes."""
        return self.read(lambda now: search.counts(now, ready_only=ready_only))

    def statistics(self, since: int, until: int) -> list[Minute]:
        """What happened from one minute up to another."""
        return self.read(lambda _: statistics.statistics(since, until))

    def configure(
        self,
        *,
        queue: str | None = None,
        paused: bool | None = None,
        rate: float | None = None,
        slot: Slot | None = None,
    ) -> None:
        """Pause or resume a queue, set its rate, set a slot's capacity."""
        self.write(lambda now: admin.configure(queue, paused, rate, slot, now))

    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        """Record ticks and enqueue their jobs."""
        self.ask_now_and_then()
        return self.write(lambda now: documents.plan(ticks, now))

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document."""
        run = self.read if value is None else self.write
        return run(lambda _: documents.record(name, value, version))

    def log(
        self, name: str, entries: Sequence[bytes] = (), *, after: int = 0, limit: int = 100, keep: int = 1000
    ) -> list[Entry]:
        """Append to a bounded log and read on from a number."""
        run = self.write if entries else self.read
        return run(lambda now: documents.log(name, entries, now, after=after, limit=limit, keep=keep))
