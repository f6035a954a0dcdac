"""Claims where another exchange has locked a slot for a moment: they look behind the jobs that need it."""

from __future__ import annotations

from typing import Any

import pytest

from millpond.job import Slot
from millpond.store.protocol import Claim
from millpond.store.sql import claim
from tests.stores.acting import Node, new_job, put, put_many


@pytest.fixture
def node(shared: Any, other: Any) -> Node:
    """A node beside an exchange that has locked the slot at the head of the line."""
    put_many(shared, 300, slots=(Slot("s", 1000),))
    other.execute(f"SELECT * FROM {shared.schema}.slots FOR UPDATE".encode())
    return Node(shared)


def test_a_claim_of_one_looks_behind_jobs_whose_slot_is_locked(shared, node):
    """It is locked for a millisecond: the node would rest for a second beside a line full of other jobs."""
    (free,) = put(shared, new_job(slots=(Slot("t", 1),)))
    assert [job.id for job in node.claim(1)] == [free]


def test_a_claim_that_finds_only_locked_slots_does_not_ask_for_the_next_at_once(node, monkeypatch):
    """The node would claim without a pause for as long as the slot is locked."""
    monkeypatch.setattr(claim, "WINDOW", 5)
    monkeypatch.setattr(claim, "LOOKED", 50)
    answer = node.exchange(claims=[Claim("default", 1)])
    assert (answer.claimed, answer.more) == ((), False)
