"""PostgreSQL: a look at a line that begins at its floor gets what one from the beginning does, or gets it
later."""

from __future__ import annotations

import time

import psycopg
import pytest

from millpond.job import Slot
from millpond.rules.store.floor import IN_A_ROW, Looks
from millpond.store.protocol import Claim
from millpond.store.sql import claim
from tests.stores.acting import Node, new_job, opened, put, put_many
from tests.stores.places import address_and_name

SLOW = Looks(took=1.0, slow=IN_A_ROW, quickest=0.001)


@pytest.fixture
def store(postgres_url):
    store = opened(postgres_url)
    yield store
    store.close()


@pytest.fixture
def node(store):
    return Node(store)


def look_at_floor(store, *, soon: bool = False):
    """Let the next looks begin at the floor; or let the time for one from the beginning have come, which is
    slow again."""
    quickest = float("-inf") if soon else SLOW.quickest
    store._floors._looks = SLOW._replace(at=float("-inf") if soon else time.monotonic(), quickest=quickest)


@pytest.mark.parametrize("facts", [{}, {"slots": (Slot("s", 100),)}], ids=["plain", "with a slot"])
def test_what_stands_behind_the_floor_is_claimed_in_the_same_order(store, node, facts):
    ids = put_many(store, 30, **facts)
    got = [job.id for job in node.claim(10)]
    look_at_floor(store)
    got += [job.id for job in node.claim(10)]
    look_at_floor(store)
    got += [job.id for job in node.claim(10)]
    assert got == ids


def test_a_new_job_of_an_empty_line_is_claimed_at_once(store, node):
    assert node.claim() == []
    look_at_floor(store)
    (job,) = put(store, new_job())
    assert [one.id for one in node.claim()] == [job]


def test_a_job_before_the_floor_is_claimed_by_the_next_look_from_the_beginning(store, node):
    put_many(store, 3)
    node.claim()
    look_at_floor(store)
    (urgent,) = put(store, new_job(priority=9))
    assert node.claim() == []
    look_at_floor(store, soon=True)
    assert [job.id for job in node.claim()] == [urgent]


def test_what_falls_due_is_promoted_and_what_expires_is_cancelled(store, node):
    node.claim()
    look_at_floor(store)
    due, expiring = put(store, new_job(delay=60.0), new_job(queue="other", expires=60.0))
    store.clock.shift += 61_000_000
    assert [job.id for job in node.claim()] == [due]
    assert node.exchange(claims=[Claim("other", 1)]).claimed == ()
    assert store.get([expiring])[0].reason == "expired"


def test_a_job_that_was_committed_long_after_its_time_is_claimed_by_the_next_look_from_the_beginning(
    store, node, postgres_url
):
    with psycopg.connect(address_and_name(postgres_url)[0]) as mine:
        (late,) = store.enqueue([new_job(delay=1.0)], transaction=mine)
        store.clock.shift += 60_000_000
        assert node.claim() == []
        mine.commit()
    look_at_floor(store)
    assert node.claim() == []
    look_at_floor(store, soon=True)
    assert [job.id for job in node.claim()] == [late.id]


def test_a_backlog_of_due_jobs_before_the_floor_is_put_in_line_page_by_page(
    store, node, postgres_url, monkeypatch
):
    monkeypatch.setattr(claim, "DUE", 2)
    with psycopg.connect(address_and_name(postgres_url)[0]) as mine:
        store.enqueue([new_job(delay=1.0) for _ in range(6)], transaction=mine)
        store.clock.shift += 60_000_000
        assert node.claim() == []
        mine.commit()
    look_at_floor(store, soon=True)
    got = [len(node.claim()) for _ in range(3)]
    assert sum(got) == 6
