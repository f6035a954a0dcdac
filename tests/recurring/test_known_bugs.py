"""What has gone wrong in other schedulers, one test for each cause."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec
import pytest

from millpond.errors import StoreUnavailable
from millpond.job import MICROSECONDS
from millpond.node.lease.identity import Identity
from millpond.orchestrator.ledger import Ledger
from millpond.orchestrator.skip_log import Skipped
from millpond.store.open import open_store
from tests.node.waiting import until
from tests.recurring.planners import align, app_on, candidate, ids, jobs, plan, planner_of

MINUTE = 60 * MICROSECONDS


# --- double fires ----------------------------------------------------------------------------------------
def test_two_planners_that_both_believe_make_one_job_for_an_instant(store):
    """Two leaders, whatever made them so: the same rows, the same ids."""
    start = align(store)
    first, second = (planner_of(app_on(store)) for _ in range(2))
    for _ in range(3):
        plan(store, first, second, after=60)
    assert jobs(store) == ids(start + MINUTE)  # one waits in line; the others found it there
    lines = [Skipped(start + number * MINUTE, "overlap") for number in (2, 3)]
    assert explained(store) >= {line.at for line in lines}


def explained(store: Any) -> set[int]:
    return {msgspec.json.decode(line.data, type=Skipped).at for line in store.log("recurring/a", limit=1000)}


def test_two_planners_give_one_reason_for_an_instant_that_did_not_run(store):
    start = align(store)
    planners = [planner_of(app_on(store)) for _ in range(2)]
    for _ in range(4):
        plan(store, *planners, after=60)
        plan(store, *planners, after=1)
    said = [msgspec.json.decode(line.data, type=Skipped) for line in store.log("recurring/a", limit=100)]
    assert said == [Skipped(start + number * MINUTE, "overlap") for number in (2, 3, 4)]


def test_who_loses_the_lead_says_first_why_ticks_did_not_run(memory):
    """What a switch stops is written once in a while: the rest was lost with the lead."""
    start = align(memory)
    planner = planner_of(app_on(memory, enabled=False))
    for _ in range(4):
        plan(memory, planner, after=10)
        plan(memory, planner, after=50)
    planner.rest()
    said = [msgspec.json.decode(line.data, type=Skipped) for line in memory.log("recurring/a", limit=100)]
    assert sum(line.count for line in said) == 4
    assert said[-1].at == start + 4 * MINUTE
    planner.close()
    assert len(memory.log("recurring/a", limit=100)) == len(said)


def test_a_failed_election_ends_the_belief(memory):
    """A leader that kept leading after an election it could not hold: 19 days of doubles."""
    leader = candidate(memory, "one")
    assert leader.attend()
    leader._look_at = 0.0
    real, memory.record = memory.record, failing
    assert not leader.attend()
    assert not leader.is_leader
    memory.record = real


def failing(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("away")


def test_an_exception_while_standing_for_election_does_not_elect(memory):
    memory.record = failing
    assert not candidate(memory, "one").attend()


def test_two_nodes_of_one_host_are_two_candidates(memory):
    """Leaders that were told apart by the name of their host."""
    one, other = Identity(), Identity()
    assert one.host == other.host
    assert candidate(memory, one.id).attend()
    assert not candidate(memory, other.id).attend()


def test_who_was_replaced_cannot_renew(memory):
    """A renewal that did not ask whose the lease is."""
    late, next_one = candidate(memory, "late", lease=0.05), candidate(memory, "next", lease=0.05)
    assert late.attend()
    until(next_one.attend)
    late._renewed_at = late._look_at = 1e18 - 1e18  # it has slept
    assert not late.attend()
    assert next_one.seen.node == "next"
    assert next_one.term == 2


def test_a_document_that_was_changed_and_changed_back_is_not_the_one_that_was_read(memory):
    """A state that was compared by its value, and had been another in between."""
    leader = candidate(memory, "one")
    assert leader.attend()
    mine = memory.record("leader")
    memory.record("leader", b"{}", mine.version)
    memory.record("leader", mine.value, mine.version + 1)
    leader._look_at = 0.0
    assert not leader.attend()


def test_a_lease_that_a_fail_over_has_lost_is_not_believed(tmp_path):
    """The lock was gone with the server that had it, and its holder went on beside the next one."""
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}")
    leader, other = candidate(store, "one"), candidate(store, "other")
    assert leader.attend()
    with apsw.Connection(str(tmp_path / "jobs.db")) as file:
        file.execute("DELETE FROM millpond_documents")
    assert other.attend()
    leader._look_at = 0.0
    assert not leader.attend()
    assert other.is_leader
    store.close()


def test_a_lease_that_ran_out_while_its_holder_slept_is_not_believed(memory):
    leader = candidate(memory, "one", lease=1.0)  # longer than the election takes on a busy machine
    assert leader.attend()
    until(lambda: not leader.is_leader)


def test_planning_an_instant_again_and_again_fires_once(store):
    """Thousands of launches because the same entry was looked at anew."""
    start = align(store)
    planner = planner_of(app_on(store))
    plan(store, planner, after=60)
    for _ in range(5):
        plan(store, planner, planner_of(app_on(store)))
    assert jobs(store) == ids(start + MINUTE)


def test_nothing_fires_a_little_early_and_again_on_time(memory):
    start = align(memory)
    planner = planner_of(app_on(memory))
    plan(memory, planner, after=58.999_999)
    assert jobs(memory) == []
    plan(memory, planner, after=0.000_001)
    plan(memory, planner, after=0.000_001)
    assert jobs(memory) == ids(start + MINUTE)


@pytest.mark.parametrize("step", [7200, -7200])
def test_a_stepped_clock_doubles_nothing(memory, step):
    """A clock that is believed, as a server's is: after a step each instant still has one tick."""
    start = align(memory)
    app = app_on(memory, overlap="allow")
    planner = planner_of(app)
    plan(memory, planner, after=60)
    plan(memory, planner_of(app), after=step)
    last = planner_of(app)
    plan(memory, last, after=-step)
    plan(memory, last, after=60)
    then = 122 * MINUTE if step > 0 else 2 * MINUTE  # what is passed does not come again
    assert jobs(memory) == ids(start + MINUTE, start + then - (MINUTE if step > 0 else 0))


# --- missed ----------------------------------------------------------------------------------------------
def test_what_was_due_between_two_leaders_is_planned_by_the_second(store):
    start = align(store)
    first = planner_of(app_on(store))
    plan(store, first, after=1)
    first.close()
    store.clock.shift += 60 * MICROSECONDS
    plan(store, planner_of(app_on(store)))
    assert jobs(store) == ids(start + MINUTE)


def test_an_interval_longer_than_every_uptime_fires_nevertheless(memory):
    """A schedule kept in memory begins anew with each process."""
    start = align(memory, 86_400)
    for _ in range(30):
        planner = planner_of(app_on(memory, every="1d"))
        plan(memory, planner, after=3600)
        planner.close()
    assert jobs(memory) == ids(start + 24 * 60 * MINUTE)


def test_a_tick_that_is_some_seconds_late_still_runs(memory):
    """A grace of one second."""
    start = align(memory)
    plan(memory, planner_of(app_on(memory)), after=89)
    assert jobs(memory) == ids(start + MINUTE)


def test_more_than_a_hundred_missed_instants_are_no_error(memory):
    start = align(memory)
    plan(memory, planner_of(app_on(memory)), after=300 * 60)
    assert jobs(memory) == ids(start + 300 * MINUTE)


def test_a_spread_is_the_same_after_every_start(memory):
    """A random delay drawn anew at each boot may never come to an end."""
    tasks = [app_on(memory, jitter=30).tasks["a"] for _ in range(2)]
    assert tasks[0].offset == tasks[1].offset > 0  # type: ignore[attr-defined]


def test_the_next_instant_is_counted_from_the_last_and_not_from_now(memory):
    start = align(memory)
    app = app_on(memory, overlap="allow")
    planner = planner_of(app)
    for late in (70, 55, 58, 61):
        plan(memory, planner, after=late)
    assert jobs(memory) == ids(*(start + number * MINUTE for number in (1, 2, 3, 4)))


# --- half-dead leaders -----------------------------------------------------------------------------------
def test_after_a_round_that_failed_nothing_in_memory_is_believed(memory):
    start = align(memory)
    planner = planner_of(app_on(memory))
    real, memory.plan = memory.plan, failing
    with pytest.raises(StoreUnavailable):
        plan(memory, planner, after=60)
    memory.plan = real
    assert not planner.is_ready
    planner.begin(0)
    plan(memory, planner)
    assert jobs(memory) == ids(start + MINUTE)


def test_a_ledger_that_another_has_written_is_taken_over(memory):
    """Two planners never undo each other's entries, and entries of other tasks stay."""
    one, other = Ledger(memory, "app"), Ledger(memory, "app")
    planner_of(app_on(memory)).close()
    one.load()
    other.load()
    one.get("a").error = "first"  # type: ignore[union-attr]
    other.get("a").error = "second"  # type: ignore[union-attr]
    for ledger in (one, other):
        ledger.change("a")
    (shard,) = one.dirty()
    assert one.flush(shard) == []
    assert other.flush(shard) == ["a"]
    assert other.get("a").error == "first"  # type: ignore[union-attr]


def test_a_leader_that_leaves_is_followed_at_once(memory):
    leader, other = candidate(memory, "one"), candidate(memory, "other")
    assert leader.attend()
    assert not other.attend()
    leader.give_up()
    other._look_at = 0.0
    assert other.attend()


def test_a_leader_that_no_store_knows_as_a_node_is_dead(memory):
    assert candidate(memory, "dead", lease=1.0).attend()
    heir = candidate(memory, "heir", lease=1.0, alive=lambda: {"heir"})
    assert not heir.attend()
    heir._seen_at -= 0.5
    heir._look_at = 0.0
    assert heir.attend()


def test_nonsense_in_the_leaders_document_is_put_right(memory):
    memory.record("leader", b"not JSON", 0)
    assert candidate(memory, "one").attend()
