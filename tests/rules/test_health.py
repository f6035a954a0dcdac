"""Alive, ready, and what is worth a warning."""

from __future__ import annotations

import pytest

from millpond.rules.node.health import MOST_UNSETTLED, Change, Watch, concerns, is_live, is_ready, observe
from tests.node_health.reports import node, pool

DEGRADED = pool(name="images", status="degraded", reasons=("no worker can start",))


# --- alive -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["starting", "running", "held", "draining"])
def test_a_node_at_work_is_live_in_every_state(state):
    assert is_live(node(state=state)).ok


def test_a_stopped_node_is_not_live():
    assert is_live(node(state="stopped")) == (False, "stopped", "the node has stopped")


def test_a_store_that_is_away_for_ten_minutes_does_not_cost_the_node_its_life():
    assert is_live(node(round_age=600.0, store_trouble="connection refused")).ok


def test_a_node_that_stands_still_while_the_store_answers_is_not_live():
    assert is_live(node(round_age=61.0)).reason == "stuck"
    assert is_live(node(round_age=60.0)).ok
    assert is_live(node(round_age=11.0), stuck_after=10.0).reason == "stuck"


@pytest.mark.parametrize("state", ["held", "draining"])
def test_a_node_that_claims_nothing_on_purpose_is_not_taken_for_stuck(state):
    assert is_live(node(state=state, round_age=600.0)).ok


BUSY = pool(claimed=2)  # as many as can run at once: it asks for no more


def test_a_node_whose_workers_are_busy_with_long_jobs_is_live_and_ready_though_it_asks_for_nothing():
    assert is_live(node(BUSY, round_age=3600.0)).ok
    assert is_ready(node(BUSY, round_age=3600.0)).ok


def test_a_busy_node_that_cannot_settle_what_ended_is_stuck():
    assert is_live(node(BUSY, round_age=61.0, unsettled=1)).reason == "stuck"
    assert is_ready(node(BUSY, round_age=16.0, unsettled=1)).reason == "deaf"


def test_one_pool_with_room_is_enough_to_expect_rounds():
    assert is_ready(node(BUSY, pool(name="images", claimed=1), round_age=16.0)).reason == "deaf"
    assert is_ready(node(BUSY, DEGRADED, round_age=16.0)).ok


# --- ready -----------------------------------------------------------------------------------------------
def test_a_node_that_completes_rounds_is_ready():
    assert is_ready(node()) == (True, "ok", "")


@pytest.mark.parametrize("state", ["starting", "held", "draining", "stopped"])
def test_a_node_that_claims_nothing_says_why_it_is_not_ready(state):
    assert is_ready(node(state=state, round_age=600.0)).reason == state


def test_a_node_that_is_alive_but_deaf_is_not_ready():
    assert is_ready(node(round_age=15.1)).reason == "deaf"
    assert is_ready(node(round_age=15.0)).ok
    assert is_ready(node(round_age=3.0), deaf_after=2.0).reason == "deaf"


def test_a_store_that_is_away_makes_a_node_unready_only_after_a_while():
    assert is_ready(node(round_age=5.0, store_trouble="connection refused")).ok
    verdict = is_ready(node(round_age=20.0, store_trouble="connection refused"))
    assert verdict.reason == "store"
    assert "connection refused" in verdict.sentence


def test_a_node_without_a_lease_is_not_ready():
    assert is_ready(node(lease_left=0.0)).reason == "lease"


def test_a_node_with_too_much_unsettled_is_not_ready():
    assert is_ready(node(unsettled_bytes=MOST_UNSETTLED)).reason == "full"
    assert is_ready(node(unsettled_bytes=MOST_UNSETTLED - 1)).ok


def test_one_degraded_pool_leaves_the_node_ready_for_the_others():
    assert is_ready(node(pool(), DEGRADED)).ok


def test_a_node_none_of_whose_pools_can_work_is_not_ready():
    verdict = is_ready(node(DEGRADED, pool(status="failed")))
    assert verdict.reason == "pools"
    assert "images is degraded, no worker can start" in verdict.sentence


# --- concerns --------------------------------------------------------------------------------------------
def test_a_healthy_node_is_no_concern():
    assert concerns(node()) == ()


def test_each_pool_has_its_own_concerns():
    crowded = pool(waiting=11, oldest_wait=12.0)
    found = concerns(node(crowded, DEGRADED, store_trouble="gone"))
    assert [(concern.kind, concern.pool) for concern in found] == [
        ("store", ""),
        ("backing_up", "mail"),
        ("wait", "mail"),
        ("pool", "images"),
    ]


def test_a_line_is_long_when_it_is_five_times_what_can_run_at_once():
    assert concerns(node(pool(waiting=10))) == ()
    assert concerns(node(pool(waiting=1000, concurrency=100))) == ()
    (found,) = concerns(node(pool(waiting=1001, concurrency=100)))
    assert found.kind == "backing_up"
    assert found.sentence == "1,001 jobs are in line, 200 can run at once"


def test_a_wait_is_too_long_only_where_a_longest_wait_is_given():
    assert concerns(node(pool(oldest_wait=10.0))) == ()
    assert concerns(node(pool(oldest_wait=999.0, max_wait=None))) == ()
    assert [concern.kind for concern in concerns(node(pool(oldest_wait=10.1)))] == ["wait"]


# --- told once -------------------------------------------------------------------------------------------
CROWDED = node(pool(waiting=500))


def test_a_queue_that_is_limited_is_no_want_of_workers():
    limited = pool(waiting=1585, oldest_wait=60.0, rates={"images": 2.0})
    backing_up, wait = concerns(node(limited))
    assert backing_up.sentence == "1,585 jobs are in line, queue images is limited to 2 a second"
    assert wait.sentence.endswith("; queue images is limited to 2 a second")


LATE = node(pool(oldest_wait=60.0))
WELL = node()


def told(*looks: tuple[float, object]) -> list[tuple[float, str, bool, float]]:
    """What is told when a node looks like this at these times: (when, kind, began, lasted)."""
    watch: Watch = {}
    result: list[tuple[float, str, bool, float]] = []
    for now, report in looks:
        changes: list[Change]
        watch, changes = observe(watch, concerns(report), now)  # type: ignore[arg-type]
        result += [(now, change.concern.kind, change.began, change.lasted) for change in changes]
    return result


def test_a_concern_is_told_when_it_begins_and_when_it_is_over():
    looks = [(0, LATE), (1, LATE), (50, LATE), (51, WELL), (55, WELL), (61, WELL), (70, WELL)]
    assert told(*looks) == [(0, "wait", True, 0), (61, "wait", False, 61)]


def test_a_rush_that_is_worked_off_soon_is_not_told():
    assert told((0, CROWDED), (29, CROWDED), (30, WELL), (31, CROWDED), (60, CROWDED)) == []


def test_a_rush_that_lasts_is_told_once():
    assert told((0, CROWDED), (30, CROWDED), (90, CROWDED)) == [(30, "backing_up", True, 30)]


def test_a_concern_that_comes_and_goes_is_told_once():
    looks = [(second, LATE if second % 2 else WELL) for second in range(1, 40)]
    assert told(*looks) == [(1, "wait", True, 0)]


def test_a_store_that_comes_back_is_told_at_once():
    away = node(store_trouble="gone")
    assert told((0, away), (7, WELL)) == [(0, "store", True, 0), (7, "store", False, 7)]


def test_two_pools_do_not_hide_each_other():
    other = node(pool(oldest_wait=60.0), pool(name="images", oldest_wait=60.0))
    assert [when for when, *_ in told((0, LATE), (1, other))] == [0, 1]
