"""An exchange during which the node does something else: the same answer, and nobody waits for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from millpond.errors import OutcomeUnknown
from millpond.job import JobState
from millpond.node.jobs.exchange import Speaker
from millpond.store.protocol import Claim, Exchanged, Said
from tests.servers.redis import client_for
from tests.stores.acting import AnyStore, Node, put_many, state, tally
from tests.stores.places import address_and_name, job_key, place

Hold = Callable[[], Callable[[], None]]  # stops the server, and says how it goes on


@contextmanager
def stopped_redis(url: str) -> Iterator[Hold]:
    with client_for(url) as client:

        def hold() -> Callable[[], None]:
            client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            return lambda: client.execute_command("CLIENT", "UNPAUSE")

        yield hold


@contextmanager
def locked_postgres(url: str) -> Iterator[Hold]:
    address, schema = address_and_name(url)
    with psycopg.connect(address) as connection:

        def hold() -> Callable[[], None]:
            connection.execute(f"LOCK TABLE {schema}.jobs".encode())
            return connection.rollback

        yield hold


HOLDING = {"redis": stopped_redis, "postgres": locked_postgres}


@pytest.fixture(params=HOLDING)
def held_up(request, tmp_path, open_at):
    """A store, and a way to keep its server from answering."""
    with place(request.param, tmp_path) as url, HOLDING[request.param](url) as hold:
        yield open_at(url), hold


@pytest.fixture
def say() -> Iterator[Callable[..., Exchanged]]:
    """Exchange as a node does that has something else to do."""
    speakers = []

    def exchange(node: Node, meanwhile: Callable[[], None], **said) -> Exchanged:
        speakers.append(Speaker(node.store))
        node.sequence += 1
        return speakers[-1].say_meanwhile(node.name, node.sequence, Said(**said), meanwhile)

    yield exchange
    for speaker in speakers:
        speaker.close()


def nothing() -> None:
    """What a node does that has nothing else to do."""


def claim(limit: int = 100) -> list[Claim]:
    return [Claim("default", limit)]


def test_the_answer_is_the_same(store: AnyStore, say):
    put_many(store, 5)
    node = Node(store)
    first = say(node, nothing, claims=claim(3))
    assert first.by_queue() == {"default": 3}
    assert len(first.claimed) == len({job.id for job in first.claimed}) == 3
    done = [node.verdict(job) for job in first.claimed]
    second = say(node, nothing, settlements=done, claims=claim())
    assert (second.by_queue(), second.stale) == ({"default": 2}, ())
    assert tally(store) == {"completed": 3, "running": 2}


def test_a_node_works_while_the_server_does(held_up, say):
    store, hold = held_up
    (job,) = put_many(store, 1)
    node = Node(store)
    go_on = hold()  # with nobody to call this, the exchange would not be answered
    assert [one.id for one in say(node, go_on, claims=claim()).claimed] == [job]


def test_an_error_of_the_nodes_own_work_leaves_a_store_that_can_be_used(held_up, say):
    store, hold = held_up
    put_many(store, 1)
    node = Node(store)
    go_on = hold()

    def fail() -> None:
        go_on()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        say(node, fail, claims=claim())
    node.exchange()
    assert store.held(node.name).sequence == node.sequence


def test_the_outcome_is_unknown_when_no_answer_comes(tmp_path, open_at, say, monkeypatch):
    with place("redis", tmp_path) as url, stopped_redis(url) as hold:
        store = open_at(url)
        node = Node(store)
        monkeypatch.setattr(store._server, "patience", 0.1)
        go_on = hold()
        with pytest.raises(OutcomeUnknown, match=r"no answer within 0\.1 s"):
            say(node, nothing, claims=claim())
        go_on()
        assert tally(store) == {}


def test_a_claimed_job_that_cannot_be_read_ends_dead_and_takes_no_other_with_it(tmp_path, open_at, say):
    with place("redis", tmp_path) as url:
        store = open_at(url)
        first, second = put_many(store, 2)
        with client_for(url) as client:
            client.hset(job_key(url, first, "body"), first, "9 {")
        answer = say(Node(store), nothing, claims=claim())
        assert (len(answer.claimed), answer.by_queue()) == (2, {"default": 2})
        assert [job.id for job in answer.claimed] == [second]
        assert state(store, first) is JobState.DEAD


def test_where_no_thread_can_be_started_it_is_said_all_the_same(store: AnyStore, say, monkeypatch):
    """And again: an order that nobody reads would be waited for without an end."""
    put_many(store, 2)
    node = Node(store)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert [say(node, nothing, claims=claim(1)).by_queue() for _ in range(2)] == [{"default": 1}] * 2


def refuse(_: object) -> None:
    raise RuntimeError("can't start new thread")
