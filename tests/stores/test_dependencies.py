"""Jobs behind other jobs: they wait for all of them to complete, and fall with any that will not."""

from __future__ import annotations

import pytest

from millpond.errors import UnknownJob
from millpond.job import Cancelled, Failure, Raised, Released
from millpond.store.protocol import Filter, Retention
from tests.proof_node.books import left_over
from tests.stores.acting import (
    Node,
    dead_job,
    happened,
    new_job,
    put,
    put_many,
    state,
    states,
    tally,
    the,
    travel,
)

FINAL = Raised(Failure("E", "no"), final=True)


def chain(store, *parents, **facts):
    return put(store, new_job(depends_on=parents, **facts))[0]


def test_a_child_waits_for_its_parent(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    assert (state(store, child), the(store, child).depends_on) == ("blocked", (parent,))
    job = node.claim_one()
    assert node.claim() == []
    node.settle(job)
    assert state(store, child) == "queued"
    assert node.claim_one().id == child


def test_a_child_waits_for_every_parent(store, node):
    parents = put(store, new_job(), new_job(), new_job())
    child = chain(store, *parents)
    for parent in parents:
        assert state(store, child) == "blocked"
        assert node.run().id == parent
    assert state(store, child) == "queued"


def test_parents_that_complete_in_one_call(store, node):
    parents = put(store, new_job(), new_job(), new_job())
    children = [chain(store, *parents), chain(store, parents[0], parents[1]), chain(store, parents[2])]
    node.settle(*node.claim(2))
    assert states(store, children) == ["blocked", "queued", "blocked"]
    node.run()
    assert states(store, children) == ["queued", "queued", "queued"]


def test_a_parent_that_has_completed_holds_nothing_up(store, node):
    (done, open_) = put(store, new_job(), new_job())
    node.run()
    assert state(store, chain(store, done)) == "queued"
    both = chain(store, done, open_)
    assert state(store, both) == "blocked"
    node.run()
    assert state(store, both) == "queued"


def test_a_parent_named_twice_counts_once(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent, parent)
    node.run()
    assert state(store, child) == "queued"


def test_a_job_behind_one_that_is_dead_or_cancelled_already_leaves_nothing_behind(url, open_at):
    store = open_at(url)
    node = Node(store)
    dead = dead_job(store, node)
    gone, waits = put(store, new_job(), new_job())
    store.cancel(Filter(ids=(gone,)))
    children = [chain(store, parent, waits) for parent in (dead, gone)]
    assert [the(store, child).reason for child in children] == ["dependency"] * 2
    node.run()
    assert left_over(url, store) == {}


def test_a_child_with_a_time_waits_for_it_after_its_parent(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent, delay=60.0)
    assert state(store, child) == "blocked"
    node.run()
    assert state(store, child) == "scheduled"
    travel(store, 60)
    assert node.claim_one().id == child


def test_a_child_whose_time_came_while_it_was_blocked_is_queued(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent, delay=60.0)
    travel(store, 61)
    node.run()
    assert state(store, child) == "queued"


def test_a_retried_parent_goes_on_holding_its_child(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    node.run(Released())
    node.run(Raised(Failure("E", "no"), retry_in=0.0))
    assert state(store, child) == "blocked"
    node.run()
    assert state(store, child) == "queued"


@pytest.mark.parametrize("outcome", [FINAL, Cancelled()])
def test_a_parent_that_will_not_complete_takes_all_its_descendants_along(store, node, outcome):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    grandchild = chain(store, child)
    great = chain(store, grandchild, parent)
    (apart,) = put(store, new_job())
    node.run(outcome)
    assert states(store, [child, grandchild, great, apart]) == [
        "cancelled",
        "cancelled",
        "cancelled",
        "queued",
    ]
    assert {the(store, job).reason for job in (child, grandchild, great)} == {"dependency"}
    assert the(store, great).finished_at == store.clock.now()
    assert happened(store)["cancelled"] == 3 + (outcome != FINAL)


def test_cancelling_a_waiting_parent_takes_its_descendants_along(store):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    grandchild = chain(store, child)
    store.cancel(Filter(ids=(parent,)))
    assert states(store, [parent, child, grandchild]) == ["cancelled"] * 3
    assert [the(store, job).reason for job in (parent, child)] == ["cancelled", "dependency"]


def test_a_fallen_child_lets_go_of_its_unique_key(store):
    (parent,) = put(store, new_job())
    chain(store, parent, unique="k")
    store.cancel(Filter(ids=(parent,)))
    put(store, new_job(unique="k"))


def test_a_child_of_a_dead_parent_is_stored_and_cancelled_at_once(store, node):
    parent = dead_job(store, node)
    child = chain(store, parent)
    found = the(store, child)
    assert (found.state, found.reason) == ("cancelled", "dependency")
    assert node.claim() == []
    assert state(store, chain(store, child)) == "cancelled"


def test_a_child_of_a_dead_and_of_a_waiting_parent_is_cancelled(store, node):
    parent = dead_job(store, node)
    (waiting,) = put(store, new_job())
    child = chain(store, waiting, parent)
    assert state(store, child) == "cancelled"
    node.run()
    assert state(store, child) == "cancelled"


def test_a_parent_that_nobody_knows_is_refused(store):
    job = new_job(depends_on=("nobody",))
    with pytest.raises(UnknownJob, match="nobody"):
        store.enqueue([job])
    assert store.get([job.id]) == [None]


def test_parent_and_child_may_come_in_one_call_in_any_order(store, node):
    parent = new_job()
    child = new_job(depends_on=(parent.id,))
    grandchild = new_job(depends_on=(child.id, parent.id))
    put(store, grandchild, child, parent)
    assert states(store, [parent.id, child.id, grandchild.id]) == ["queued", "blocked", "blocked"]
    for wanted in (parent, child, grandchild):
        assert node.run().id == wanted.id
    assert tally(store) == {"completed": 3}


def test_a_family_of_one_call_falls_together(store, node):
    parent = new_job()
    child = new_job(depends_on=(parent.id,))
    grandchild = new_job(depends_on=(child.id,))
    put(store, grandchild, child, parent)
    node.run(FINAL)
    assert states(store, [parent.id, child.id, grandchild.id]) == ["dead", "cancelled", "cancelled"]


def test_a_family_of_one_call_behind_a_dead_job_falls_at_once(store, node):
    dead = dead_job(store, node)
    parent = new_job(depends_on=(dead,))
    child = new_job(depends_on=(parent.id,))
    put(store, child, parent)
    assert states(store, [parent.id, child.id]) == ["cancelled", "cancelled"]


def test_a_replayed_parent_does_not_bring_back_those_that_fell(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    node.run(FINAL)
    store.replay(Filter(ids=(parent,)))
    late = chain(store, parent)
    node.run()
    assert states(store, [parent, child, late]) == ["completed", "cancelled", "queued"]


def test_a_blocked_child_that_was_cancelled_stays_so(store, node):
    (parent,) = put(store, new_job())
    child = chain(store, parent)
    store.cancel(Filter(ids=(child,)))
    node.run()
    assert state(store, child) == "cancelled"


def test_a_parent_lost_for_good_takes_its_child_along(store):
    from millpond.job import JobOptions
    from tests.stores.acting import Node

    (parent,) = put(store, new_job(options=JobOptions(max_lost=1)))
    child = chain(store, parent)
    gone = Node(store, "gone")
    gone.start(gone.claim_one())
    Node(store, "n2")
    store.rescue("n2", gone=["gone"])
    assert states(store, [parent, child]) == ["dead", "cancelled"]


def test_a_wide_family(store, node):
    (parent,) = put(store, new_job())
    children = put(store, *(new_job(depends_on=(parent,)) for _ in range(1200)))
    node.run()
    node.reach_all()
    assert tally(store) == {"completed": 1, "queued": 1200}
    assert len(node.claim(2000)) == len(children)


def test_a_deep_family_falls_to_the_last(store):
    jobs = [new_job()]
    for _ in range(150):
        jobs.append(new_job(depends_on=(jobs[-1].id,)))
    put(store, *jobs)
    store.cancel(Filter(ids=(jobs[0].id,)))
    assert tally(store) == {"cancelled": 151}


def test_a_new_job_under_the_id_of_a_discarded_one_has_no_old_parents(store, node):
    (parent,) = put(store, new_job(queue="first"))
    child = chain(store, parent)
    store.cancel(Filter(ids=(child,)))
    assert store.prune(Retention(), Filter(ids=(child,))) == 1
    (other,) = put(store, new_job(queue="second"))
    chain(store, other, id=child)
    node.settle(node.claim_one("first"))
    assert state(store, child) == "blocked"
    node.settle(node.claim_one("second"))
    assert state(store, child) == "queued"


def test_a_batch_may_end_more_parents_than_a_script_has_stack(store, node):
    parents = put_many(store, 8500)
    put(store, *(new_job(queue="behind", depends_on=(parent,)) for parent in parents))
    node.settle(*node.claim(8500))
    node.reach_all()
    assert tally(store, "behind") == {"queued": 8500}


def test_a_large_batch_may_be_born_doomed(store, node):
    dead = dead_job(store, node)
    children = [new_job(queue="behind", depends_on=(dead,)) for _ in range(8500)]
    put(store, *children, *(new_job(queue="behind", depends_on=(child.id,)) for child in children))
    node.reach_all()
    assert tally(store, "behind") == {"cancelled": 17_000}
