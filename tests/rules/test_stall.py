"""Standing or slow: what counts is the time that a worker could have used."""

from __future__ import annotations

import math

import pytest

from millpond.rules.pool.stall import (
    KILL,
    LATE,
    MOVE,
    READY,
    SLEEPING,
    STOPPED,
    WAITING,
    WEIGH,
    Sight,
    Stall,
    judge,
    lateness,
    patience,
    reason,
    weigh,
)


def after(state: str, seconds: float, share: float = 0.0, timeout: float | None = None) -> Stall:
    """A worker that was in that state for so long, and computed for that share of the time."""
    stall = Stall((), 0.0, 0.0, patience=patience([timeout]))
    for look in range(int(seconds / WEIGH) + 1):
        stall = weigh(stall, Sight(state, look * WEIGH * share), look * WEIGH)
    return stall


@pytest.mark.parametrize("state", [STOPPED, SLEEPING])
def test_a_worker_that_sleeps_or_is_stopped_loses_its_tasks_and_then_its_life(state: str) -> None:
    assert not judge(after(state, MOVE - WEIGH)).move
    assert judge(after(state, MOVE)) == (True, False)
    assert judge(after(state, KILL)) == (True, True)


def test_a_worker_that_is_ready_and_gets_no_processor_is_waited_for_however_long() -> None:
    assert judge(after(READY, 3600.0)) == (False, False)


def test_a_worker_that_gets_a_tenth_of_a_processor_has_ten_times_as_long() -> None:
    assert not judge(after(READY, 9 * KILL, share=0.1)).kill
    assert judge(after(READY, 11 * KILL, share=0.1)).kill


def test_a_worker_that_computes_without_end_is_killed_by_its_own_time() -> None:
    assert judge(after(READY, KILL, share=1.0)).kill
    assert after(READY, KILL, share=3.0).unused == pytest.approx(KILL)  # three threads of it


def test_a_worker_that_waits_for_the_disk_has_four_times_as_long() -> None:
    assert not judge(after(WAITING, 3.9 * KILL)).kill
    assert judge(after(WAITING, 4 * KILL)).kill


def test_a_look_that_comes_an_hour_late_counts_for_little() -> None:
    stall = weigh(Stall((), 0.0, 0.0), Sight(STOPPED, 0.0), 0.0)
    assert not judge(weigh(stall, Sight(STOPPED, 0.0), 3600.0)).move


def test_a_timeout_makes_the_pool_less_patient_but_never_hasty() -> None:
    assert patience([None, 3.0, 60.0]) == 3.0
    assert patience([0.01]) == MOVE
    assert patience([60.0]) == patience([]) == KILL
    assert patience([], most=300.0) == 300.0
    assert patience([], most=None) == math.inf


def test_the_reason_says_what_can_be_seen_from_outside() -> None:
    assert "stopped" in reason(Sight(STOPPED, 0.0))
    assert "computes" in reason(Sight(READY, 0.0))
    assert "waits" in reason(None)


def test_a_round_that_lasts_is_a_trouble_and_a_short_one_or_none_is_not() -> None:
    assert lateness(None, 1000.0, "") is None
    assert lateness(100.0, 100.0 + LATE / 2, "") is None
    assert lateness(100.0, 104.0, "f (a.py:3)") == (
        "the dispatcher has not come round for 4 s, in f (a.py:3): the pool waits for it"
    )
