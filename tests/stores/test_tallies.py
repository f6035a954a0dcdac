"""How many jobs there are, kept beside counted; and searches that look at only so many."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import apsw
import psycopg
import pytest

from millpond.errors import StoreError
from millpond.job import Failure, JobState, Raised, Released, Returned, Slot
from millpond.store.open import open_store
from millpond.store.protocol import Filter, Retention
from millpond.store.sql import search
from millpond.store.sql.statements import statement
from tests.stores.acting import DAY, Node, dead_job, new_job, opened, put, put_many, travel
from tests.stores.places import place

ENDS = (Returned(b"1"), Raised(Failure("E", "no"), final=True), Raised(Failure("E", "no")), Released())
QUEUES = ("a", "b", "c")
SQL = ("memory", "sqlite", "postgres")
LINES = "SELECT queue, state, parked IS NOT NULL AND state = 'queued', run_at FROM {table}"


@pytest.fixture(params=SQL)
def kept(request, tmp_path):
    """A store of SQL and its time, which stands still."""
    with place(request.param, tmp_path) as url:
        store: Any = opened(url)
        store.clock.freeze()
        yield store
        store.close()


def looked_at(store):
    """Every job there is, by a look at the tables."""
    if hasattr(store, "path"):
        return list(store._open().execute(LINES.format(table="millpond_jobs")))
    with psycopg.connect(store._options.dsn) as server:
        waiting = server.execute(LINES.format(table=f"{store.schema}.jobs").encode()).fetchall()
        ended = server.execute(f"SELECT queue, state, FALSE, run_at FROM {store.schema}.history".encode())
        return waiting + ended.fetchall()


def check(store):
    rows = looked_at(store)
    counts = store.counts().queues
    assert {
        (line.queue, state.value): number for line in counts for state, number in line.states.items()
    } == Counter((queue, state) for queue, state, _, _ in rows)
    ready = {line.queue: line for line in store.counts(ready_only=True).queues}
    free = [row for row in rows if row[1] == "queued" and not row[2]]
    assert {name: line.states[JobState.QUEUED] for name, line in ready.items() if line.states} == Counter(
        queue for queue, *_ in free
    )
    for found, among in ((counts, [row for row in rows if row[1] == "queued"]), (ready.values(), free)):
        oldest = {line.queue: line.oldest for line in found if line.oldest is not None}
        due = {queue: min(row[3] for row in among if row[0] == queue) for queue in {row[0] for row in among}}
        now = store.clock.now()
        assert oldest == {queue: pytest.approx((now - at) / 1e6) for queue, at in due.items()}


class Hand:
    """Somebody who does one thing after the other to a store, chosen by chance."""

    def __init__(self, store, seed):
        self.store, self.chance = store, random.Random(seed)
        self.nodes = [Node(store, "n0")]
        self.held, self.ids = [], []

    def step(self):
        acts = (
            self.put,
            self.put,
            self.claim,
            self.claim,
            self.settle,
            self.settle,
            self.settle,
            self.cancel,
        )
        self.chance.choice((*acts, self.replay, self.prune, self.wait, self.lose))()

    def put(self):
        jobs = [self.job() for _ in range(self.chance.randint(1, 6))]
        self.store.enqueue(jobs + ([self.chance.choice(jobs)] if self.chance.random() < 0.2 else []))
        self.ids += [job.id for job in jobs]

    def job(self):
        facts: dict[str, Any] = {"queue": self.chance.choice(QUEUES), "priority": self.chance.randint(0, 9)}
        sort = self.chance.randint(0, 6)
        if sort == 0:
            facts["delay"] = self.chance.choice((5.0, 90.0))
        elif sort == 1:
            facts["slots"] = (Slot(self.chance.choice("xy"), 1),)
        elif sort == 2 and self.ids:
            facts["depends_on"] = (self.chance.choice(self.ids[-8:]),)
        elif sort == 3:
            facts["expires"] = 20.0
        elif sort == 4:
            facts["unique"] = self.chance.choice("uv")
        return new_job(fresh=sort > 4, **facts)

    def claim(self):
        node = self.chance.choice(self.nodes)
        self.held += [
            (node, job) for job in node.claim(self.chance.randint(1, 5), self.chance.choice(QUEUES))
        ]

    def settle(self):
        self.chance.shuffle(self.held)
        for _ in range(min(len(self.held), self.chance.randint(1, 4))):
            node, job = self.held.pop()
            node.exchange(settlements=[node.verdict(job, self.chance.choice(ENDS))])

    def cancel(self):
        self.store.cancel(Filter(ids=tuple(self.chance.sample(self.ids, min(3, len(self.ids)))) or ("none",)))

    def replay(self):
        self.store.replay(Filter(queue=self.chance.choice(QUEUES)))

    def prune(self):
        state = self.chance.choice((JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED))
        everything = Retention(completed=50.0, cancelled=50.0, dead=200.0)
        chosen = Filter(states=(state,), queue="a") if self.chance.random() < 0.5 else None
        gone = {job.id for job in self.store.search(Filter(), 1000).jobs}
        self.store.prune(everything, chosen)
        gone -= {job.id for job in self.store.search(Filter(), 1000).jobs}
        self.ids = [job for job in self.ids if job not in gone]

    def wait(self):
        travel(self.store, self.chance.choice((1, 10, 70)))

    def lose(self):
        """A node gives up its lease with jobs in hand; another comes."""
        node = self.chance.choice(self.nodes)
        self.store.renew(node.name, node.host, lease=0)
        self.held = [(holder, job) for holder, job in self.held if holder is not node]
        self.nodes = [Node(self.store, f"n{self.chance.getrandbits(40)}")]
        self.held = [(holder, job) for holder, job in self.held if holder in self.nodes]


@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_the_numbers_are_those_of_the_jobs(kept, seed):
    hand = Hand(kept, seed)
    for _ in range(40):
        hand.step()
        check(kept)


def test_a_joined_transaction_that_is_taken_back_leaves_the_numbers(tmp_path):
    with place("postgres", tmp_path) as url:
        store: Any = opened(url)
        store.clock.freeze()
        with psycopg.connect(store._options.dsn) as caller:
            store.enqueue([new_job(), new_job(fresh=True)], transaction=caller)
            check(store)
            caller.rollback()
        check(store)
        store.close()


def test_numbers_that_are_past_are_folded_even_while_a_transaction_is_open(tmp_path):
    with place("postgres", tmp_path) as url:
        store: Any = opened(url)
        store.clock.freeze()
        put_many(store, 3)
        with psycopg.connect(store._options.dsn) as caller:
            store.enqueue([new_job()], transaction=caller)
            travel(store, 600)
            store.prune(Retention())
            caller.commit()
        check(store)
        rows = f"SELECT count(*) FROM {store.schema}.tallies".encode()
        store.prune(Retention())
        with psycopg.connect(store._options.dsn) as server:
            assert server.execute(rows).fetchall() == [(1,)]
        check(store)
        store.close()


# --- schema ------------------------------------------------------------------------------------------
def back_to_version_1(url):
    """What the first version left: no numbers that stand, and another name; of the third, nothing."""
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    connection.execute(
        "ALTER TABLE millpond_nodes ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;"
        "ALTER TABLE millpond_nodes ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;"
        "UPDATE millpond_nodes SET sequence = e.sequence FROM millpond_exchanges AS e WHERE e.node = id;"
        "DROP TABLE millpond_exchanges; DROP TABLE millpond_cascades;"
        "DROP INDEX millpond_roomy; DROP INDEX millpond_unused;"
        "ALTER TABLE millpond_slots DROP COLUMN sized_at;"
        "DROP INDEX millpond_lapsing; DROP INDEX millpond_planned;"
        "ALTER TABLE millpond_meta DROP COLUMN compatible_from;"
        "UPDATE millpond_nodes SET lease_until = 0"  # stopped, as the step asks for
    )
    connection.execute(
        "DROP TABLE millpond_tallies; DROP INDEX millpond_blocked; UPDATE millpond_meta SET version = 1;"
        "ALTER TABLE millpond_minutes RENAME TO millpond_statistics"
    )
    connection.close()


def test_a_file_of_the_first_version_is_brought_up_to_date_with_all_it_has(tmp_path):
    with place("sqlite", tmp_path) as url:
        store: Any = opened(url)
        node = Node(store)
        put_many(store, 4, queue="a")
        put(store, new_job(delay=60.0), new_job(slots=(Slot("s", 1),)), new_job(slots=(Slot("s", 1),)))
        dead_job(store, node, queue="b")
        node.claim()
        store.close()
        back_to_version_1(url)
        store = open_store(url)
        with pytest.raises(StoreError, match="millpond migrate"):
            store.counts()
        steps = store.migrate()
        assert ["version 1 to 2" in steps[0], "version 2 to 3" in steps[1]] == [True, True]
        assert store.migrate() == []
        store.clock.freeze()
        check(store)
        put_many(store, 2, queue="a")
        check(store)
        store.close()


def test_an_old_writer_fails_and_cannot_spoil_the_numbers(tmp_path):
    with place("sqlite", tmp_path) as url:
        opened(url).close()
        assert "millpond_statistics" in statement("sqlite", "from_1_to_2")
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        with pytest.raises(apsw.SQLError, match="millpond_statistics"):
            connection.execute("INSERT INTO millpond_statistics VALUES ('q', 1, 'enqueued', 0, 1)")
        connection.close()


# --- searching ----------------------------------------------------------------------------------------
@pytest.fixture
def narrow(monkeypatch):
    """Bounds that a few jobs reach."""
    monkeypatch.setattr(search, "LOOKED", 10)
    monkeypatch.setattr(search, "FEW", 3)


def every(store, limit=4, **facts):
    """All pages of a search, and how many there were."""
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        page = store.search(Filter(**facts), limit, cursor)
        found += [job.id for job in page.jobs]
        cursor, pages = page.cursor, pages + 1
    return found, pages


def test_a_search_that_finds_little_looks_at_so_many_and_goes_on(kept, narrow):
    (rare,) = put(kept, new_job("rare", queue="r"))
    common = put_many(kept, 35)
    assert kept.search(Filter(task="rare")).jobs == ()
    assert kept.search(Filter(task="rare")).cursor == common[-10]
    assert every(kept, task="rare") == ([rare], 4)
    assert every(kept, queue="r") == ([rare], 4)
    assert every(kept, task="nobody") == ([], 4)
    assert every(kept) == ([*common[::-1], rare], 10)


def test_states_that_few_are_in_are_found_at_once(kept, narrow):
    node = Node(kept)
    dead = dead_job(kept, node)
    (later,) = put(kept, new_job(delay=50.0))
    held = (Slot("s", 1),)
    first, second = put(kept, new_job(queue="s", slots=held), new_job(queue="s", slots=held))
    child = put(kept, new_job(depends_on=(later,)))
    node.claim(queue="s")
    for _ in range(30):
        put(kept, new_job(queue="x"))
    node.settle(*node.claim(30, "x"))
    assert kept.search(Filter(states=(JobState.DEAD,))).jobs[0].id == dead
    assert every(kept, states=(JobState.RUNNING,)) == ([first], 1)
    assert every(kept, states=(JobState.QUEUED,)) == ([second], 1)
    assert every(kept, states=(JobState.SCHEDULED, JobState.BLOCKED)) == ([*child, later], 1)
    assert every(kept, states=(JobState.SCHEDULED, JobState.RUNNING), queue="s") == ([first], 1)
    assert every(kept, states=(JobState.DEAD,), queue="nobody") == ([], 1)
    assert len(every(kept, states=(JobState.COMPLETED,))[0]) == 30


def test_among_many_dead_only_the_dead_are_looked_at(kept, narrow):
    node = Node(kept)
    (rare,) = put(kept, new_job("rare"))
    put_many(kept, 14)
    node.settle(*node.claim(), outcome=ENDS[1])
    put_many(kept, 40)
    assert every(kept, states=(JobState.DEAD,), task="rare") == ([rare], 2)
    assert len(every(kept, states=(JobState.DEAD,))[0]) == 15
    assert kept.replay(Filter(task="rare")) == 1
    assert kept.replay(Filter()) == 14
    check(kept)


def test_a_child_of_two_that_fell_is_counted_once(kept):
    node = Node(kept)
    parents = (dead_job(kept, node), dead_job(kept, node))
    put(kept, new_job(depends_on=parents))
    check(kept)


def test_one_that_is_days_late_is_the_oldest_whatever_its_priority(kept):
    put(kept, new_job(priority=0))
    travel(kept, 3.5 * DAY)
    put_many(kept, 20, priority=2)
    travel(kept, 60)
    put_many(kept, 20, priority=3)
    check(kept)
