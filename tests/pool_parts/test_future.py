"""The pool's future, step by step: lazy until watched, a standard future to everybody who watches."""

import asyncio
import concurrent.futures
import logging
import sys
import threading
from collections import deque
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    CancelledError,
    as_completed,
    wait,
)
from concurrent.futures import _base as standard
from typing import Any

import pytest

from millpond.pool.future import LAZY, PoolFuture
from millpond.pool.notices import Notices
from millpond.pool.options import PoolOptions
from tests.pool.tasks import eventually


class Owner:
    """Cancels as the engines do: pending only, under its own lock."""

    options = PoolOptions(1, 1)

    def __init__(self, drive=lambda future: None):
        self.lock = threading.Lock()
        self.drive_one = drive
        self.driven = 0

    def cancel(self, future):
        with self.lock:
            if future._state is not standard.PENDING:
                return False
            future.mark_cancelled()
            return True

    def drive(self, future, limit):
        self.driven += 1
        self.drive_one(future)

    def begin(self, future):
        """Take the task out of the line, as an engine does before it sends it: False if cancelled."""
        with self.lock:
            if future._state is standard.PENDING:
                future._state = standard.RUNNING
                return True
        future.set_running_or_notify_cancel()
        return False


def owned(owner) -> Any:
    future = pending()
    future._owner = owner
    return future


def pending() -> Any:
    return PoolFuture()


def settled(value=None, error=None):
    future = pending()
    future.settle(value, error, None)
    return future


def lazy_parts(future):
    return LAZY.keys() & vars(future).keys()


# --- laziness ---------------------------------------------------------------------------------------
def test_a_future_nobody_watches_never_builds_a_condition():
    future = pending()
    assert not vars(future)
    assert not future.done()
    future.settle(5, None, None)
    assert future.done()
    assert future.result() == 5
    assert future.exception() is None
    assert not lazy_parts(future)
    assert not future._watched


def test_a_failed_future_nobody_watches_never_builds_a_condition():
    future = settled(error=ValueError("bad"))
    assert isinstance(future.exception(), ValueError)
    with pytest.raises(ValueError, match="bad"):
        future.result()
    assert not lazy_parts(future)


def test_a_caller_that_reads_its_own_answer_builds_no_condition():
    owner = Owner(drive=lambda future: future.settle(7, None, None))
    future = owned(owner)
    assert future.result() == 7
    assert owner.driven == 1
    assert not lazy_parts(future)


@pytest.mark.parametrize(
    "watch",
    [
        lambda future: future.add_done_callback(print),
        lambda future: wait([future], timeout=0),
        lambda future: future.running(),
        repr,
    ],
)
def test_a_future_that_is_watched_has_one_condition_for_good(watch):
    future = pending()
    watch(future)
    condition = future._condition
    future.settle(1, None, deque())
    watch(future)
    assert future._condition is condition


def test_the_body_is_let_go_when_the_future_is_settled():
    future = pending()
    future.body = b"large"
    future.settle(1, None, None)
    assert future.body is None


def test_it_is_a_standard_future():
    assert isinstance(settled(), concurrent.futures.Future)


# --- results --------------------------------------------------------------------------------------
def test_waiting_ends_with_the_timeout():
    future = pending()
    for timeout in (0, 0.01):
        with pytest.raises(concurrent.futures.TimeoutError):
            future.result(timeout)
        with pytest.raises(concurrent.futures.TimeoutError):
            future.exception(timeout)


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt()])
def test_the_exception_itself_is_raised_every_time(error):
    future = settled(error=error)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            future.result()
        assert caught.value is error


def test_a_false_result_is_a_result():
    values: list = [None, 0, "", []]
    for value in values:
        assert settled(value).result() is value


def test_a_raised_error_does_not_keep_its_future_alive():
    future = settled(error=ValueError("bad"))
    try:
        future.result()
    except ValueError as error:
        frames = []
        step = error.__traceback__
        while step is not None:
            frames.append(step.tb_frame)
            step = step.tb_next
    assert not any(frame.f_locals.get("self") is future for frame in frames)


def test_the_standard_setters_work_too():
    future = pending()
    assert future.set_running_or_notify_cancel()
    assert future.running()
    future.set_result(4)
    assert future.result() == 4
    with pytest.raises(concurrent.futures.InvalidStateError):
        future.set_result(5)
    other = pending()
    other.set_exception(KeyError("x"))
    assert isinstance(other.exception(), KeyError)


# --- callbacks ------------------------------------------------------------------------------------
def test_callbacks_run_once_in_order_and_those_added_late_at_once():
    calls: list = []
    future = pending()
    future.add_done_callback(lambda f: calls.append(("first", f)))
    future.add_done_callback(lambda f: calls.append(("second", f)))
    future.settle(1, None, None)
    future.add_done_callback(lambda f: calls.append(("late", f)))
    assert calls == [("first", future), ("second", future), ("late", future)]


def test_callbacks_can_be_left_for_later():
    calls: list = []
    later: deque = deque()
    future = pending()
    future.add_done_callback(calls.append)
    future.settle(1, None, later)
    assert (calls, list(later)) == ([], [future])
    later.popleft().run_callbacks()
    assert calls == [future]


def test_a_future_without_callbacks_is_never_left_for_later():
    later: deque = deque()
    watched = pending()
    wait([watched], timeout=0)
    for future in (watched, pending()):
        future.settle(1, None, later)
    assert not later


def test_a_callback_that_raises_is_logged_and_stops_no_other(caplog):
    calls: list = []
    future = pending()
    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(calls.append)
    with caplog.at_level(logging.CRITICAL, logger="concurrent.futures"):
        future.settle(1, None, None)
    assert calls == [future]


# --- cancelling -------------------------------------------------------------------------------------
def test_a_pending_future_is_cancelled_and_says_so_to_all():
    calls: list = []
    future = owned(Owner())
    future.add_done_callback(calls.append)
    assert future.cancel()
    assert future.cancelled()
    assert future.done()
    assert calls == [future]
    for ask in (future.result, future.exception):
        with pytest.raises(CancelledError):
            ask()


def test_an_unwatched_future_is_cancelled_without_a_condition():
    future = owned(Owner())
    assert future.cancel()
    assert future.done()
    assert not lazy_parts(future)


def test_cancelling_twice_is_yes_twice_and_calls_back_once():
    calls: list = []
    future = owned(Owner())
    future.add_done_callback(calls.append)
    assert [future.cancel() for _ in range(3)] == [True] * 3
    assert calls == [future]


@pytest.mark.parametrize("state", ["running", "finished"])
def test_what_has_begun_cannot_be_cancelled(state):
    owner = Owner()
    future = owned(owner)
    assert owner.begin(future)
    if state == "finished":
        future.settle(1, None, None)
    assert not future.cancel()
    assert not future.cancelled()


def test_a_cancelled_future_is_not_begun_and_its_waiters_hear_of_it():
    owner = Owner()
    future = owned(owner)
    future.cancel()
    assert not owner.begin(future)
    assert wait([future], timeout=0).done == {future}
    assert list(as_completed([future], timeout=0)) == [future]


def test_a_future_without_an_owner_cancels_as_the_standard_one_does():
    future = pending()
    calls: list = []
    future.add_done_callback(calls.append)
    assert future.cancel()
    assert future.cancelled()
    assert calls == [future]
    assert not settled().cancel()


def test_an_abandoned_future_is_cancelled_with_callbacks_left_for_later():
    later: deque = deque()
    calls: list = []
    owner = Owner()
    plain, watched = owned(owner), owned(owner)
    watched.add_done_callback(calls.append)
    for future in (plain, watched):
        owner.begin(future)
        future.abandon(later)
        assert future.cancelled()
        with pytest.raises(CancelledError):
            future.result()
    assert list(later) == [watched]
    assert not calls


# --- watchers of several futures ------------------------------------------------------------------------
def wait_elsewhere(futures, mode):
    """wait() in a thread of its own, which may be stuck for good; the event says that it returned."""
    finished = threading.Event()

    def watch():
        wait(futures, return_when=mode)
        finished.set()

    threading.Thread(target=watch, daemon=True).start()
    return finished


@pytest.mark.parametrize(
    ("mode", "done"), [(ALL_COMPLETED, {0, 1, 2}), (FIRST_COMPLETED, {0, 1}), (FIRST_EXCEPTION, {0, 1})]
)
def test_wait_takes_them_for_standard_futures(mode, done):
    third = pending()
    first, second = settled(1), settled(error=ValueError())
    if mode == ALL_COMPLETED:
        third.settle(3, None, None)
    found = wait([first, second, third], timeout=5, return_when=mode)
    assert found.done == {[first, second, third][index] for index in done}


def test_a_mixture_with_standard_futures_is_waited_for():
    other: concurrent.futures.Future = concurrent.futures.Future()
    mine = pending()
    threads = [
        threading.Thread(target=mine.settle, args=(1, None, None)),
        threading.Thread(target=other.set_result, args=(2,)),
    ]
    for thread in threads:
        thread.start()
    assert {future.result() for future in as_completed([mine, other], timeout=10)} == {1, 2}
    for thread in threads:
        thread.join()


def test_a_watcher_of_several_hears_of_an_error():
    first, second = pending(), pending()
    finished = wait_elsewhere([first, second], FIRST_EXCEPTION)
    while not first._watched or not second._watched:
        assert not finished.is_set()
    first.settle(None, ValueError("bad"), None)
    assert finished.wait(5)


async def test_asyncio_can_await_one_that_settles_in_another_thread():
    good, bad = pending(), pending()
    wrapped = [asyncio.wrap_future(future) for future in (good, bad)]
    threads = [
        threading.Thread(target=good.settle, args=(3, None, None)),
        threading.Thread(target=bad.settle, args=(None, ValueError("bad"), None)),
    ]
    for thread in threads:
        thread.start()
    assert await asyncio.wait_for(wrapped[0], 10) == 3
    with pytest.raises(ValueError, match="bad"):
        await asyncio.wait_for(wrapped[1], 10)
    for thread in threads:
        thread.join()


async def test_cancelling_the_asyncio_future_cancels_the_task():
    future = owned(Owner())
    wrapped = asyncio.wrap_future(future)
    wrapped.cancel()
    await asyncio.sleep(0)
    assert future.cancelled()


# --- the order of a race, forced ---------------------------------------------------------------------
def settle_meanwhile(future, monkeypatch, name):
    """Have `future` settled, in another thread, right before the standard library calls its own `name`."""
    original = getattr(standard, name)
    threads: list[threading.Thread] = []

    def late(*args, **kwargs):
        if not threads:
            threads.append(threading.Thread(target=future.settle, args=(1, None, None), daemon=True))
            threads[0].start()
            threads[0].join(0.1)  # as far as it gets: it may have to wait for the condition we hold
        return original(*args, **kwargs)

    monkeypatch.setattr(standard, name, late)
    return threads


@pytest.mark.parametrize("mode", [ALL_COMPLETED, FIRST_COMPLETED])
def test_wait_is_not_stuck_when_the_result_comes_while_it_looks(monkeypatch, mode):
    future = pending()
    threads = settle_meanwhile(future, monkeypatch, "_create_and_install_waiters")
    finished = wait_elsewhere([future], mode)
    assert finished.wait(2), "wait() did not notice the result"
    threads[0].join(5)


def test_wait_for_all_does_not_return_with_one_missing(monkeypatch):
    future, other = pending(), pending()
    settle_meanwhile(future, monkeypatch, "_create_and_install_waiters")
    finished = wait_elsewhere([future, other], ALL_COMPLETED)
    assert not finished.wait(0.4), "wait() returned while one was missing"
    other.settle(2, None, None)
    assert finished.wait(2)


def test_as_completed_yields_each_once_when_a_result_comes_while_it_looks(monkeypatch):
    future, other = pending(), pending()
    settle_meanwhile(future, monkeypatch, "_create_and_install_waiters")
    found = []
    for done in as_completed([future, other], timeout=5):
        found.append(done)
        if done is future:
            other.settle(2, None, None)
    assert found == [future, other]


@pytest.mark.parametrize("stop", range(1, 9))
def test_a_debugger_between_two_lines_of_the_setter_loses_no_wake_up(stop):
    future = pending()
    finished = None
    lines = 0

    def trace(frame, event, _):
        nonlocal finished, lines
        if frame.f_code is not PoolFuture.settle.__code__:
            return None
        lines += event == "line"
        if event == "line" and lines == stop:
            finished = wait_elsewhere([future], ALL_COMPLETED)
            event_or_waiter = lambda: finished.is_set() or vars(future).get("_waiters")
            eventually(event_or_waiter)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        future.settle(1, None, None)
    finally:
        sys.settrace(before)
    assert finished is None or finished.wait(5), "wait() did not notice the result"


def test_a_waiter_that_is_told_of_many_at_once_has_each_of_them():
    notices = Notices()
    notices.collect_here()
    futures = [pending() for _ in range(10)]
    finished = wait_elsewhere(futures, ALL_COMPLETED)
    eventually(lambda: all(vars(future).get("_waiters") for future in futures))
    for future in futures:
        future.settle(1, None, notices)
    assert not finished.wait(0.05)
    notices.tell()
    assert finished.wait(5)


def test_what_another_thread_finishes_is_told_at_once():
    notices = Notices()
    future = pending()
    finished = wait_elsewhere([future], ALL_COMPLETED)
    eventually(lambda: vars(future).get("_waiters"))
    future.settle(1, None, notices)
    assert finished.wait(5)
