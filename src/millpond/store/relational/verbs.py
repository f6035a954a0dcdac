"""The eighteen verbs of a SQL store, each handed to its driver as steps.

The driver supplies `write` (a transaction), `read`, `joined` (the caller's own transaction), and what
cannot be said in SQL: opening, migrating, waiting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from millpond.job import Enqueued, Job, NewJob, Settlement, Slot
from millpond.store.protocol import (
    LEASE,
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
from millpond.store.relational import admin, enqueue, leases, reading, records, statistics
from millpond.store.relational.query import Steps

T = TypeVar("T")


class RelationalStore(ABC):
    """A store in a database that speaks SQL."""

    url: str

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
        plain = enqueue.is_plain(jobs)
        if transaction is not None:
            steps = enqueue.enqueue_plain if plain else partial(enqueue.enqueue, parks=False)
            return self.joined(transaction, lambda now: steps(jobs, now))
        steps = enqueue.enqueue_plain if plain else enqueue.enqueue
        return self.write(lambda now: steps(jobs, now))

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
            self.write(lambda _: leases.renew(node, host, info, lease))
        elif self.write(lambda _: leases.give_up(node)):
            self._revive(node)

    def held(self, node: str) -> Held:
        """What this node holds."""
        return self.write(lambda _: leases.held(node))

    def rescue(self, node: str, gone: Sequence[str] = ()) -> Rescued:
        """Revive the jobs of nodes that are gone."""
        sealed = self.write(lambda _: leases.to_rescue(node, gone))
        return Rescued(tuple(sealed), sum(self._revive(dead) for dead in sealed))

    def _revive(self, dead: str) -> int:
        """Batch by batch, each a step of its own: killed in between, another node goes on."""
        jobs = 0
        while number := self.write(lambda now: leases.rescue_batch(dead, now)):
            jobs += number
        return jobs

    def cancel(self, chosen: Filter) -> int:
        """End waiting jobs, ask for the end of running ones."""
        return self._repeat(lambda now: admin.cancel(chosen, now))

    def replay(self, chosen: Filter) -> int:
        """Queue dead jobs again with fresh budgets."""
        total, below = self.write(lambda now: admin.replay(chosen, now, None))
        while below is not None:
            number, below = self.write(partial(admin.replay, chosen, below=below))
            total += number
        return total

    def prune(self, retention: Retention, chosen: Filter | None = None) -> int:
        """Delete what ended long ago, or ended jobs by choice."""
        if chosen is not None:
            return self._repeat(lambda now: admin.discard(chosen, now))
        return self._repeat(lambda now: admin.prune(retention, now))

    def _repeat(self, make: Callable[[int], Steps[tuple[int, bool]]]) -> int:
        """Page by page, so that no transaction grows with the number of jobs."""
        total, more = 0, True
        while more:
            number, more = self.write(make)
            total += number
            more = more and number > 0
        return total

    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked."""
        return self.read(lambda _: reading.get(ids))

    def search(self, chosen: Filter, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs, newest first."""
        return self.read(lambda _: reading.search(chosen, limit, cursor))

    def counts(self, *, ready_only: bool = False) -> Counts:
        """How many jobs there are, by queue and state, and which nodes."""
        return self.read(lambda now: reading.counts(now, ready_only=ready_only))

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
        return self.write(lambda now: records.plan(ticks, now))

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document."""
        run = self.read if value is None else self.write
        return run(lambda _: records.record(name, value, version))

    def log(
        self, name: str, entries: Sequence[bytes] = (), *, after: int = 0, limit: int = 100, keep: int = 1000
    ) -> list[Entry]:
        """Append to a bounded log and read on from a number."""
        run = self.write if entries else self.read
        return run(lambda now: records.log(name, entries, now, after=after, limit=limit, keep=keep))
