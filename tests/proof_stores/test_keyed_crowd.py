"""Many nodes whose jobs share slots, and a user's open transaction: no exchange waits for another's lock.

The evidence is outside the store: each process notes when it held which slot, and how long an exchange took.
The server's own count of deadlocks is that of a database which nothing else uses.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
import pytest

from millpond.job import Job, JobState
from millpond.store.postgres.timeouts import bounds
from millpond.store.protocol import Exchanged
from tests.proof_stores.keyed_hand import QUEUE, Ledger, Span, capacity, keyed_job
from tests.servers import postgres
from tests.stores.acting import Node, new_job, opened, put, state, tally

LONGEST = 2.0  # seconds that an exchange may take while the server is up
OVERTIME = 60.0  # seconds after which a hand is stuck
BACKLOG = 3  # jobs of a key at the beginning
SCHEMA = "keyed"
SIZES = [
    (4, 400, 5.0),
    pytest.param((4, 40, 60.0), marks=pytest.mark.slow),
    pytest.param((8, 2000, 120.0), marks=pytest.mark.slow),
]
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = %s"


class Database:
    """A database of its own, with a store in it."""

    def __init__(self, server: str) -> None:
        self.server, self.name = server, f"keyed{uuid.uuid4().hex[:12]}"
        self._do("CREATE DATABASE")
        self.address = urlsplit(server)._replace(path=f"/{self.name}").geturl()
        self.url = postgres.with_schema(self.address, SCHEMA)

    def _do(self, what: str, how: str = "") -> None:
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute(f'{what} "{self.name}" {how}'.encode())

    def drop(self) -> None:
        self._do("DROP DATABASE", "WITH (FORCE)")

    def deadlocks(self) -> int:
        """All that were ever counted here. A session reports its own at the latest when it ends, so that the
        last ones would be missing while any is open."""
        with psycopg.connect(self.server, autocommit=True) as connection:

            def one(query: Any) -> int:
                row = connection.execute(query, (self.name,)).fetchone()
                return int(row[0]) if row else 0

            until = time.monotonic() + OVERTIME
            while one(SESSIONS):
                assert time.monotonic() < until, "a session does not end"
            return one(DEADLOCKS)

    def slots_in_use(self) -> list[tuple[str, int]]:
        with psycopg.connect(self.address, autocommit=True) as connection:
            query = f"SELECT name, used FROM {SCHEMA}.slots WHERE used <> 0 ORDER BY name"
            return connection.execute(query.encode()).fetchall()


@pytest.fixture
def database() -> Iterator[Database]:
    found = Database(postgres.shared())
    yield found
    found.drop()


# --- a crowd ---------------------------------------------------------------------------------------------
def crowd(database: Database, nodes: int, keys: int, seconds: float) -> list[Ledger]:
    """So many processes at work for so long; returns what each of them saw."""
    words = [str(keys), str(seconds)]
    hands = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.proof_stores.keyed_hand", database.url, f"n{number}", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(nodes)
    ]
    try:
        ends = [hand.communicate(timeout=seconds + OVERTIME) for hand in hands]
    finally:
        for hand in hands:
            if hand.poll() is None:
                hand.kill()
                hand.communicate()
    assert [hand.returncode for hand in hands] == [0] * nodes, [errors for _, errors in ends if errors]
    return [msgspec.json.decode(printed, type=Ledger) for printed, _ in ends]


def fill(database: Database, keys: int, rate: float) -> int:
    store = opened(database.url)
    for _ in range(BACKLOG):
        put(store, *(keyed_job(key) for key in range(keys)))
    store.configure(queue=QUEUE, rate=rate)
    store.close()
    return BACKLOG * keys


def crowded(spans: Sequence[Span]) -> dict[str, int]:
    """Slots of which more were held at once than may be, and how many."""
    found: dict[str, int] = {}
    for slot, group in groupby(sorted(spans, key=lambda span: span.slot), key=lambda span: span.slot):
        edges = [edge for span in group for edge in ((span.begin, 1), (span.end, -1))]
        held = most = 0
        for _, change in sorted(edges):  # at the same instant an end comes first
            held += change
            most = max(most, held)
        if most > capacity(int(slot[1:])):
            found[slot] = most
    return found


def run_the_rest(database: Database) -> dict[str, int]:
    """Run what the crowd has left, without a rate; returns how many jobs are in which state then."""
    store = opened(database.url)
    store.configure(queue=QUEUE, rate=0)
    node = Node(store, "last", lease=3600.0)
    while jobs := node.claim():
        node.settle(*jobs)
    left = tally(store)
    store.close()
    return left


def problems(ledgers: Sequence[Ledger], database: Database) -> dict[str, Any]:
    """All that must not be; empty if there is none of it."""
    late = sorted((took for ledger in ledgers for took in ledger.exchanges if took > LONGEST), reverse=True)
    found = {
        f"exchanges above {LONGEST:g} s": [round(took, 1) for took in late],
        "deadlocks": database.deadlocks(),
        "too many at once": crowded([span for ledger in ledgers for span in ledger.spans]),
        "busy": [words for ledger in ledgers for words in ledger.busy],
        "stale": [job for ledger in ledgers for job in ledger.stale],
        "slots in use": database.slots_in_use(),
    }
    return {what: value for what, value in found.items() if value}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rate", [0.0, 1000.0], ids=["no rate", "a rate"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "-".join(f"{part:g}" for part in size))
def test_a_crowd_whose_jobs_share_slots_never_waits_for_each_other(
    size: tuple[int, int, float], rate: float, database: Database
):
    nodes, keys, seconds = size
    stored = fill(database, keys, rate)
    ledgers = crowd(database, nodes, keys, seconds)
    settled = sum(len(ledger.spans) for ledger in ledgers)
    print(f"{settled / seconds:,.0f} jobs a second, {sum(len(each.exchanges) for each in ledgers)} exchanges")
    assert problems(ledgers, database) == {}
    assert all(ledger.spans for ledger in ledgers), "a node got no job at all"
    stored += sum(ledger.created for ledger in ledgers)
    assert run_the_rest(database) == {"completed": stored}
    assert database.slots_in_use() == []


# --- beside a user's open transaction ---------------------------------------------------------------------
@pytest.fixture
def caller(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.address) as connection:
        yield connection


@pytest.fixture
def node(database: Database) -> Iterator[Node]:
    store = opened(database.url)
    yield Node(store)
    store.close()


def settled_in_time(node: Node, *jobs: Job) -> Exchanged:
    begin = time.monotonic()
    answer = node.exchange(settlements=[node.verdict(job) for job in jobs])
    assert time.monotonic() - begin < LONGEST
    assert answer.stale == ()
    return answer


def settle_beside(node: Node, concerned: Job, others: Sequence[Job], commit: Callable[[], object]) -> None:
    """One exchange ends a job that an open transaction has to do with, and others. The others end now; that
    one ends now or is deferred, and ends when it is sent again after the transaction."""
    answer = settled_in_time(node, concerned, *others)
    assert {state(node.store, job) for job in others} == {JobState.COMPLETED}
    assert set(answer.deferred) <= {concerned.id}
    commit()
    if answer.deferred:
        assert settled_in_time(node, concerned).deferred == ()
    assert state(node.store, concerned) is JobState.COMPLETED


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_open_transaction_under_a_held_unique_key_holds_up_no_settlement_of_another_job(
    node: Node, caller: psycopg.Connection, end: str
):
    put(node.store, new_job(unique="k"), *(new_job() for _ in range(3)))
    holder, *others = node.claim()
    (second,) = node.store.enqueue([new_job(unique="k")], transaction=caller)
    assert (second.id, second.created) == (holder.id, False)
    settle_beside(node, holder, others, getattr(caller, end))
    assert node.store.enqueue([new_job(unique="k")])[0].created


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_open_transaction_that_depends_on_a_running_job_holds_up_no_settlement_of_another_job(
    node: Node, caller: psycopg.Connection, end: str
):
    put(node.store, *(new_job() for _ in range(4)))
    parent, *others = node.claim()
    child = new_job(depends_on=(parent.id,))
    node.store.enqueue([child], transaction=caller)
    settle_beside(node, parent, others, getattr(caller, end))
    assert [job.id for job in node.claim()] == ([child.id] if end == "commit" else [])


def test_a_node_that_is_stopped_in_the_middle_of_an_exchange_holds_up_no_other_for_long(
    node: Node, caller: psycopg.Connection
):
    """Sessions share the rows in which they count. The caller is such a session, and says no more."""
    put(node.store, *(new_job() for _ in range(3)))
    first, *others = node.claim()
    node.settle(first)
    caller.execute(bounds().session.encode())
    caller.commit()
    for table in ("tallies", "minutes"):
        caller.execute(f"SELECT FROM {SCHEMA}.{table} FOR UPDATE".encode())
    settled_in_time(node, *others)
    caller.close()
    assert {state(node.store, job) for job in others} == {JobState.COMPLETED}
