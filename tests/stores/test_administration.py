"""What people do: cancel, replay, prune, discard."""

from __future__ import annotations

from msgspec.structs import replace

from millpond.job import Cancelled, Failure, JobOptions, JobState, Raised, Released, Returned
from millpond.store.protocol import Claim, Filter, Retention
from tests.stores.acting import (
    DAY,
    OK,
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


# --- cancel -----------------------------------------------------------------------------------------
def test_waiting_jobs_end_at_once(store, node):
    (queued,) = put(store, new_job())
    (later,) = put(store, new_job(delay=5.0))
    (child,) = put(store, new_job(depends_on=(later,)))
    assert store.cancel(Filter(ids=(queued, later))) == 2
    assert states(store, [queued, later, child]) == ["cancelled"] * 3
    found = the(store, queued)
    assert (found.reason, found.finished_at) == ("cancelled", store.clock.now())
    travel(store, 10)
    assert node.claim() == []
    assert happened(store)["cancelled"] == 3


def test_a_running_job_is_asked_to_end(store, node):
    put(store, new_job())
    job = node.claim_one()
    assert store.cancel(Filter(ids=(job.id,))) == 1
    assert (state(store, job), the(store, job).cancelling) == ("running", True)
    assert node.exchange().cancelling == (job.id,)
    assert node.exchange().cancelling == (job.id,)
    node.settle(job, outcome=Cancelled())
    assert (state(store, job), the(store, job).cancelling) == ("cancelled", False)
    assert node.exchange().cancelling == ()


def test_only_the_node_that_runs_it_is_told(store, node):
    from tests.stores.acting import Node

    put(store, new_job())
    job = node.claim_one()
    store.cancel(Filter(ids=(job.id,)))
    assert Node(store, "n2").exchange().cancelling == ()


def test_a_job_that_was_asked_to_end_is_not_run_again(store, node):
    for outcome in (Raised(Failure("E", "no")), Released()):
        put(store, new_job())
        job = node.claim_one()
        store.cancel(Filter(ids=(job.id,)))
        answer = node.exchange(settlements=[node.verdict(job, outcome)], claims=[Claim("default", 1)])
        assert answer.claimed == ()
        assert (state(store, job), the(store, job).reason) == ("cancelled", "cancelled")


def test_a_job_that_finishes_all_the_same_has_finished(store, node):
    put(store, new_job())
    job = node.claim_one()
    store.cancel(Filter(ids=(job.id,)))
    node.settle(job, outcome=Returned(b"7"))
    assert (state(store, job), the(store, job).result) == ("completed", b"7")


def test_cancelling_chooses_by_queue_task_and_state(store, node):
    a, b, c = put(store, new_job("x", queue="q"), new_job("y", queue="q"), new_job("x", delay=9.0))
    assert store.cancel(Filter(queue="q", task="x")) == 1
    assert states(store, [a, b, c]) == ["cancelled", "queued", "scheduled"]
    assert store.cancel(Filter(states=(JobState.SCHEDULED,))) == 1
    assert states(store, [a, b, c]) == ["cancelled", "queued", "cancelled"]
    assert store.cancel(Filter(states=(JobState.COMPLETED, JobState.DEAD))) == 0
    assert store.cancel(Filter(states=(JobState.RUNNING,))) == 0
    assert store.cancel(Filter(task="nobody")) == 0


def test_what_has_ended_cannot_be_cancelled(store, node):
    put(store, new_job())
    job = node.run()
    assert store.cancel(Filter(ids=(job.id,))) == 0
    assert state(store, job) == "completed"


def test_everything_can_be_cancelled_however_much_it_is(store, node):
    put_many(store, 2300, fresh=True)
    node.claim(10)
    assert store.cancel(Filter()) == 2300
    assert tally(store) == {"cancelled": 2290, "running": 10}
    assert len(node.exchange().cancelling) == 10


# --- replay -----------------------------------------------------------------------------------------
def test_a_dead_job_is_queued_again(store, node):
    job = dead_job(store, node, expires=60.0, priority=2)
    travel(store, 100)
    assert store.replay(Filter(ids=(job,))) == 1
    found = the(store, job)
    now = store.clock.now()
    assert (found.state, found.reason, found.finished_at, found.expires_at) == ("queued", None, None, None)
    assert (found.run_at, found.rank) == (now, now - 2 * 86_400_000_000)
    assert (found.errors, found.crashes, found.lost, found.alone, found.cancelling) == (0, 0, 0, False, False)
    assert (found.attempt, found.token) == (1, 1)
    assert node.claim_one().token == 2


def test_only_dead_jobs_are_replayed(store, node):
    put_many(store, 3)
    node.run(OK)
    node.run(Cancelled())
    assert store.replay(Filter()) == 0
    assert tally(store) == {"completed": 1, "cancelled": 1, "queued": 1}


def test_replaying_chooses(store, node):
    a, b, c = (
        dead_job(store, node, task=task, queue=queue) for task, queue in (("x", "q"), ("y", "q"), ("x", "r"))
    )
    assert store.replay(Filter(task="x", queue="q")) == 1
    assert states(store, [a, b, c]) == ["queued", "dead", "dead"]
    assert store.replay(Filter(states=(JobState.COMPLETED,))) == 0
    assert store.replay(Filter()) == 2


def test_a_thousand_dead_jobs_and_more_are_replayed(store, node):
    put_many(store, 1500, fresh=True)
    node.settle(*node.claim(1500), outcome=FINAL)
    assert store.replay(Filter()) == 1500
    assert len(node.claim(2000)) == 1500


def test_a_replayed_job_can_die_and_be_replayed_again(store, node):
    job = dead_job(store, node, options=JobOptions(max_attempts=1))
    for number in (2, 3):
        assert store.replay(Filter(ids=(job,))) == 1
        node.run(FINAL)
        assert (state(store, job), the(store, job).attempt) == ("dead", number)


# --- prune and discard ------------------------------------------------------------------------------
def ended_three_ways(store, node):
    ids = put_many(store, 3)
    for outcome in (OK, FINAL, Cancelled()):
        node.run(outcome)
    return ids


def test_each_end_is_kept_for_its_time(store, node):
    completed, dead, cancelled = ended_three_ways(store, node)
    retention = Retention(completed=10.0, dead=30.0, cancelled=20.0)
    travel(store, 9.999999)
    assert store.prune(retention) == 0
    travel(store, 0.000001)
    assert store.prune(retention) == 1
    assert store.get([completed]) == [None]
    travel(store, 10)
    assert store.prune(retention) == 1
    travel(store, 10)
    assert store.prune(retention) == 1
    assert store.get([completed, dead, cancelled]) == [None, None, None]
    assert tally(store) == {}


def test_what_has_not_ended_is_never_pruned(store, node):
    put(store, new_job(), new_job(), new_job(delay=400 * DAY))
    node.claim_one()
    travel(store, 300 * DAY)
    assert store.prune(Retention(completed=0.0, dead=0.0, cancelled=0.0)) == 0
    assert tally(store) == {"queued": 1, "running": 1, "scheduled": 1}


def test_a_pruned_id_may_be_used_again(store, node):
    job = new_job()
    put(store, job)
    node.run()
    store.prune(Retention(completed=0.0))
    put(store, job)


def test_old_statistics_are_pruned(store, node):
    put(store, new_job())
    travel(store, 3 * DAY)
    put(store, new_job())
    store.prune(Retention(statistics=2 * DAY))
    assert happened(store) == {"enqueued": 1}


def test_many_are_pruned(store, node):
    put_many(store, 2500, fresh=True)
    node.settle(*node.claim(2500))
    assert store.prune(Retention(completed=0.0)) == 2500
    assert tally(store) == {}


def test_discarding_deletes_ended_jobs_by_choice(store, node):
    completed, dead, cancelled = ended_three_ways(store, node)
    (waiting,) = put(store, new_job())
    assert store.prune(Retention(), Filter(states=(JobState.DEAD,))) == 1
    assert store.get([dead]) == [None]
    assert store.prune(Retention(), Filter(ids=(waiting, completed))) == 1
    assert store.prune(Retention(), Filter(queue="other")) == 0
    assert store.prune(Retention(), Filter()) == 1
    assert store.get([completed, dead, cancelled]) == [None, None, None]
    assert state(store, waiting) == "queued"


def test_any_number_of_damaged_jobs_hides_nobody_from_a_replay(store, node):
    old = dead_job(store, node)
    put_many(store, 1000, fresh=True)
    jobs = node.claim(1000)
    verdicts = [node.verdict(job, FINAL) for job in jobs]
    ends = [replace(said, transition=replace(said.transition, reason="damaged")) for said in verdicts]
    node.exchange(settlements=ends)
    new = dead_job(store, node)
    assert store.replay(Filter()) == 2
    assert [job.id for job in node.claim()] == [old, new]
