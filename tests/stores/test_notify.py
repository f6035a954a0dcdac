"""Notifications of PostgreSQL: few, and never part of a commit."""

from __future__ import annotations

import psycopg
import pytest

from millpond.rules.store import announcement
from millpond.store.postgres import notify
from millpond.store.postgres.notify import Notifier
from tests.stores.acting import new_job, opened, put
from tests.stores.places import address_and_name

LONG = 60.0


@pytest.fixture
def slow(monkeypatch):
    """A gap that does not end, and no announcement after a user's enqueue, while a test lasts."""
    monkeypatch.setattr(announcement, "GAP", LONG)
    monkeypatch.setattr(announcement, "SHARE", 0)
    monkeypatch.setattr(notify, "LATER", (LONG,))


def test_a_queue_is_announced_once_in_its_gap_and_the_rest_when_it_is_over(slow):
    sent: list[frozenset[str]] = []
    notifier = Notifier(sent.append)
    for _ in range(50):
        notifier.announce({"mail"})
    notifier.announce({"mail", "images"})
    assert sent == [{"mail"}, {"images"}]
    notifier.close()
    assert sent[2:] == [{"mail"}]


def test_queues_are_announced_together_while_announcements_take_long(monkeypatch):
    """A process with many queues would otherwise follow each enqueue by an announcement."""
    monkeypatch.setattr(announcement, "SHARE", 10**12)
    monkeypatch.setattr(announcement, "LONGEST", LONG)
    sent: list[frozenset[str]] = []
    notifier = Notifier(sent.append)
    queues = {f"queue-{number}" for number in range(50)}
    for name in sorted(queues):
        notifier.announce({name})
    assert sent == [{"queue-0"}]
    notifier.close()
    assert sent == [{"queue-0"}, queues - {"queue-0"}]


def test_a_commit_of_a_user_carries_no_notification(postgres_url, slow):
    """One that does waits, and makes others wait, for a lock of the whole server until it is on the disk."""
    store = opened(postgres_url)
    address, schema = address_and_name(postgres_url)
    with psycopg.connect(address, autocommit=True) as hearing, psycopg.connect(address) as mine:
        hearing.execute(f"LISTEN millpond_{schema}".encode())
        store.enqueue([new_job()], transaction=mine)
        mine.commit()
        hearing.execute(f"NOTIFY millpond_{schema}, 'after the commit'".encode())
        (first,) = hearing.notifies(timeout=LONG, stop_after=1)
    assert first.payload == "after the commit"
    store.close()


def test_a_commit_of_our_own_carries_none_either(postgres_url, slow):
    store = opened(postgres_url)
    address, schema = address_and_name(postgres_url)
    put(store, new_job())  # announced: the gap of its queue begins
    with psycopg.connect(address, autocommit=True) as hearing:
        hearing.execute(f"LISTEN millpond_{schema}".encode())
        put(store, new_job())
        put(store, new_job(unique="k"))
        hearing.execute(f"NOTIFY millpond_{schema}, 'after the commit'".encode())
        (first,) = hearing.notifies(timeout=LONG, stop_after=1)
    assert first.payload == "after the commit"
    store.close()
