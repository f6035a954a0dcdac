"""A caller's transaction that stays open: it holds up nobody who has nothing to do with it."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import IsolationLevel

from millpond.errors import StoreBusy
from millpond.job import JobState, Slot
from tests.stores.acting import Node, happened, new_job, put, put_many, state, tally, the
from tests.stores.places import address_and_name


@pytest.fixture
def server(postgres_url, open_at):
    store = open_at(postgres_url)
    store.address, store.where = address_and_name(postgres_url)
    return store


@pytest.fixture
def open_one(server):
    made = []

    def begin(**options):
        made.append(psycopg.connect(server.address, **options))
        return made[-1]

    yield begin
    for connection in made:
        connection.close()


def beside(server, statement):
    """A connection that lets nothing wait: whatever it runs into is an error."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("SET lock_timeout = 1")
        return connection.execute(statement.format(schema=server.where).encode()).fetchall()


@pytest.mark.parametrize("fresh", [True, False])
def test_an_open_transaction_holds_no_row_of_the_statistics_that_others_count_in(server, open_one, fresh):
    put(server, new_job(fresh=True), new_job(unique="k"))
    with open_one() as caller:
        server.enqueue([new_job(fresh=fresh)], transaction=caller)
        shards = caller.execute(f"SELECT shard FROM {server.where}.minutes".encode()).fetchall()
        (mine,) = [shard for (shard,) in shards if shard >= 16]  # the others are all free
        assert mine == 16 + caller.info.backend_pid
        assert beside(server, "SELECT shard FROM {schema}.minutes WHERE shard < 16 FOR UPDATE")
    assert happened(server) == {"enqueued": 3}


async def test_nor_does_an_async_one(server):
    async with await psycopg.AsyncConnection.connect(server.address) as caller:
        await server.aenqueue([new_job(fresh=True)], caller)
        cursor = await caller.execute(f"SELECT shard FROM {server.where}.minutes".encode())
        assert await cursor.fetchall() == [(16 + caller.info.backend_pid,)]


@pytest.mark.parametrize("job", [new_job(fresh=True), new_job(unique="k")], ids=["plain", "unique"])
def test_an_enqueue_that_cannot_go_on_ends_within_its_bound(server, open_one, job):
    put(server, new_job(fresh=True))  # connected by now
    with open_one() as caller:
        caller.execute(f"LOCK TABLE {server.where}.jobs".encode())
        with pytest.raises(StoreBusy, match="nothing happened"):
            server.enqueue([job])
        caller.rollback()
    assert server.enqueue([job])[0].created


@pytest.mark.parametrize("full", [False, True])
def test_an_open_transaction_with_a_slot_holds_up_no_claim_and_no_settlement(server, open_one, full):
    slots = (Slot("s", 1 if full else 2),)
    node = Node(server)
    put(server, new_job(slots=slots))
    running = node.claim_one()
    with open_one() as caller:
        server.enqueue([new_job(slots=slots)], transaction=caller)
        assert beside(server, "SELECT name FROM {schema}.slots FOR UPDATE") == [("s",)]
        (other,) = put(server, new_job(slots=slots))
        node.settle(running)
        assert [job.id for job in node.claim()] == [other]
    node.settle(the(server, other))
    assert len(node.claim()) == 1


def test_a_slot_whose_capacity_changes_is_written_by_an_open_transaction_too(server, open_one):
    put_many(server, 3, slots=(Slot("s", 1),))
    with open_one() as caller:
        server.enqueue([new_job(slots=(Slot("s", 3),))], transaction=caller)
    assert len(Node(server).claim()) == 3


LEVELS = [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name.lower())
def test_a_job_that_ended_after_the_snapshot_was_taken_is_known(server, open_one, level):
    caller = open_one()
    caller.isolation_level = level
    caller.execute("SELECT 1 FROM pg_class LIMIT 1")
    job = new_job()
    put(server, job)
    Node(server).run()
    with caller:
        assert not server.enqueue([job], transaction=caller)[0].created
    assert tally(server) == {"completed": 1}


async def test_an_async_snapshot_knows_it_too(server):
    async with await psycopg.AsyncConnection.connect(server.address) as caller:
        await caller.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await caller.execute("SELECT 1 FROM pg_class LIMIT 1")
        job = new_job()
        put(server, job)
        Node(server).run()
        assert not (await server.aenqueue([job], caller))[0].created
    assert tally(server) == {"completed": 1}


TWICE = (
    "INSERT INTO {schema}.history SELECT id, created_at, rank, run_at, created_at, token, attempt, errors, "
    "crashes, lost, priority, alone, has_children, 'dead', task, queue, options, payload, attempts, 'failed' "
    "FROM {schema}.jobs RETURNING id"
)


def test_the_end_of_a_job_that_is_in_the_history_already_is_not_refused(server):
    node = Node(server)
    ids = put_many(server, 3)
    jobs = node.claim()
    assert len(beside(server, TWICE + ", state")) == 3
    node.settle(*jobs)
    assert tally(server) == {"completed": 3}
    assert {job.state for job in server.get(ids)} == {JobState.COMPLETED}


def test_nor_is_its_cancelling_its_burial_or_its_replay(server):
    cancelled, damaged = put_many(server, 2)
    beside(server, TWICE)
    beside(server, f"UPDATE {{schema}}.jobs SET options = '{{{{' WHERE id = '{damaged}' RETURNING id")
    from millpond.store.protocol import Filter

    assert server.cancel(Filter(ids=(cancelled,))) == 1
    assert Node(server).claim() == []
    assert tally(server) == {"cancelled": 1, "dead": 1}
    (twice,) = put(server, new_job())
    beside(server, TWICE)
    server.replay(Filter(ids=(twice,)))
    assert state(server, twice) == "queued"


def test_many_callers_transactions_and_many_enqueues_go_side_by_side(server, open_one):
    callers = [open_one() for _ in range(20)]
    for caller in callers:
        server.enqueue([new_job(fresh=True)], transaction=caller)
    done = threading.Event()

    def enqueue():
        put_many(server, 10, fresh=True)
        done.set()

    threading.Thread(target=enqueue, daemon=True).start()
    assert done.wait(4)  # sooner than any bound would end it
    for caller in callers:
        caller.commit()
    assert happened(server) == {"enqueued": 30}
