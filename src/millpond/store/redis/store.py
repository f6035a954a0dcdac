"""Jobs in Redis or Valkey, alone or as a cluster: every step one atomic script, by the server's clock.

All keys of a namespace share one hash tag. Rules that live in Python are applied by reading, deciding and
writing under the fence of (node, token): being killed in between leaves work, not damage.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any
from weakref import WeakSet

import msgspec

from millpond.errors import Conflict, NodeRefused, OutcomeUnknown, StoreError, StoreRefused, UnknownJob
from millpond.job import MICROSECONDS, Enqueued, Job, NewJob, Settlement, Slot
from millpond.rules.store.headroom import Memory
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
    HeldJob,
    Minute,
    Page,
    Progress,
    Rescued,
    Retention,
    Said,
    Started,
    Tick,
)
from millpond.store.redis import search as reading
from millpond.store.redis import server_facts
from millpond.store.redis.connection import Meanwhile, Server
from millpond.store.redis.encoding import Unread, by_queue, new_job, sorted_out, text_of, verdict
from millpond.store.redis.enqueue_batches import half_stored, in_steps, parents_outside
from millpond.store.redis.rescue import revive
from millpond.store.redis.schema import RedisUpgrade
from millpond.store.redis.subscription import Subscription
from millpond.store.redis.url import Address

WAITING = ("blocked", "scheduled", "queued")
ENDED = ("completed", "dead", "cancelled")
DELETED = 200  # jobs that one script deletes: all others wait for the server meanwhile


class RedisStore:
    """A store in a namespace of a Redis or Valkey server."""

    def __init__(self, url: str, *, patience: float | None = None) -> None:
        self._begin(Server(Address(url), patience=patience))

    @classmethod
    def from_client(cls, client: Any, namespace: str = "millpond") -> RedisStore:
        """A store on a ready-made client of redis-py or valkey-py, alone or for a cluster."""
        store = cls.__new__(cls)
        store._begin(Server(None, client, namespace))
        return store

    def _begin(self, server: Server) -> None:
        self._server = server
        self.url = server.url
        self.clock = server.clock
        self.versions = server.versions
        self._here = threading.local()
        self._subscriptions: WeakSet[Subscription] = WeakSet()

    @property
    def hang_ups(self) -> int:
        """How many connections the server has closed while they lay idle."""
        return self._server.hang_ups

    def durability(self) -> str:
        """What an acknowledged job survives."""
        persistence = server_facts.info(self._server.send, "persistence")
        if not persistence:
            return "not durable, as far as we can see: INFO is forbidden here"
        if persistence.get("aof_enabled") != "1":
            return "not durable: the server keeps no append-only file; set `appendonly yes`"
        rule = server_facts.setting(self._server.send, "appendfsync")
        if rule == "always":
            return f"durable: appendfsync always{self._and_replicas()}"
        said = rule or "unknown, as CONFIG is forbidden here"
        return (
            "usually survives a crash of the server process, which may answer before it has written; "
            f"a power cut takes about the last second: appendfsync {said}{self._and_replicas()}"
        )

    def _and_replicas(self) -> str:
        number = server_facts.info(self._server.send, "replication").get("connected_slaves", "0")
        return "" if number == "0" else "; a fail-over may lose what was not copied yet to a replica"

    def memory(self) -> Memory | None:
        """The server's memory; None where INFO is forbidden."""
        found = server_facts.info(self._server.send, "memory")
        return Memory(int(found.get("used_memory", 0)), int(found.get("maxmemory", 0))) if found else None

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        for subscription in list(self._subscriptions):
            subscription.close()
        self._server.close()

    def migrate(self) -> list[str]:
        """Make the namespace, or bring it up to date."""
        with self.upgrade() as upgrade:
            return upgrade.migrate()

    def upgrade(self) -> AbstractContextManager[RedisUpgrade]:
        """The way to the version that this code knows."""
        return self._server.upgrade()

    def script(self, since: int | None) -> str:
        """There are no statements to show."""
        raise StoreRefused("Redis is migrated by scripts, not by SQL: see `millpond migrate --dry-run`")

    # --- jobs -------------------------------------------------------------------------------------------
    def enqueue(self, jobs: Sequence[NewJob], transaction: object | None = None) -> list[Enqueued]:
        """Store jobs, all or none; very many in several steps, each all or none."""
        if transaction is not None:
            raise StoreRefused(
                "transaction= needs a store in the transaction's database, and Redis cannot take part in it: "
                "enqueue after the commit, or use PostgreSQL or SQLite"
            )
        if not jobs:
            return []
        self._server.ask_now_and_then()
        steps = in_steps(jobs)
        if len(steps) > 1:
            self._refuse_unknown_parents(jobs)
        answers: list[Enqueued] = []
        for step in steps:
            try:
                answers += self._enqueue_step(step)
            except (StoreError, UnknownJob) as error:
                if answers:
                    raise half_stored(len(answers), len(jobs), error) from error
                raise
        return answers

    def _enqueue_step(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = self._stored("enqueue", [new_job(job) for job in jobs])
        return [Enqueued(job.decode(), bool(created)) for job, created in answers]

    def _refuse_unknown_parents(self, jobs: Sequence[NewJob]) -> None:
        """Before the first of several steps: what can be refused is refused before anything is stored."""
        wanted = parents_outside(jobs)
        found = [
            job for first in range(0, len(wanted), PAGE) for job in self.get(wanted[first : first + PAGE])
        ]
        missing = {parent for parent, job in zip(wanted, found, strict=True) if job is None}
        for job in jobs if missing else ():
            for parent in missing.intersection(job.depends_on):
                raise UnknownJob(f"job {job.id} depends on {parent}, which is not in the store")

    def _stored(self, name: str, arguments: Sequence[Any]) -> Any:
        status, *rest = self._server.run(name, (arguments,))
        if status == b"unknown":
            job, parent = (part.decode() for part in rest)
            raise UnknownJob(f"job {job} depends on {parent}, which is not in the store")
        return rest[0]

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
        said = Said(settlements, started, progress, claims)
        rows, answer = self._exchange(None, node, sequence, said)
        jobs = self._claimed(rows, node, sequence, claims) if rows else ()
        return msgspec.structs.replace(answer, claimed=tuple(jobs))

    def exchange_meanwhile(self, meanwhile: Meanwhile, node: str, sequence: int, said: Said) -> Exchanged:
        """An exchange; `meanwhile` is called again and again while the server is at work. What it claimed is
        read when somebody looks at it: during the next exchange, if that is said first."""
        rows, answer = self._exchange(meanwhile, node, sequence, said)
        return msgspec.structs.replace(
            answer, claimed=Unread(rows, partial(self._read, node)), got=by_queue(rows)
        )

    def _read(self, node: str, rows: Sequence[Any]) -> list[Job]:
        jobs, damaged = sorted_out(rows, node)
        self._bury(node, [row[0].decode() for row in damaged])
        return jobs

    def _exchange(
        self, meanwhile: Meanwhile | None, node: str, sequence: int, said: Said
    ) -> tuple[Sequence[Any], Exchanged]:
        arguments = (
            node,
            str(sequence),
            [verdict(settlement) for settlement in said.settlements],
            [(item.id, str(item.token)) for item in said.started],
            [(item.id, str(item.token), text_of(item.data)) for item in said.progress],
            [(claim.queue, claim.limit, claim.without) for claim in said.claims],
        )
        status, *rest = self._server.run("exchange", arguments, meanwhile=meanwhile)
        if status == b"replayed":
            return (), Exchanged(replayed=True)
        _speak(status, node)
        rows, stale, cancelling, more = rest
        asked = tuple(sorted(_texts(cancelling)))
        return rows, Exchanged((), _texts(stale), cancelling=asked, more=bool(more))

    def _claimed(self, rows: Sequence[Any], node: str, sequence: int, claims: Sequence[Claim]) -> list[Job]:
        """The jobs of an answer. For each that cannot be read, another one is claimed in its place."""
        jobs, damaged = sorted_out(rows, node)
        if not damaged:
            return jobs
        self._bury(node, [row[0].decode() for row in damaged])
        missing = by_queue(damaged)
        without = {claim.queue: claim.without for claim in claims}
        again = [(queue, number, without.get(queue, ())) for queue, number in missing.items()]
        try:
            status, *rest = self._server.run("exchange", (node, str(sequence), (), (), (), again, True))
        except StoreError as error:
            raise OutcomeUnknown(f"{error}; jobs were claimed before: ask what is held") from error
        return jobs + (self._claimed(rest[0], node, sequence, claims) if status == b"ok" else [])

    def _bury(self, node: str, damaged: Sequence[str]) -> None:
        """Jobs that were claimed and cannot be read end dead."""
        if not damaged:
            return
        try:
            self._server.run("verdicts", (node, (), False, damaged))
        except StoreError as error:
            raise OutcomeUnknown(f"{error}; jobs were claimed before: ask what is held") from error

    # --- nodes ------------------------------------------------------------------------------------------
    def renew(self, node: str, host: str, info: bytes = b"{}", lease: float = LEASE) -> None:
        """Take or renew a node's lease; a lease of 0 gives it up."""
        if lease > 0:
            told = (node, host, text_of(info), round(lease * MICROSECONDS))
            status, *found = self._server.run("renew", told)
            _speak(status, node)
            self._server.note_version(*found)
        elif self._server.run("give_up", (node,)):
            revive(self._server, node)

    def held(self, node: str) -> Held:
        """What this node holds."""
        jobs: list[HeldJob] = []
        after = ""
        while True:
            status, *rest = self._server.run("held_claims", (node, after, PAGE), writes=False)
            _speak(status, node)
            sequence, rows = rest
            jobs += (HeldJob(job.decode(), int(token), *_texts(where)) for job, token, *where in rows)
            if len(rows) < PAGE:
                return Held(int(sequence or 0), tuple(jobs))
            after = rows[-1][0].decode()

    def rescue(self, node: str, gone: Sequence[str] = ()) -> Rescued:
        """Revive the jobs of nodes that are gone."""
        sealed = sorted(_texts(self._server.run("seal", (node, tuple(gone)))))
        each = tuple(revive(self._server, dead) for dead in sealed)
        return Rescued(tuple(sealed), sum(each), each)

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until there may be work in one of the queues."""
        subscription: Subscription | None = getattr(self._here, "subscription", None)
        if subscription is None:
            subscription = self._here.subscription = Subscription(self._server)
            self._subscriptions.add(subscription)
        return subscription.wait(queues, timeout)

    # --- people and upkeep ------------------------------------------------------------------------------
    def cancel(self, chosen: Filter) -> int:
        """End waiting jobs, ask for the end of running ones.

        Looked up in all states at once: none slips through by being claimed or going back in line.
        """
        return self._each_page("cancel", chosen, (*WAITING, "running"))

    def replay(self, chosen: Filter) -> int:
        """Queue dead jobs again with fresh budgets."""
        return self._each_page("replay", chosen, ("dead",))

    def prune(self, retention: Retention, chosen: Filter | None = None) -> int:
        """Delete what ended long ago, or ended jobs by choice."""
        if chosen is not None:
            return self._each_page("discard", chosen, ENDED, DELETED)
        ends = (retention.completed, retention.cancelled, retention.dead)
        kept = [round(seconds * MICROSECONDS) for seconds in (*ends, retention.statistics, retention.ticks)]
        return total(self._pruned(kept))

    def _pruned(self, kept: Sequence[int]) -> Iterator[int]:
        more = 1
        while more:
            number, more = self._server.run("prune", (*kept, DELETED))
            yield number

    def _each_page(self, name: str, chosen: Filter, states: Sequence[str], size: int = PAGE) -> int:
        pages = reading.pages(self._server, chosen, states, size=size)
        return total(int(self._server.run(name, (ids, reading.condition(chosen)))) for ids in pages)

    # --- reading ----------------------------------------------------------------------------------------
    def get(self, ids: Sequence[str]) -> list[Job | None]:
        """Whole jobs, in the order asked."""
        return reading.get(self._server, ids)

    def search(self, chosen: Filter, limit: int = 100, cursor: str | None = None) -> Page:
        """Jobs, newest first."""
        return reading.search(self._server, chosen, limit, cursor)

    def counts(self, *, ready_only: bool = False) -> Counts:
        """How many jobs there are, by queue and state, and which nodes."""
        return reading.counts(self._server, ready_only=ready_only)

    def statistics(self, since: int, until: int) -> list[Minute]:
        """What happened from one minute up to another."""
        return reading.statistics(self._server, since, until)

    # --- settings and records ---------------------------------------------------------------------------
    def configure(
        self,
        *,
        queue: str | None = None,
        paused: bool | None = None,
        rate: float | None = None,
        slot: Slot | None = None,
    ) -> None:
        """Pause or resume a queue, set its rate, set a slot's capacity."""
        name, capacity = (None, None) if slot is None else (slot.name, str(slot.capacity))
        limit = float(rate) if rate else None
        self._server.run("configure", (queue, paused, rate is not None, limit, name, capacity))

    def plan(self, ticks: Sequence[Tick]) -> list[bool]:
        """Record ticks and enqueue their jobs."""
        self._server.ask_now_and_then()
        first: dict[tuple[str, int], Tick] = {}
        for tick in ticks:
            first.setdefault((tick.recurring, tick.at), tick)
        if not first:
            return []
        keys = sorted(first)
        wanted = [(f"{name}\0{at}", _job_of(first[name, at])) for name, at in keys]
        fresh = self._stored("plan", wanted)
        new = {key for key, is_new in zip(keys, fresh, strict=True) if is_new}
        return [first[tick.recurring, tick.at] is tick and (tick.recurring, tick.at) in new for tick in ticks]

    def record(self, name: str, value: bytes | None = None, version: int | None = None) -> Document:
        """Read or write a versioned document."""
        content = None if value is None else text_of(value)
        status, *rest = self._server.run(
            "record", (name, content, str(version or 0)), writes=value is not None
        )
        if status == b"conflict":
            raise Conflict(
                f"document {name!r} is no longer at version {version or 0}: read it again and retry"
            )
        return Document(rest[0], int(rest[1]))

    def log(
        self, name: str, entries: Sequence[bytes] = (), *, after: int = 0, limit: int = 100, keep: int = 1000
    ) -> list[Entry]:
        """Append to a bounded log and read on from a number."""
        lines = [text_of(entry) for entry in entries]
        number, found = self._server.run(
            "log", (name, lines, after, limit, max(1, keep)), writes=bool(entries)
        )
        parts = [line.partition(b" ") for line in found]
        return [Entry(number + place, int(at), data) for place, (at, _, data) in enumerate(parts)]


def _texts(values: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(value.decode() for value in values)


def _job_of(tick: Tick) -> tuple[Any, ...] | None:
    return None if tick.job is None else new_job(tick.job)


def _speak(status: bytes, node: str) -> None:
    """Raise if the node may not speak."""
    if status == b"sealed":
        raise NodeRefused(f"node {node} was rescued: its jobs belong to others now; go on under a new name")
    if status == b"unknown":
        raise NodeRefused(f"node {node} has no lease: renew it first, or it was rescued meanwhile")
