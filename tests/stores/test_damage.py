"""Records that somebody has broken: they end dead, say why, and stop nobody else."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import psycopg
import pytest

from millpond.job import JobOptions, JobState, Slot
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Filter
from millpond.store.redis.store import RedisStore
from tests.servers.redis import client_for
from tests.stores.acting import Node, happened, new_job, put, put_many, tally, the, travel
from tests.stores.places import address_and_name, job_key, place

GARBAGE = ["", "{", "[[1]]", '{"max_attempts": "many"}', "\N{SNOWMAN}", "null"]


def in_sqlite(url: str) -> Callable[[str, str, str], None]:
    def write(job: str, column: str, value: str) -> None:
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(f"UPDATE millpond_jobs SET {column} = ? WHERE id = ?", (value, job))
        connection.close()

    return write


def in_postgres(url: str) -> Callable[[str, str, str], None]:
    address, schema = address_and_name(url)

    def write(job: str, column: str, value: str) -> None:
        with psycopg.connect(address) as connection:
            statement = f"UPDATE {schema}.jobs SET {column} = %s WHERE id = %s"
            connection.execute(statement.encode(), (value, job))

    return write


def in_redis(url: str) -> Callable[[str, str, str], None]:
    def write(job: str, column: str, value: str) -> None:
        place = column
        if column in ("options", "depends_on"):  # kept together before the payload, with their length
            place, value = "body", f"{len(value.encode())} {value}{{}}"
        with client_for(url) as client:
            client.hset(job_key(url, job, place), job, value)

    return write


BREAKING = {"sqlite": in_sqlite, "postgres": in_postgres, "redis": in_redis}


@pytest.fixture(params=BREAKING)
def broken(request, tmp_path, open_at):
    """A store, and a way to write garbage past it."""
    with place(request.param, tmp_path) as url:
        store = open_at(url)
        store.clock.freeze()
        yield store, BREAKING[request.param](url)


@pytest.mark.parametrize("column", ["options", "slots", "depends_on"])
@pytest.mark.parametrize("value", GARBAGE)
def test_a_broken_job_ends_dead_and_stops_no_claim(broken, column, value):
    store, write = broken
    node = Node(store)
    bad, good = put_many(store, 2)
    write(bad, column, value)
    assert [job.id for job in node.claim()] == [good]
    assert tally(store) == {"dead": 1, "running": 1}
    assert happened(store) == {"enqueued": 2, "dead": 1}
    assert node.claim() == []


def test_a_limit_is_filled_behind_broken_jobs(broken):
    store, write = broken
    node = Node(store)
    ids = put_many(store, 6)
    for job in ids[:5]:
        write(job, "options", "{")
    assert [job.id for job in node.claim(1)] == [ids[5]]


def test_a_broken_job_is_shown_as_far_as_it_can_be_read(broken):
    store, write = broken
    bad, good = put_many(store, 2)
    for column in ("options", "slots", "depends_on", "attempts"):
        write(bad, column, "{")
    Node(store).claim()
    (found,) = store.search(Filter(states=(JobState.DEAD,))).jobs
    assert (found.id, found.reason, found.payload, found.options) == (bad, "damaged", b"{}", JobOptions())
    assert [job.id for job in store.get([good, bad])] == [good, bad]


def test_a_broken_job_keeps_its_id(broken):
    store, write = broken
    job = new_job()
    put(store, job)
    write(job.id, "options", "{")
    Node(store).claim()
    assert not store.enqueue([job])[0].created


def test_a_broken_job_lets_go_of_its_key_and_takes_its_children_along(broken):
    store, write = broken
    (bad,) = put(store, new_job(unique="k"))
    (child,) = put(store, new_job(depends_on=(bad,)))
    write(bad, "options", "{")
    assert Node(store).claim() == []
    assert tally(store) == {"dead": 1, "cancelled": 1}
    assert store.get([child])[0].state is JobState.CANCELLED
    put(store, new_job(unique="k"))


def test_a_broken_job_takes_no_slot(broken):
    store, write = broken
    node = Node(store)
    bad, good = put_many(store, 2, slots=(Slot("s", 1),))
    write(bad, "options", "{")
    assert [job.id for job in node.claim()] == [good]


def test_a_broken_job_is_not_replayed(broken):
    store, write = broken
    (bad,) = put_many(store, 1)
    write(bad, "options", "{")
    node = Node(store)
    node.claim()
    assert store.replay(Filter()) == 0
    assert tally(store) == {"dead": 1}


def test_a_job_broken_while_it_ran_can_still_be_settled(broken):
    store, write = broken
    node = Node(store)
    (bad,) = put_many(store, 1)
    job = node.claim_one()
    write(bad, "options", "{")
    assert [found.id for found in store.held("n1").jobs] == [bad]
    node.settle(job)
    assert tally(store) == {"completed": 1}


def test_a_rescue_is_not_stopped_by_what_was_broken_meanwhile(broken):
    store, write = broken
    put_many(store, 3)
    gone = Node(store, "gone")
    jobs = gone.claim()
    write(jobs[1].id, "options", "{")
    Node(store)
    assert store.rescue("n1", gone=["gone"]).jobs == 3
    assert tally(store) == {"queued": 2, "dead": 1}


def test_broken_jobs_can_be_cancelled_pruned_and_discarded(broken):
    store, write = broken
    a, b = put_many(store, 2)
    for job in (a, b):
        write(job, "options", "{")
    assert store.cancel(Filter(ids=(a,))) == 1
    Node(store).claim()
    travel(store, 1)
    from millpond.store.protocol import Retention

    assert store.prune(Retention(), Filter(states=(JobState.DEAD,))) == 1
    assert store.prune(Retention(cancelled=0.0)) == 1
    assert tally(store) == {}


def test_bytes_that_are_no_text_stop_nobody(sqlite_path, open_at):
    store = open_at(f"sqlite:///{sqlite_path}")
    node = Node(store)
    for column in ("options", "slots", "depends_on"):
        bad, good = put_many(store, 2)
        statement = f"UPDATE millpond_jobs SET {column} = CAST(x'ff7b' AS TEXT) WHERE id = ?"
        with apsw.Connection(str(sqlite_path)) as connection:
            connection.execute(statement, (bad,))
        assert [job.id for job in node.claim()] == [good]
        assert the(store, bad).reason == "damaged"


def test_bytes_that_are_no_text_can_be_read(sqlite_path, open_at):
    store = open_at(f"sqlite:///{sqlite_path}")
    bad, good = put_many(store, 2)
    with apsw.Connection(str(sqlite_path)) as connection:
        connection.execute("UPDATE millpond_jobs SET task = CAST(x'ff' AS TEXT) WHERE id = ?", (bad,))
    tasks = {job.id: job.task for job in store.search(Filter()).jobs}
    assert tasks == {bad: "\N{REPLACEMENT CHARACTER}", good: "work"}
    assert [job.id for job in Node(store).claim()] == [bad, good]


def test_a_rescue_ends_where_a_record_cannot_be_settled(redis_url, open_at):
    store, write = open_at(redis_url), in_redis(redis_url)
    put_many(store, 3)
    jobs = Node(store, "gone").claim()
    write(jobs[1].id, "where", "default")  # readable, but of no task
    Node(store)
    assert store.rescue("n1", gone=["gone"]).jobs == 3
    assert tally(store) == {"queued": 2, "dead": 1}
    assert store.rescue("n1", gone=["gone"]).nodes == ()


def test_a_state_that_there_is_not_stops_no_claim(broken):
    store, write = broken
    node = Node(store)
    bad, good = put(store, new_job(expires=1.0), new_job())
    field, value = ("head", "weird 0 ") if isinstance(store, RedisStore) else ("state", "weird")
    if isinstance(store, PostgresStore):
        with pytest.raises(psycopg.errors.CheckViolation):
            write(bad, field, value)
        return
    write(bad, field, value)
    travel(store, 2)
    assert [job.id for job in node.claim()] == [good]
    assert node.claim() == []
