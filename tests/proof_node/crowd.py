"""Programs and people at a store, all at once: they enqueue every sort of job, keep transactions open,
cancel, replay and pause; and what may become of each job after that.

Each is a thread that goes on while the store is away. Which jobs were touched is noted before it is done.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, Self
from urllib.parse import urlsplit

import apsw
import psycopg

from millpond import chain, group
from millpond.errors import StoreError
from millpond.handle import JobHandle
from millpond.job import JobState
from millpond.store.protocol import Filter
from tests.history import finals
from tests.proof_node import jobs
from tests.proof_node.fleet import Fleet
from tests.stores.places import address_and_name

BACKLOG = 300  # jobs that have not ended, above which nothing new is enqueued
BEAT = 0.1  # seconds between two deeds of one thread
LAPSE = 2.0  # seconds for which a unique key of that sort is held
QUEUES = ("default", "storm")


class Deeds:
    """What was done to jobs from outside, and may show in their end."""

    def __init__(self) -> None:
        self.cancelled: set[str] = set()
        self.replayed: set[str] = set()
        self.rolled_back: set[str] = set()
        self.in_transactions: set[str] = set()
        self.errors: list[BaseException] = []  # of the threads: none is expected
        self.refused = 0  # deeds that the store did not take, because it was away


class Crowd:
    """The threads."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.deeds = Deeds()
        self._fleet, self._over = fleet, threading.Event()
        self._known: deque[JobHandle[Any]] = deque(maxlen=200)  # stored, and perhaps ended
        # A user's transaction in SQLite keeps every other writer out: one at a time, and short.
        self._is_file = fleet.url.startswith("sqlite:")
        parts = [self._enqueue, self._operate] + [self._transact] * (1 if self._is_file else 3)
        self._threads = [
            threading.Thread(target=self._go_on, args=(part, Random(f"{seed}-{number}")), daemon=True)
            for number, part in enumerate(parts)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        for queue in QUEUES:
            self._fleet.store.configure(queue=queue, paused=False)

    def told(self) -> str:
        """How many jobs ended how, and what was done to some."""
        ends = Counter(f"{job.state}({job.reason or ''})" for job in finals(self._fleet.store).values())
        deeds = self.deeds
        return (
            f"{dict(ends)}; {len(deeds.cancelled)} were to be cancelled, {len(deeds.replayed)} replayed, "
            f"{len(deeds.in_transactions)} came in transactions, {len(deeds.rolled_back)} were rolled back; "
            f"{deeds.refused} deeds were refused"
        )

    def _go_on(self, part: Callable[[Random], None], draw: Random) -> None:
        while not self._over.wait(BEAT):
            try:
                part(draw)
            except StoreError:
                self.deeds.refused += 1
            except Exception as error:
                self.deeds.errors.append(error)

    # --- a program ------------------------------------------------------------------------------------------
    def _enqueue(self, draw: Random) -> None:
        """Some of everything."""
        if self._fleet.in_state(ended=False) > BACKLOG:
            return
        brief = draw.uniform(0, 0.1)
        makers: tuple[Callable[[], Any], ...] = (
            lambda: jobs.work.enqueue_many([(brief,)] * 5),
            lambda: jobs.moody.enqueue_many([(draw.randrange(99),) for _ in range(3)]),
            lambda: jobs.guarded.enqueue_many([(f"name-{draw.randrange(8)}", brief) for _ in range(6)]),
            lambda: self._unique(draw).enqueue(brief),
            lambda: jobs.work.using(delay=draw.uniform(0, 3)).enqueue(brief),
            lambda: jobs.work.using(expires=draw.uniform(0.05, 3), priority=0).enqueue(brief),
            lambda: jobs.guarded.using(expires=0.5).enqueue(f"name-{draw.randrange(8)}", brief),
            lambda: jobs.failing.enqueue(draw.randrange(99)),
            jobs.poison.enqueue,
            lambda: self._chain(draw, brief).enqueue(),
            lambda: self._group(draw, brief).enqueue(),
            lambda: jobs.work.using(depends_on=self._some(draw, 3)).enqueue(brief),
        )
        for make in draw.sample(makers, 4):
            made = make()
            self._known.extend(made if isinstance(made, list) else [made])

    def _unique(self, draw: Random) -> Any:
        sort: Any = draw.choice(("waiting", "done", LAPSE))
        return jobs.work.using(unique=f"{sort}-{draw.randrange(4)}", unique_for=sort)

    def _chain(self, draw: Random, brief: float) -> Any:
        first = jobs.failing.bind(1) if draw.random() < 0.3 else jobs.work.bind(brief)
        return chain(first, jobs.guarded.bind("chain", brief), jobs.work.bind(brief), self._last(draw))

    def _group(self, draw: Random, brief: float) -> Any:
        steps = [jobs.work.bind(brief) for _ in range(draw.randrange(1, 6))]
        doomed = draw.choice((jobs.failing.bind(2), jobs.poison_once.bind(), jobs.moody.bind(2)))
        return group(*steps, doomed, then=chain(jobs.work.bind(0.0), jobs.moody.bind(1)))

    def _last(self, draw: Random) -> Any:
        return draw.choice((jobs.failing.bind(2), jobs.poison_once.bind(), self._unique(draw).bind(0.01)))

    def _some(self, draw: Random, most: int) -> list[JobHandle[Any]]:
        known = list(self._known)
        return draw.sample(known, min(len(known), draw.randrange(most + 1)))

    # --- a person -------------------------------------------------------------------------------------------
    def _operate(self, draw: Random) -> None:
        """Cancel some, replay dead ones, hold a queue up for a moment."""
        store, deed = self._fleet.store, draw.random()
        if deed < 0.4:
            chosen = [handle.id for handle in self._some(draw, 4)]
            self.deeds.cancelled.update(chosen)
            if chosen:
                store.cancel(Filter(ids=tuple(chosen)))
        elif deed < 0.7:
            dead = store.search(Filter(states=(JobState.DEAD,)), 20).jobs
            chosen = [job.id for job in dead if draw.random() < 0.2]
            self.deeds.replayed.update(chosen)
            if chosen:
                store.replay(Filter(ids=tuple(chosen)))
        elif deed < 0.8:
            queue = draw.choice(QUEUES)
            with suppress(StoreError):  # perhaps it was done all the same
                store.configure(queue=queue, paused=True)
            while not self._over.wait(draw.uniform(BEAT, 1)):
                with suppress(StoreError):
                    store.configure(queue=queue, paused=False)
                    break

    # --- a program with a transaction of its own ------------------------------------------------------------
    def _transact(self, draw: Random) -> None:
        """Enqueue, keep the transaction open for a while, and commit or not."""
        if self._fleet.url.startswith("redis:"):
            return
        mine: list[str] = []
        try:
            with self._transaction() as (connection, end):
                mine += self._join(draw, connection)
                self._over.wait(draw.uniform(0, 0.2) if self._is_file else draw.uniform(0, 4))
                if draw.random() < 0.3:
                    end("rollback")
                    self.deeds.rolled_back.update(mine)
                    return
                end("commit")
        except (psycopg.Error, apsw.Error):  # whether it was committed is not known
            self.deeds.refused += 1
        else:
            self._fleet.evidence.acknowledged(*mine)
            self._known.extend(jobs.app.handle(job) for job in mine)

    def _join(self, draw: Random, connection: Any) -> list[str]:
        """The ids of what was made; where a unique key was held nothing was."""
        made: list[JobHandle[Any]] = []
        made.append(jobs.guarded.using(transaction=connection).enqueue(f"name-{draw.randrange(8)}", 0.02))
        if draw.random() < 0.5:
            made.append(self._unique(draw).using(transaction=connection).enqueue(0.02))
        if parents := self._some(draw, 2):
            made.append(jobs.work.using(transaction=connection, depends_on=parents).enqueue(0.0))
        mine = [handle.id for handle in made if handle.created]
        self.deeds.in_transactions.update(mine)
        return mine

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Any, Callable[[str], object]]]:
        """A connection of the user's, and the way to say how it ends."""
        if self._is_file:
            own = apsw.Connection(urlsplit(self._fleet.url).path)
            own.set_busy_timeout(5000)
            try:
                own.execute("BEGIN IMMEDIATE")
                yield own, own.execute
            finally:
                own.close()
            return
        with psycopg.connect(address_and_name(self._fleet.url)[0]) as connection:
            yield connection, lambda word: getattr(connection, word)()
