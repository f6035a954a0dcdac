"""The judgement of a chaotic run finds what is planted in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from millpond.job import MICROSECONDS, Job, Slot
from millpond.store.protocol import Filter
from tests.history.entries import Acknowledged, Began, Ended, Entry, Fault, How, Kind, Over, Settled, Slow
from tests.history.faults import SECOND
from tests.history.timeline import past_of
from tests.proof_node.books import left_over, miscounted
from tests.proof_node.crowd import Deeds
from tests.proof_node.verdict import doubled, ends_of, late, out_of_order
from tests.stores.acting import AnyStore, Node, new_job, opened, put, the
from tests.stores.places import SHARED, place


@pytest.fixture
def node() -> Iterator[Node]:
    store = opened("memory://")
    yield Node(store)
    store.close()


def finished(node: Node, created: float, ended: float, **facts: Any) -> Job:
    """A job that was made and came to its end at these seconds."""
    (job,) = put(node.store, new_job(**facts))
    node.run()
    at = {"created_at": round(created * MICROSECONDS), "finished_at": round(ended * MICROSECONDS)}
    return msgspec.structs.replace(the(node.store, job), **at)


def ran(job: Job, since: int, until: int) -> list[Entry]:
    began = Began(job.id, 1, 1, "n1", 7, since)
    return [began, Ended(job.id, 1, How.RETURNED, until)]


# --- exchanges -------------------------------------------------------------------------------------------
def test_an_exchange_above_two_seconds_is_told():
    assert list(late([Slow("n1", 0, 3 * SECOND), Slow("n2", 0, SECOND)])) == ["n1: 3.0 s"]


@pytest.mark.parametrize(
    ("kind", "node", "told"),
    [(Kind.STORE, None, 0), (Kind.STOPPED, "n1", 0), (Kind.STOPPED, "n2", 1), (Kind.KILLED, "n1", 1)],
)
def test_a_server_that_is_away_and_a_node_that_is_stopped_excuse_it(kind: Kind, node: str | None, told: int):
    during: list[Entry] = [Fault("f", kind, SECOND, None, node), Over("f", 2 * SECOND)]
    assert len(list(late([*during, Slow("n1", 0, 3 * SECOND)]))) == told
    assert len(list(late([*during, Slow("n1", 3 * SECOND, 9 * SECOND)]))) == 1


# --- unique keys -----------------------------------------------------------------------------------------
def test_two_jobs_that_had_a_key_at_a_time_are_told(node):
    first = finished(node, 0, 5, unique="done-1")
    beside, after = finished(node, 4, 6, unique="done-1"), finished(node, 5, 6, unique="done-1")
    assert len(list(doubled({first.id: first, beside.id: beside}, Deeds()))) == 1
    assert list(doubled({first.id: first, after.id: after}, Deeds())) == []


def test_a_key_that_was_free_by_the_evidence_was_free_whatever_two_clocks_say(node):
    first = finished(node, 0, 5, unique="done-1")
    after = finished(node, 4.9, 6, unique="done-1")
    jobs = {first.id: first, after.id: after}
    settled = Settled(first.id, 1, "n1", "completed", True, 5 * SECOND, 6 * SECOND)
    assert len(list(doubled(jobs, Deeds(), [settled, Acknowledged(after.id, 4 * SECOND)]))) == 1
    assert list(doubled(jobs, Deeds(), [settled, Acknowledged(after.id, 7 * SECOND)])) == []


def test_a_key_that_lasts_for_a_time_is_free_after_it(node):
    first = finished(node, 0, 1, unique="2.0-1")
    early, later = finished(node, 1.9, 3, unique="2.0-1"), finished(node, 2.1, 3, unique="2.0-1")
    assert len(list(doubled({first.id: first, early.id: early}, Deeds()))) == 1
    assert list(doubled({first.id: first, later.id: later}, Deeds())) == []


# --- dependencies ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("since", "told"), [(3, 0), (1, 1)])
def test_a_job_that_ran_before_its_parent_had_returned_is_told(node, since, told):
    parent = finished(node, 0, 2)
    child = finished(node, 0, 4, depends_on=(parent.id,))
    past = past_of([*ran(parent, 0, 2), *ran(child, since, 4)], 1.0)
    assert len(list(out_of_order({parent.id: parent, child.id: child}, past, Deeds()))) == told


def test_a_job_that_fell_without_its_parent_is_told(node):
    parent = finished(node, 0, 2)
    child = msgspec.structs.replace(finished(node, 0, 4, depends_on=(parent.id,)), reason="dependency")
    past = past_of(ran(parent, 0, 2) + ran(child, 3, 4), 1.0)
    assert len(list(out_of_order({parent.id: parent, child.id: child}, past, Deeds()))) == 1


def test_only_a_job_that_was_cancelled_may_end_so(node):
    job = finished(node, 0, 1)
    deeds = Deeds()
    assert ends_of(job, deeds) == ["completed"]
    deeds.cancelled.add(job.id)
    assert "cancelled(cancelled)" in ends_of(job, deeds)


# --- books -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", SHARED)
def test_whatever_a_job_still_has_is_found_in_the_books(name, tmp_path):
    with place(name, tmp_path) as url:
        store = opened(url)
        (parent,) = put(store, new_job(slots=(Slot("s", 1),), unique="k"))
        put(store, new_job(depends_on=(parent,)), new_job(slots=(Slot("s", 1),)))
        node = Node(store)
        job = node.claim_one()
        assert len(left_over(url, store)) >= 3  # a slot, a key, a dependent
        assert miscounted(store, {}).keys() == {"tallies", "nodes with jobs"}
        node.settle(job)
        for _ in range(2):
            node.run()
        assert left_over(url, store) == {}
        assert miscounted(store, {job: the(store, job) for job in _ids(store)}) == {}
        store.close()


def _ids(store: AnyStore) -> list[str]:
    return [job.id for job in store.search(Filter()).jobs]
