"""A witnessed store: it answers as before, and what was said is in the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from millpond.errors import NodeRefused, OutcomeUnknown
from millpond.job import Job, Released, Settlement
from millpond.store.protocol import Claim, Exchanged, Said
from tests.history import Bug, Evidence, Rules, finals, judge, now, read, witness, witnessed
from tests.history.entries import Acknowledged, Attempted, Granted, Joined, Settled, Slow
from tests.stores.acting import AnyStore, Node, new_job, opened, put, put_many
from tests.stores.places import place


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnyStore]:
    store = witnessed(opened(f"sqlite:///{tmp_path / 'jobs.db'}"), Evidence(tmp_path, "label"))
    yield store
    store.close()


def seen(folder: Path, kind: type) -> list:
    return [entry for entry in read(folder) if type(entry) is kind]


def test_what_is_enqueued_is_noted_before_and_after(store, tmp_path):
    jobs = put_many(store, 3)
    assert [line.job for line in seen(tmp_path, Attempted)] == jobs
    assert [line.job for line in seen(tmp_path, Acknowledged)] == jobs


def test_what_was_refused_is_attempted_and_no_more(store, tmp_path):
    with pytest.raises(Exception, match="nobody"):
        store.enqueue([new_job(depends_on=("nobody",))])
    assert len(seen(tmp_path, Attempted)) == 1
    assert seen(tmp_path, Acknowledged) == []


def test_the_holder_of_a_unique_key_is_what_is_acknowledged(store, tmp_path):
    (first,) = put(store, new_job(unique="k"))
    store.enqueue([new_job(unique="k")])
    assert [line.job for line in seen(tmp_path, Acknowledged)] == [first, first]


def test_an_incarnation_is_tied_to_its_label_once(store, tmp_path):
    node = Node(store)
    node.renew()
    (line,) = seen(tmp_path, Joined)
    assert (line.node, line.incarnation) == ("label", "n1")


def test_claims_and_settlements_are_noted_with_their_tokens(store, tmp_path):
    put_many(store, 1)
    node = Node(store)
    job = node.claim_one()
    node.settle(job)
    (granted,), (settled,) = seen(tmp_path, Granted), seen(tmp_path, Settled)
    assert (granted.job, granted.token, granted.node) == (job.id, 1, "n1")
    assert (settled.token, settled.state, settled.accepted) == (1, "completed", True)
    assert granted.at <= settled.asked_at <= settled.at


def test_a_stale_settlement_is_noted_as_refused(store, tmp_path):
    put_many(store, 1)
    node = Node(store)
    job = node.claim_one()
    node.settle(job, outcome=Released())
    node.exchange(settlements=[node.verdict(job)])
    assert [line.accepted for line in seen(tmp_path, Settled)] == [True, False]


def test_a_node_without_a_lease_is_noted_as_refused(store, tmp_path):
    put_many(store, 1)
    node = Node(store)
    job = node.claim_one()
    store.renew("n1", "here", lease=0)
    with pytest.raises(NodeRefused):
        node.settle(job)
    assert [line.accepted for line in seen(tmp_path, Settled)] == [False]


def test_of_a_repeated_exchange_nothing_is_known(store, tmp_path):
    put_many(store, 1)
    node = Node(store)
    job = node.claim_one()
    node.sequence -= 1
    assert node.exchange(settlements=[node.verdict(job)]).replayed
    assert [line.accepted for line in seen(tmp_path, Settled)] == [None]


def test_of_an_answer_that_never_came_nothing_is_known(tmp_path):
    store = opened(f"sqlite:///{tmp_path / 'jobs.db'}")
    put_many(store, 1)
    node = Node(store)
    job: Job = node.claim_one()
    store.exchange = _cut_off  # type: ignore[method-assign]
    witnessed(store, Evidence(tmp_path))
    with pytest.raises(OutcomeUnknown):
        node.settle(job)
    assert [line.accepted for line in seen(tmp_path, Settled)] == [None]
    store.close()


def _cut_off(*_: object, **__: object):
    raise OutcomeUnknown("cut off")


def test_a_settlement_that_is_put_off_is_not_noted_until_it_is_taken(tmp_path):
    """It is sent again; noted each time, it would seem to have been settled several times."""
    store = opened(f"sqlite:///{tmp_path / 'jobs.db'}")
    put_many(store, 1)
    node = Node(store)
    job: Job = node.claim_one()
    answers = [Exchanged(deferred=(job.id,)), Exchanged()]
    store.exchange = lambda *_, **__: answers.pop(0)  # type: ignore[method-assign]
    witnessed(store, Evidence(tmp_path))
    node.exchange(settlements=[node.verdict(job)])
    assert seen(tmp_path, Settled) == []
    node.exchange(settlements=[node.verdict(job)])
    assert [line.accepted for line in seen(tmp_path, Settled)] == [True]
    store.close()


def test_an_exchange_that_takes_long_is_noted_even_if_it_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(witness, "LONG", -1)
    store = opened(f"sqlite:///{tmp_path / 'jobs.db'}")
    store.exchange = _cut_off  # type: ignore[method-assign]
    witnessed(store, Evidence(tmp_path, "label"))
    with pytest.raises(OutcomeUnknown):
        Node(store).claim()
    (slow,) = seen(tmp_path, Slow)
    assert slow.node == "label"
    assert slow.asked_at <= slow.at
    store.close()


# --- a store that sends first and listens later -------------------------------------------------------
@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Node]:
    """A node on such a store, under observation."""
    with place("redis", tmp_path) as url:
        store = witnessed(opened(url), Evidence(tmp_path, "label"))
        yield Node(store)
        store.close()


def said_meanwhile(node: Node, *settlements: Settlement, claim: int = 0) -> Exchanged:
    node.sequence += 1
    said = Said(settlements, claims=[Claim("default", claim)] if claim else ())
    answer: Exchanged = node.store.exchange_meanwhile(list, node.name, node.sequence, said)  # type: ignore[attr-defined]
    return answer


def test_what_is_settled_while_a_node_does_something_else_is_noted(sending, tmp_path):
    put_many(sending.store, 2)
    first, second = sending.claim(2)
    sending.settle(first, outcome=Released())
    said_meanwhile(sending, sending.verdict(first), sending.verdict(second))
    verdicts = [(line.job, line.state, line.accepted) for line in seen(tmp_path, Settled)]
    assert verdicts == [
        (first.id, "queued", True),
        (first.id, "completed", False),
        (second.id, "completed", True),
    ]


def test_what_is_claimed_meanwhile_is_noted_when_it_is_read_and_not_read_earlier(sending, tmp_path):
    put_many(sending.store, 2)
    answer = said_meanwhile(sending, claim=2)
    assert (len(answer.claimed), dict(answer.by_queue())) == (2, {"default": 2})
    assert seen(tmp_path, Granted) == []
    before = now()
    jobs = list(answer.claimed)
    assert [answer.claimed[0], answer.claimed[1]] == jobs
    lines = seen(tmp_path, Granted)
    assert [(line.job, line.token, line.node) for line in lines] == [(job.id, 1, "n1") for job in jobs]
    assert all(line.at <= before for line in lines)  # the token was given out with the answer


def test_a_node_without_a_lease_is_noted_as_refused_meanwhile(sending, tmp_path):
    put_many(sending.store, 1)
    job = sending.claim_one()
    sending.store.renew("n1", "here", lease=0)
    with pytest.raises(NodeRefused):
        said_meanwhile(sending, sending.verdict(job))
    assert [line.accepted for line in seen(tmp_path, Settled)] == [False]


def test_a_stale_settlement_that_is_accepted_meanwhile_is_found(tmp_path):
    """By a store that takes every word of a large round for true."""
    with place("redis", tmp_path) as url:
        store: Any = opened(url)
        honest = store.exchange_meanwhile
        store.exchange_meanwhile = lambda *said: msgspec.structs.replace(honest(*said), stale=())
        node = Node(witnessed(store, Evidence(tmp_path, "label")))
        (name,) = put_many(store, 1)
        first = node.claim_one()
        node.settle(first, outcome=Released())
        node.claim_one()
        said_meanwhile(node, node.verdict(first))
        found = judge(read(tmp_path), finals(store), Rules(drained=False))
        assert [(violation.bug, violation.job) for violation in found] == [
            (Bug.DOUBLED_END, name),
            (Bug.STALE, name),
        ]
        store.close()


def test_every_job_is_read_at_the_end_however_many_there_are(store, tmp_path):
    jobs = put_many(store, 1500)
    assert sorted(finals(store)) == sorted(jobs)
    found = judge(read(tmp_path), finals(store))
    assert len(found) == 1500
    assert {str(violation.bug) for violation in found} == {"unfinished"}
