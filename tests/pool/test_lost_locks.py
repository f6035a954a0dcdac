"""Conditions of futures that an interrupted `wait()` has left locked, and places in a bounded queue."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from millpond import Pool
from millpond.pool.lost_locks import LONGEST, hold
from millpond.pool.queue_room import Room
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, answers, holder

MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(60)


def leave_locked(futures: object) -> None:
    """As Ctrl-C in the middle of the standard library's wait() does."""
    for future in futures:  # type: ignore[attr-defined]
        future._condition.acquire()


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_forty_futures_that_an_interrupt_has_left_locked_hold_up_nothing_else(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    assert 40 * LONGEST > PATIENCE
    pool = new_pool(1, kind=kind)
    first = pool.submit(holder(kind), gate.folder)
    gate.arrive()
    futures = [pool.submit(tasks.square, n) for n in range(40)]
    leave_locked([first, *futures])
    last = pool.submit(tasks.square, 9)
    gate.open()
    assert last.result(PATIENCE) == 81
    assert answers(futures) == [n * n for n in range(40)]


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_cancelled_future_that_an_interrupt_has_left_locked_stops_nothing(
    kind: str, new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(1, kind=kind)
    pool.submit(holder(kind), gate.folder)
    gate.arrive()
    unwanted = pool.submit(tasks.square, 3)
    leave_locked([unwanted])
    assert unwanted.cancel()
    last = pool.submit(tasks.square, 9)
    gate.open()
    assert last.result(PATIENCE) == 81


def test_a_shutdown_cancels_futures_that_an_interrupt_has_left_locked(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1)
    pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    futures = [pool.submit(tasks.square, n) for n in range(40)]
    leave_locked(futures)
    ended = threading.Thread(target=lambda: pool.shutdown(timeout=0), daemon=True)
    ended.start()
    ended.join(PATIENCE)
    assert not ended.is_alive()
    assert all(future.cancelled() for future in futures)


def test_a_million_tasks_can_be_cancelled_since_those_that_no_thread_watches_cost_no_lock(
    new_pool: MakePool, gate: Gate
) -> None:
    pool = new_pool(1)
    pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    futures = [pool.submit(tasks.square, n) for n in range(1000)]
    pool.shutdown(timeout=0)
    assert not any({"_condition", "_waiters"} & vars(future).keys() for future in futures)
    assert all(future.cancelled() for future in futures)


def test_a_condition_whose_holder_sleeps_elsewhere_is_given_up(new_pool: MakePool) -> None:
    pool = new_pool(1)
    future = pool.submit(tasks.square, 3)
    future.result(PATIENCE)
    inside, go_on = threading.Event(), threading.Event()

    condition = future._condition

    def watch() -> None:
        with condition:
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=watch)
    thread.start()
    inside.wait()
    assert not hold(condition)  # it sleeps, and no code that locks futures sleeps with the lock
    go_on.set()
    thread.join()
    assert hold(condition)
    condition.release()


# --- places in a bounded queue -----------------------------------------------------------------------------
def test_there_are_as_many_places_as_were_asked_for() -> None:
    room = Room(3)
    places = [room.take() for _ in range(3)]
    assert None not in places
    assert room.take() is None
    assert places[0] is not None
    room.give_back(places[0])
    assert room.take() is places[0]
    assert room.take() is None


def test_a_place_that_an_interrupt_drops_returns_by_itself() -> None:
    room = Room(1)
    room.take()
    room.take()
    place = room.take()
    assert place is not None
    assert room.take() is None


def test_a_thread_that_waits_for_a_place_is_woken_by_one_that_leaves() -> None:
    room = Room(1)
    place = room.take()
    assert place is not None
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.append(room.wait(10 * PATIENCE)))
    thread.start()
    tasks.eventually(lambda: len(room._bells) == 1)
    room.give_back(place)
    thread.join(PATIENCE)
    assert got == [place]
    assert not room._bells


def test_no_place_is_waited_for_longer_than_was_asked() -> None:
    room = Room(0)
    assert room.wait(0.01) is None
    assert not room._bells
