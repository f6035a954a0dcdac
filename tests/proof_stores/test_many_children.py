"""A job with very many children ends, however it ends: in bounded steps, with others served in between."""

from __future__ import annotations

import pytest

from millpond.job import Failure, Raised
from millpond.store.protocol import Claim, Filter
from tests.stores.acting import OK, Node, happened, new_job, opened, put, put_many, tally
from tests.stores.places import SHARED, place

SIZES = [20_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])]
PAGE = 10_000  # children that are enqueued together
MOST = (
    10_000  # jobs that one exchange may start or end: a page for the end, and one for the claim that goes on
)
OTHERS = 10
FINAL = Raised(Failure("E", "no"), final=True)


@pytest.fixture(params=SHARED)
def store(request, tmp_path):
    with place(request.param, tmp_path) as url:
        store = opened(url)
        yield store
        store.close()


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize(
    ("outcome", "end"), [(OK, "queued"), (FINAL, "cancelled")], ids=["completes", "dies"]
)
def test_very_many_children_start_or_fall_page_by_page_behind_their_parent(store, outcome, end, number):
    node = Node(store)
    family(store, number)
    put_many(store, OTHERS, queue="other")
    (parent,) = node.claim(1)
    done, reached, served, more = [node.verdict(parent, outcome)], 0, 0, True
    while more or done:
        answer = node.exchange(settlements=done, claims=[Claim("empty", 1), Claim("other", 1)])
        assert (answer.stale, answer.deferred) == ((), ())
        served += len(answer.claimed)
        done, more = [node.verdict(job) for job in answer.claimed], answer.more
        assert answer.claimed or served == OTHERS  # one with each step, however many steps there are
        before, reached = reached, tally(store, "behind").get(end, 0)
        assert reached - before <= MOST
        node.renew()
    assert tally(store, "behind") == {end: number}
    balances(store, {"enqueued": number} | ({"cancelled": number} if end == "cancelled" else {}))
    if end == "queued":
        drain_some(store, node, number)


@pytest.mark.parametrize("number", SIZES)
def test_very_many_children_of_a_parent_that_is_cancelled_are_cancelled(store, number):
    node = Node(store)
    parent = family(store, number)
    assert store.cancel(Filter(ids=(parent,))) == 1
    while node.exchange(claims=[Claim("empty", 1)]).more:
        node.renew()
    assert tally(store, "behind") == {"cancelled": number}
    assert tally(store) == {"cancelled": 1}
    balances(store, {"enqueued": number, "cancelled": number})


def family(store, number):
    """One parent, and so many children behind it."""
    (parent,) = put(store, new_job())
    for first in range(0, number, PAGE):
        put_many(store, min(PAGE, number - first), queue="behind", depends_on=(parent,))
    assert tally(store, "behind") == {"blocked": number}
    return parent


def drain_some(store, node, number):
    """The first of those that may start run, and are counted."""
    jobs = node.claim(1000, "behind")
    node.settle(*jobs)
    assert len(jobs) == 1000
    assert tally(store, "behind") == {"queued": number - 1000, "completed": 1000}
    balances(store, {"enqueued": number, "completed": 1000})


def balances(store, expected):
    """What has happened is what there is."""
    found = happened(store, "behind")
    assert {what: found.get(what, 0) for what in expected} == expected
