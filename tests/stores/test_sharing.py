"""Many at once: threads, processes, forks, and a lock that somebody else will not give back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apsw
import psycopg
import pytest

from millpond.errors import StoreBusy, StoreRefused, StoreUnavailable, UnknownJob
from millpond.job import Released
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Filter
from millpond.store.sqlite.store import SQLiteStore
from tests.stores.acting import Node, new_job, opened, put, put_many, state, tally
from tests.stores.places import address_and_name

# A fork among threads is just what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
WORK = """
import sys
from tests.stores.acting import Node, opened
store = opened(sys.argv[1])
node = Node(store, sys.argv[2])
sys.stdin.readline()
while jobs := node.claim(20):
    node.settle_among_others(*jobs)
    for job in jobs:
        print(job.id)
store.close()
"""
HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def talking(program: str, *words: str) -> Any:
    """Another process that we can talk to."""
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def in_child(call) -> str:
    """Fork, run the call there, and return what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # if it is stuck, it ends, having said nothing
        try:
            said = f"{call()}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return said


# --- threads ----------------------------------------------------------------------------------------
def test_threads_that_write_at_once_are_all_served(store):
    jobs = [[new_job(unique=f"{thread}-{number}") for number in range(20)] for thread in range(8)]

    def send(own):
        return [store.enqueue([job])[0] for job in own]

    with ThreadPoolExecutor(8) as threads:
        answers = [answer for part in threads.map(send, jobs) for answer in part]
    assert all(answer.created for answer in answers)
    assert tally(store) == {"queued": 160}


def test_a_refusal_reaches_its_own_thread_only(store):
    together = threading.Barrier(8)

    def send(number):
        job = new_job(depends_on=("nobody",)) if number % 2 else new_job(unique=str(number))
        together.wait()
        try:
            return store.enqueue([job])[0].created
        except UnknownJob:
            return "refused"

    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            store.cancel(Filter())
            assert list(threads.map(send, range(8))) == [True, "refused"] * 4
    assert tally(store) == {"queued": 4, "cancelled": 16}


def test_writers_of_one_process_share_a_commit(sqlite_path):
    """While one is held up by a foreign lock, the others gather behind it and go in together."""
    store = SQLiteStore(str(sqlite_path), busy=30.0)
    store.migrate()
    other = apsw.Connection(str(sqlite_path))
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(10) as threads:
        answers = [threads.submit(store.enqueue, [new_job()]) for _ in range(10)]
        while len(store._pending) < 9:  # one is inside and waits for the lock
            pass
        frames = wal_commits(sqlite_path)
        other.execute("ROLLBACK")
        assert all(answer.result()[0].created for answer in answers)
    other.close()
    assert wal_commits(sqlite_path) - frames <= 2
    store.close()


def wal_commits(path) -> int:
    """How many commits the write-ahead log holds: a frame that ends one says how large the file is."""
    log = path.with_name(path.name + "-wal").read_bytes()
    size = int.from_bytes(log[8:12], "big") + 24
    return sum(
        int.from_bytes(log[place + 4 : place + 8], "big") > 0 for place in range(32, len(log) - 23, size)
    )


# --- processes --------------------------------------------------------------------------------------
def test_several_processes_run_every_job_once(url, open_at):
    store = open_at(url)
    ids = put_many(store, 400, fresh=True)
    workers = [talking(WORK, url, f"w{number}") for number in range(3)]
    for worker in workers:
        worker.stdin.write("go\n")  # whoever is ready first begins
        worker.stdin.flush()
    done = [line for worker in workers for line in worker.communicate(timeout=50)[0].split()]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(done) == len(set(done))
    last = Node(store, "last")
    while jobs := last.claim():
        last.settle(*jobs)
        done += [job.id for job in jobs]
    assert sorted(done) == sorted(ids)
    assert tally(store) == {"completed": 400}


def test_a_job_that_comes_and_goes_does_not_slip_through_a_cancel(url, open_at):
    store, other = open_at(url), open_at(url)
    node = Node(other)

    over = threading.Event()

    def come_and_go(job):
        while state(other, job) != "cancelled" and not over.is_set():
            given_back = [node.verdict(mine, Released()) for mine in node.claim(1)]
            while node.exchange(settlements=given_back).deferred:
                pass  # the cancel has it locked at this moment

    with ThreadPoolExecutor(1) as thread:
        for chosen in [True, False] * 10:
            (job,) = put(store, new_job())
            going = thread.submit(come_and_go, job)
            number = store.cancel(Filter(ids=(job,)) if chosen else Filter(queue="default"))
            if number != 1:
                over.set()
            going.result(30)
            assert number == 1


# --- forks ------------------------------------------------------------------------------------------
def test_a_forked_child_uses_the_same_store(url, open_at):
    store = open_at(url)
    put(store, new_job())
    assert in_child(lambda: [store.enqueue([new_job()])[0].created, tally(store)]) == "[True, {'queued': 2}]"
    put(store, new_job())
    assert tally(store) == {"queued": 3}


def test_a_child_goes_on_when_its_parent_has_closed(url, open_at):
    store = open_at(url)
    put(store, new_job())
    reading, writing = os.pipe()
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        store.enqueue([new_job()])
        os.write(done, b"1")
        os.read(reading, 1)
        store.enqueue([new_job()])
        os._exit(0)
    os.read(ready, 1)
    store.close()
    os.write(writing, b"1")
    assert os.waitpid(child, 0)[1] == 0
    for end in (reading, writing, ready, done):
        os.close(end)
    assert tally(store) == {"queued": 3}


def test_a_fork_while_other_threads_write(url, open_at):
    store = open_at(url)
    over = threading.Event()

    def write():
        while not over.is_set():
            store.enqueue([new_job()])

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        answers = [in_child(lambda: store.enqueue([new_job()])[0].created) for _ in range(5)]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert answers == ["True"] * 5


def test_several_threads_may_fork_at_once(url, open_at):
    store = open_at(url)
    over = threading.Event()

    def write():
        while not over.is_set():
            store.enqueue([new_job()])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(3) as threads:
            calls = [
                threads.submit(in_child, lambda: store.enqueue([new_job()])[0].created) for _ in range(15)
            ]
            answers = [call.result(50) for call in calls]
    finally:
        over.set()
        writer.join(10)
    assert answers == ["True"] * 15


def test_memory_does_not_pretend_to_reach_a_forked_child():
    store = opened("memory://")
    put(store, new_job())
    assert in_child(lambda: store.enqueue([new_job()])).startswith(StoreRefused.__name__)
    assert tally(store) == {"queued": 1}
    store.close()


# --- locks ------------------------------------------------------------------------------------------
def test_a_foreign_lock_is_waited_for_and_then_reported(sqlite_path):
    store = SQLiteStore(str(sqlite_path), busy=0.1)
    store.migrate()
    (before,) = put(store, new_job())
    holder = talking(HOLD, str(sqlite_path))
    assert holder.stdout.readline() == "held\n"
    job = new_job()
    for call in (
        lambda: store.enqueue([job]),
        lambda: store.renew("n1", "here"),
        lambda: store.cancel(Filter()),
        lambda: store.record("d", b"x", 0),
    ):
        with pytest.raises(StoreBusy, match="locked"):
            call()
    assert state(store, before) == "queued"  # reading goes on
    holder.communicate("done\n")
    assert store.get([job.id]) == [None]
    assert store.enqueue([job])[0].created
    store.close()


def test_a_new_file_that_is_locked_is_busy_and_then_not(sqlite_path):
    holder = talking(HOLD, str(sqlite_path))
    assert holder.stdout.readline() == "held\n"
    store = SQLiteStore(str(sqlite_path), busy=0.1)
    for call in (store.migrate, lambda: store.enqueue([new_job()]), store.counts):
        with pytest.raises(StoreBusy):
            call()
    holder.communicate("done\n")
    assert store.enqueue([new_job()])[0].created
    store.close()


def test_a_foreign_lock_on_a_job_is_not_waited_for(postgres_url):
    store: Any = PostgresStore(postgres_url, patience=2.0)
    store.migrate()
    node = Node(store)
    put(store, new_job())
    job = node.claim_one()
    address, schema = address_and_name(postgres_url)
    with psycopg.connect(address) as other:
        other.execute(f"SELECT * FROM {schema}.jobs FOR UPDATE".encode())
        answer = node.exchange(settlements=[node.verdict(job)])
        assert (answer.stale, answer.deferred) == ((), (job.id,))
    node.settle(job)
    assert state(store, job) == "completed"
    store.close()


OTHERS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"


def test_a_connection_that_the_server_has_closed_is_not_used_again(postgres_url, open_at):
    store = open_at(postgres_url)
    put(store, new_job())
    with psycopg.connect(address_and_name(postgres_url)[0], autocommit=True) as admin:
        admin.execute(f"SELECT pg_terminate_backend(pid) {OTHERS}".encode())
        while admin.execute(f"SELECT count(*) {OTHERS}".encode()).fetchone() != (0,):
            pass
    put(store, new_job())
    assert tally(store) == {"queued": 2}


def test_a_full_disk_is_told_and_forgotten(sqlite_path):
    store = SQLiteStore(str(sqlite_path))
    store.migrate()
    put(store, new_job())
    assert store._connection is not None
    store._connection.execute("PRAGMA max_page_count = 40")
    with pytest.raises(StoreUnavailable, match="full"):
        put(store, new_job(payload=b"x" * 1_000_000))
    store._connection.execute("PRAGMA max_page_count = 1000000")
    put(store, new_job())
    store.close()
