"""Node leases: who may speak, who may rescue whom, and that a rescue strands nothing."""

from __future__ import annotations

import pytest

from millpond.errors import NodeRefused
from millpond.job import JobOptions, JobState, Released
from millpond.store.protocol import LEASE, Claim, Filter
from tests.stores.acting import Node, happened, new_job, put, put_many, state, tally, the, travel


def steady(store, name="rescuer", host="there", lease=LEASE):
    """A node that has renewed without a gap for longer than a lease."""
    node = Node(store, name, host, lease)
    for _ in range(4):
        travel(store, lease / 2.5)
        node.renew()
    return node


def keep_renewing(node, seconds):
    """Let the time pass, and renew in it as often as a real node does."""
    for _ in range(5):
        travel(node.store, seconds / 5)
        node.renew()


def record(store, name):
    (found,) = [node for node in store.counts().nodes if node.id == name] or [None]
    return found


def gone_with(store, number, **facts):
    """A node that claimed jobs, began the first half, and was not heard of again."""
    put_many(store, number, **facts)
    node = Node(store, "gone")
    jobs = node.claim(number)
    node.start(*jobs[: number // 2])
    return node, jobs


def test_a_lease_is_shown(store):
    store.renew("n1", "here", b'{"pid": 1}', lease=20.0)
    travel(store, 5)
    found = record(store, "n1")
    assert (found.host, found.info, found.lease_left) == ("here", b'{"pid": 1}', pytest.approx(15.0))
    assert (found.sequence, found.sealed, found.running) == (0, False, 0)


def test_a_record_counts_what_runs(store, node):
    put_many(store, 3)
    node.claim(2)
    assert (record(store, "n1").running, record(store, "n1").sequence) == (2, 1)


def test_renewing_extends(store, node):
    travel(store, 10)
    node.renew()
    assert record(store, "n1").lease_left == pytest.approx(LEASE)


def test_a_lease_that_has_run_out_refuses_nothing(store, node):
    put_many(store, 2)
    job = node.claim_one()
    travel(store, 100)
    assert record(store, "n1").lease_left == pytest.approx(LEASE - 100)
    node.settle(job)
    assert len(node.claim()) == 1
    assert len(store.held("n1").jobs) == 1
    node.renew()


def test_without_a_record_nothing_is_allowed(store):
    for call in (lambda: store.held("nobody"), lambda: store.exchange("nobody", 1)):
        with pytest.raises(NodeRefused, match="nobody"):
            call()


# --- rescue -----------------------------------------------------------------------------------------
def test_the_jobs_of_a_dead_node_go_back(store):
    _, jobs = gone_with(store, 4)
    rescuer = steady(store)
    answer = store.rescue("rescuer")
    assert (answer.nodes, answer.jobs) == (("gone",), 4)
    assert tally(store) == {"queued": 4}
    again = rescuer.claim()
    assert [job.id for job in again] == [job.id for job in jobs]
    assert [job.token for job in again] == [3, 3, 3, 3]  # claimed, rescued, claimed
    assert record(store, "gone") is None


def test_only_what_had_begun_is_charged(store):
    _, jobs = gone_with(store, 2)
    steady(store)
    store.rescue("rescuer")
    begun, waiting = the(store, jobs[0]), the(store, jobs[1])
    assert (begun.lost, begun.attempt, waiting.lost, waiting.attempt) == (1, 1, 0, 0)
    assert (begun.node, begun.started_at, begun.rank) == (None, None, jobs[0].rank)


def test_a_rescue_is_written_into_the_history(store):
    _, jobs = gone_with(store, 2)
    began = store.clock.now()
    steady(store)
    store.rescue("rescuer")
    (line,) = the(store, jobs[0]).attempts
    assert (line.node, line.ended, line.ended_at, line.started_at) == (
        "gone",
        "lost",
        store.clock.now(),
        began,
    )
    (line,) = the(store, jobs[1]).attempts
    assert (line.ended, line.started_at) == ("lost", None)


def test_a_job_that_is_lost_too_often_ends_dead(store):
    _, jobs = gone_with(store, 2, options=JobOptions(max_lost=1))
    steady(store)
    store.rescue("rescuer")
    found = the(store, jobs[0])
    assert (found.state, found.reason, found.finished_at) == ("dead", "lost", store.clock.now())
    assert state(store, jobs[1]) == "queued"


def test_a_job_somebody_cancelled_is_not_brought_back(store):
    _, jobs = gone_with(store, 2)
    store.cancel(Filter(ids=(jobs[0].id,)))
    steady(store)
    store.rescue("rescuer")
    assert [(the(store, job).state, the(store, job).reason) for job in jobs] == [
        ("cancelled", "cancelled"),
        ("queued", None),
    ]


def test_a_live_node_is_left_alone(store):
    gone, jobs = gone_with(store, 2)
    rescuer = Node(store, "rescuer", "there")
    for _ in range(5):
        travel(store, 6)
        rescuer.renew()
        gone.renew()
    assert store.rescue("rescuer").nodes == ()
    gone.settle(*jobs)


def test_a_lease_is_live_to_its_last_microsecond(store):
    gone_with(store, 1)
    travel(store, LEASE)
    rescuer = Node(store, "rescuer", "there")
    keep_renewing(rescuer, LEASE - 1)
    travel(store, 0.999999)
    rescuer.renew()
    assert store.rescue("rescuer").nodes == ()  # not steady for a full lease yet
    travel(store, 0.000001)
    assert store.rescue("rescuer").nodes == ("gone",)


def test_who_is_not_steady_rescues_nobody(store):
    gone_with(store, 1)
    travel(store, 100)
    Node(store, "rescuer", "there")
    assert store.rescue("rescuer").nodes == ()


def test_a_gap_in_renewing_starts_the_wait_anew(store):
    gone_with(store, 1)
    rescuer = steady(store)
    travel(store, LEASE)  # its own lease runs out: perhaps it was the network, and the other lives
    rescuer.renew()
    assert store.rescue("rescuer").nodes == ()
    keep_renewing(rescuer, LEASE - 1)
    assert store.rescue("rescuer").nodes == ()
    travel(store, 1)
    assert store.rescue("rescuer").nodes == ("gone",)


def test_a_node_that_missed_half_a_lease_may_not_rescue_at_once(store):
    """The store was away for less than a lease: the first to come back must not take others for dead."""
    gone_with(store, 1)
    rescuer = steady(store)
    travel(store, LEASE * 0.6)
    rescuer.renew()
    assert store.rescue("rescuer").nodes == ()
    keep_renewing(rescuer, LEASE)
    assert store.rescue("rescuer").nodes == ("gone",)


def test_whose_own_lease_has_run_out_rescues_nobody(store):
    gone_with(store, 1)
    steady(store)
    travel(store, LEASE)
    assert store.rescue("rescuer", gone=["gone"]).nodes == ()
    assert store.rescue("nobody", gone=["gone"]).nodes == ()


def test_a_node_does_not_rescue_itself(store, node):
    put(store, new_job())
    node.claim_one()
    assert store.rescue("n1", gone=["n1"]).nodes == ()
    assert tally(store) == {"running": 1}


def test_a_node_known_to_be_gone_on_this_host_is_rescued_at_once(store):
    gone_with(store, 2)
    Node(store, "rescuer", "here")
    answer = store.rescue("rescuer", gone=["gone", "nobody"])
    assert (answer.nodes, answer.jobs) == (("gone",), 2)


def test_of_another_host_nobody_can_know_that_it_is_gone(store):
    gone_with(store, 2)
    Node(store, "rescuer", "there")
    assert store.rescue("rescuer", gone=["gone"]).nodes == ()


def test_a_rescued_node_is_refused_for_ever(store):
    gone, jobs = gone_with(store, 2)
    steady(store)
    store.rescue("rescuer")
    travel(store, 3600)
    for call in (
        gone.renew,
        gone.exchange,
        lambda: gone.settle(jobs[0]),
        gone.claim,
        lambda: store.held("gone"),
    ):
        with pytest.raises(NodeRefused):
            call()
    assert tally(store) == {"queued": 2}


def test_rescuing_twice_finds_nothing_the_second_time(store):
    gone_with(store, 3)
    steady(store)
    store.rescue("rescuer")
    assert store.rescue("rescuer").nodes == ()
    assert happened(store)["retried"] == 3


def test_many_jobs_go_back_in_batches(store):
    gone_with(store, 1200, fresh=True)
    steady(store)
    assert store.rescue("rescuer").jobs == 1200
    assert tally(store) == {"queued": 1200}


def test_several_dead_nodes_at_once(store):
    put_many(store, 4)
    for name in ("a", "b"):
        Node(store, name).claim(2)
    steady(store)
    answer = store.rescue("rescuer")
    assert (sorted(answer.nodes), answer.jobs) == (["a", "b"], 4)


class Killed(BaseException):
    """The rescuer dies here."""


def test_a_rescue_that_was_stopped_half_way_is_finished_by_another(store, monkeypatch):
    gone, jobs = gone_with(store, 1200, fresh=True)
    steady(store, "rescuer", "there")
    steps = 0
    original = store.write if hasattr(store, "write") else None
    if original is None:
        pytest.skip("steps of this store are stopped elsewhere")

    def write(make):
        nonlocal steps
        steps += 1
        if steps == 3:  # sealed, and one batch is back
            raise Killed
        return original(make)

    monkeypatch.setattr(store, "write", write)
    with pytest.raises(Killed):
        store.rescue("rescuer")
    monkeypatch.undo()
    assert tally(store) == {"queued": 500, "running": 700}
    assert record(store, "gone").sealed
    with pytest.raises(NodeRefused):
        gone.settle(jobs[-1])
    Node(store, "second", "elsewhere")  # neither steady nor on the same host: a sealed node is anybody's
    answer = store.rescue("second")
    assert (answer.nodes, answer.jobs) == (("gone",), 700)
    assert tally(store) == {"queued": 1200}
    assert all(job.token == 2 for job in store.get([job.id for job in jobs]))


# --- giving up and asking -------------------------------------------------------------------------------
def test_a_node_that_gives_up_its_lease_gives_back_its_jobs(store, node):
    put_many(store, 3)
    jobs = node.claim(2)
    node.start(jobs[0])
    store.renew("n1", "here", lease=0)
    assert tally(store) == {"queued": 3}
    assert record(store, "n1") is None
    with pytest.raises(NodeRefused):
        node.renew()


def test_giving_up_what_one_never_had_is_no_trouble(store):
    store.renew("nobody", "here", lease=0)
    assert store.counts().nodes == ()


def test_held_tells_what_came_of_an_exchange_that_was_not_heard(store, node):
    put_many(store, 3)
    done, kept = node.claim(2)
    answer = node.exchange(settlements=[node.verdict(done)], claims=[Claim("default", 5)])
    held = store.held("n1")  # as if the answer above had never arrived
    assert held.sequence == node.sequence
    assert {job.id for job in held.jobs} == {kept.id, *(job.id for job in answer.claimed)}
    assert {(job.token, job.queue, job.task) for job in held.jobs} == {(1, "default", "work")}
    whole = store.get([job.id for job in held.jobs])
    assert all(job.state is JobState.RUNNING and job.payload == b"{}" for job in whole)


def test_held_before_an_exchange_arrived_says_so(store, node):
    put(store, new_job())
    job = node.claim_one()
    held = store.held("n1")
    assert (held.sequence, [found.id for found in held.jobs]) == (1, [job.id])
    node.settle(job, outcome=Released())
    assert store.held("n1").jobs == ()


def test_what_is_held_knows_whether_it_has_begun(store, node):
    put_many(store, 2)
    jobs = node.claim()
    node.start(jobs[1])
    begun = {job.id: job.started_at for job in store.get([held.id for held in store.held("n1").jobs])}
    assert begun == {jobs[0].id: None, jobs[1].id: store.clock.now()}
