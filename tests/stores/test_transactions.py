"""Joining the caller's own transaction: a job is there if and only if what came with it is."""

from __future__ import annotations

import sqlite3

import apsw
import psycopg
import pytest
from psycopg.rows import dict_row

from millpond.errors import StoreBusy, StoreRefused, UnknownJob
from millpond.job import Slot
from millpond.store.open import open_store
from millpond.store.sqlite.store import SQLiteStore
from tests.stores.acting import Node, new_job, put, put_many, tally
from tests.stores.places import address_and_name


@pytest.fixture
def file(sqlite_path, open_at):
    return open_at(f"sqlite:///{sqlite_path}")


@pytest.fixture
def ours(sqlite_path, file):
    connection = apsw.Connection(str(sqlite_path))
    connection.execute("CREATE TABLE orders (n)")
    yield connection
    connection.close()


@pytest.fixture
def server(postgres_url, open_at):
    store = open_at(postgres_url)
    store.address, store.where = address_and_name(postgres_url)
    with psycopg.connect(store.address) as connection:
        connection.execute(f"CREATE TABLE {store.where}.orders (n int)".encode())
    return store


KINDS = {
    "plain": lambda: new_job(fresh=True),
    "unique": lambda: new_job(unique="k"),
    "slots": lambda: new_job(slots=(Slot("s", 1),)),
}


# --- apsw -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_committed_with_the_order_in_a_file(file, ours, kind):
    job = KINDS[kind]()
    with ours:
        ours.execute("INSERT INTO orders VALUES (1)")
        (answer,) = file.enqueue([job], transaction=ours)
        assert answer.created
        assert file.get([job.id]) == [None]  # not for others, yet
    assert [found.id for found in Node(file).claim()] == [job.id]
    assert list(ours.execute("SELECT n FROM orders")) == [(1,)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_undone_with_the_order_in_a_file(file, ours, kind):
    ours.execute("BEGIN")
    file.enqueue([KINDS[kind]()], transaction=ours)
    ours.execute("ROLLBACK")
    assert tally(file) == {}
    assert file.enqueue([KINDS[kind]()])[0].created


def test_a_refused_job_leaves_the_rest_of_the_transaction_in_a_file(file, ours):
    with ours:
        ours.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(UnknownJob):
            file.enqueue([new_job(unique="k"), new_job(depends_on=("nobody",))], transaction=ours)
    assert list(ours.execute("SELECT n FROM orders")) == [(1,)]
    put(file, new_job(unique="k"))


def test_a_waiting_process_hears_of_a_joined_job(file, ours):
    import threading

    heard = threading.Event()
    begun = threading.Event()

    def listen() -> None:
        begun.set()
        while not file.wait(["default"], 1.0):
            pass
        heard.set()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    begun.wait()
    while not heard.wait(0.05):  # it may not have begun to listen at the first
        with ours:
            file.enqueue([new_job()], transaction=ours)
    thread.join()


def test_the_standard_librarys_connection_is_refused(file, sqlite_path):
    connection = sqlite3.connect(":memory:")
    with pytest.raises(StoreRefused, match="apsw"):
        file.enqueue([new_job()], transaction=connection)
    connection.close()


def test_a_connection_to_another_file_is_refused(file, tmp_path, open_at):
    open_at(f"sqlite:///{tmp_path}/other.db")
    other = apsw.Connection(f"{tmp_path}/other.db")
    with pytest.raises(StoreRefused, match="not to"):
        file.enqueue([new_job()], transaction=other)
    other.close()
    nowhere = apsw.Connection(":memory:")
    with pytest.raises(StoreRefused, match="not to"):
        file.enqueue([new_job()], transaction=nowhere)
    nowhere.close()


def test_a_locked_file_is_busy_for_a_joined_job_too(file, ours, sqlite_path):
    other = apsw.Connection(str(sqlite_path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        file.enqueue([new_job()], transaction=ours)
    other.execute("ROLLBACK")
    other.close()
    assert file.enqueue([new_job()], transaction=ours)[0].created


def test_memory_joins_no_one():
    store = SQLiteStore(":memory:")
    with pytest.raises(StoreRefused):
        store.enqueue([new_job()], transaction=apsw.Connection(":memory:"))
    store.close()


# --- psycopg ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factory", [None, dict_row])
def test_a_job_is_committed_with_the_order(server, kind, factory):
    job = KINDS[kind]()
    with psycopg.connect(server.address, **({"row_factory": factory} if factory else {})) as connection:
        connection.execute(f"INSERT INTO {server.where}.orders VALUES (1)".encode())
        assert server.enqueue([job], transaction=connection)[0].created
        assert server.get([job.id]) == [None]
    assert [found.id for found in Node(server).claim()] == [job.id]


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_is_undone_with_the_order(server, kind):
    with psycopg.connect(server.address) as connection:
        server.enqueue([KINDS[kind]()], transaction=connection)
        connection.rollback()
    assert tally(server) == {}
    assert server.enqueue([KINDS[kind]()])[0].created


def test_a_refused_job_leaves_the_rest_of_the_transaction(server):
    with psycopg.connect(server.address) as connection:
        connection.execute(f"INSERT INTO {server.where}.orders VALUES (1)".encode())
        with pytest.raises(UnknownJob):
            server.enqueue([new_job(unique="k"), new_job(depends_on=("nobody",))], transaction=connection)
    with psycopg.connect(server.address) as connection:
        assert connection.execute(f"SELECT n FROM {server.where}.orders".encode()).fetchall() == [(1,)]
    put(server, new_job(unique="k"))


def test_a_connection_without_a_transaction_gets_one(server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        with pytest.raises(UnknownJob):
            server.enqueue([new_job(unique="k"), new_job(depends_on=("nobody",))], transaction=connection)
        assert tally(server) == {}
        assert server.enqueue([new_job(unique="k")], transaction=connection)[0].created
    assert tally(server) == {"queued": 1}


def test_a_connection_to_another_database_is_refused(server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {server.where}".encode())
    other = server.address.rsplit("/", 1)[0] + f"/{server.where}"
    with psycopg.connect(other) as connection, pytest.raises(StoreRefused, match="not to"):
        server.enqueue([new_job()], transaction=connection)
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {server.where}".encode())


def test_what_is_no_connection_of_psycopg_is_refused(server):
    for wrong in (object(), sqlite3.connect(":memory:"), "postgresql://"):
        with pytest.raises(StoreRefused, match="psycopg"):
            server.enqueue([new_job()], transaction=wrong)
        if isinstance(wrong, sqlite3.Connection):
            wrong.close()


async def test_an_async_transaction_is_joined_by_aenqueue(server):
    async with await psycopg.AsyncConnection.connect(server.address, row_factory=dict_row) as connection:
        with pytest.raises(StoreRefused, match="aenqueue"):
            server.enqueue([new_job()], transaction=connection)
        for kind in KINDS.values():
            job = kind()
            assert [answer.id for answer in await server.aenqueue([job], connection)] == [job.id]
        assert tally(server) == {}
    assert tally(server) == {"queued": 3}


async def test_an_async_transaction_takes_its_jobs_back(server):
    async with await psycopg.AsyncConnection.connect(server.address) as connection:
        await server.aenqueue([new_job(unique="k")], connection)
        await connection.rollback()
    async with await psycopg.AsyncConnection.connect(server.address) as connection:
        with pytest.raises(UnknownJob):
            await server.aenqueue([new_job(unique="k"), new_job(depends_on=("nobody",))], connection)
    put(server, new_job(unique="k"))


async def test_aenqueue_takes_async_connections_only(server):
    with psycopg.connect(server.address) as connection, pytest.raises(StoreRefused, match="AsyncConnection"):
        await server.aenqueue([new_job()], connection)


def test_a_joined_batch_is_as_large_as_any(server):
    with psycopg.connect(server.address) as connection:
        server.enqueue([new_job() for _ in range(500)], transaction=connection)
    put_many(server, 1)
    assert tally(server) == {"queued": 501}


def test_redis_joins_no_transaction(redis_url, open_at):
    store = open_store(redis_url)
    with pytest.raises(StoreRefused, match="transaction"):
        store.enqueue([new_job()], transaction=object())
    store.close()
