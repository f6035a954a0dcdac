"""The history of PostgreSQL lies in a table for each day, and a day that is old enough is dropped whole."""

from __future__ import annotations

import psycopg
import pytest

from millpond.errors import StoreRefused
from millpond.ids import new_id
from millpond.job import MICROSECONDS, Failure, Raised
from millpond.store.postgres import days as postgres_days
from millpond.store.postgres.days import AHEAD, whole_days
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Filter, Retention
from tests.stores.acting import DAY, Node, new_job, opened, put, put_many, tally, travel
from tests.stores.places import address_and_name
from tests.stores.roles import a_role

FAILED = Raised(Failure("E", "no"), final=True)
WEEK = Retention()


@pytest.fixture
def store(postgres_url):
    store = opened(postgres_url)
    store.clock.freeze()
    yield store
    store.close()


@pytest.fixture
def ask(postgres_url):
    """`ask("... {schema} ...")` is what the server answers."""
    address, name = address_and_name(postgres_url)
    with psycopg.connect(address, autocommit=True) as server:
        yield lambda text: server.execute(text.replace("{schema}", name).encode()).fetchall()


def days(ask):
    """The tables of days, oldest first."""
    found = ask(
        "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
        "WHERE inhparent = '{schema}.history_ended'::regclass ORDER BY relname"
    )
    return [name for (name,) in found if name != "history_other"]


def in_other(ask):
    return ask("SELECT count(*) FROM {schema}.history_other")[0][0]


def end(store, number=3, outcome=None):
    node = Node(store, new_id())
    put_many(store, number)
    node.settle(*node.claim(), **({"outcome": outcome} if outcome else {}))


def test_what_ends_lies_in_the_table_of_its_day(store, ask):
    assert len(days(ask)) == AHEAD
    end(store)
    travel(store, DAY)
    end(store, 2)
    assert [ask(f"SELECT count(*) FROM {{schema}}.{name}")[0][0] for name in days(ask)[:2]] == [3, 2]
    assert in_other(ask) == 0


def test_a_day_is_dropped_when_its_last_job_is_old_enough_and_its_numbers_go_with_it(store, ask):
    end(store)
    end(store, 2, FAILED)
    (cancelled,) = put(store, new_job())
    store.cancel(Filter(ids=(cancelled,)))
    first = days(ask)[0]
    travel(store, 7 * DAY)  # not all of that day is a week old
    assert store.prune(WEEK) == 0
    travel(store, DAY)
    assert store.prune(WEEK) == 4
    assert first not in days(ask)
    assert tally(store) == {"dead": 2}


def test_dead_jobs_outlive_the_day_on_which_they_died(store, ask):
    end(store, 2, FAILED)
    travel(store, 30 * DAY)
    store.prune(WEEK)
    assert store.replay(Filter()) == 2


def test_a_prune_makes_tables_for_the_days_to_come(store, ask):
    travel(store, 5 * DAY)
    store.prune(WEEK)
    assert len(days(ask)) == 5 + AHEAD


def test_after_a_month_without_a_prune_jobs_end_all_the_same_and_are_pruned(store, ask):
    travel(store, 30 * DAY)
    end(store)
    assert in_other(ask) == 3
    store.prune(WEEK)
    assert in_other(ask) == 3  # today has no table of its own, as it would take those along
    travel(store, DAY)
    end(store)
    assert in_other(ask) == 3
    travel(store, 8 * DAY)
    assert store.prune(WEEK) == 6
    assert tally(store) == {}


def test_a_retention_of_less_than_a_day_is_exact(store, ask):
    end(store)
    travel(store, 10)
    end(store, 2)
    assert store.prune(Retention(completed=10.0)) == 3
    assert tally(store) == {"completed": 2}


def test_a_day_that_a_users_transaction_has_read_is_left_to_the_next_prune(store, ask, postgres_url):
    end(store)
    end(store, 2, FAILED)
    travel(store, DAY)
    end(store, 4)
    first, second = days(ask)[:2]
    travel(store, 99 * DAY)
    address, name = address_and_name(postgres_url)
    with psycopg.connect(address) as reader:
        reader.execute(f"SELECT count(*) FROM {name}.{first}".encode())
        assert store.prune(WEEK) == 4 + 2  # the other day, and the dead
        assert first in days(ask)
        assert second not in days(ask)
        assert tally(store) == {"completed": 3}
    assert store.prune(WEEK) == 3
    assert tally(store) == {}


def test_a_day_that_cannot_be_dropped_keeps_nothing_else_from_being_pruned(store, postgres_url):
    end(store, 2, FAILED)
    travel(store, 99 * DAY)
    with a_role(postgres_url, may="") as role:
        role.order("GRANT USAGE ON SCHEMA {schema} TO {role}")
        role.order("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
        small = PostgresStore(role.url)
        small.clock.shift = store.clock.shift
        with pytest.raises(StoreRefused, match="GRANT EXECUTE"):
            small.prune(WEEK)
        small.close()
    assert tally(store) == {}


def test_the_jobs_of_a_day_are_counted_some_blocks_at_a_time(store, ask, monkeypatch):
    monkeypatch.setattr(postgres_days, "BLOCKS", 1)
    end(store, 100)
    ((blocks,),) = ask(f"SELECT pg_relation_size('{{schema}}.{days(ask)[0]}') / 8192")
    assert blocks >= 2
    travel(store, 9 * DAY)
    assert store.prune(WEEK) == 100
    assert tally(store) == {}


def test_an_id_is_found_whatever_day_its_job_ended_on(store):
    ids = []
    for _ in range(3):
        ids += put(store, new_job())
        Node(store, f"n{len(ids)}").run()
        travel(store, DAY)
    assert {job.state for job in store.get(ids)} == {"completed"}
    assert not any(answer.created for answer in store.enqueue([new_job(id=job) for job in ids]))
    assert [job.id for job in store.search(Filter(), 10).jobs] == ids[::-1]


def test_a_parent_that_ended_days_ago_is_found(store):
    (parent,) = put(store, new_job())
    Node(store).run()
    travel(store, 3 * DAY)
    put(store, new_job(depends_on=(parent,)))
    assert tally(store) == {"completed": 1, "queued": 1}


@pytest.mark.parametrize("kept", [1.0, 86_399.0])
def test_less_than_a_day_is_kept_as_it_is(kept):
    assert whole_days(Retention(completed=kept), 10**15).completed == kept


def test_a_day_or_more_is_kept_to_the_end_of_the_day():
    day = 86_400 * MICROSECONDS
    noon = 20_000 * day + day // 2
    assert whole_days(Retention(completed=2 * DAY), noon).completed == 2.5 * DAY
    assert whole_days(Retention(completed=2 * DAY), 20_000 * day).completed == 2 * DAY
