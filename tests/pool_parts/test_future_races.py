"""The pool's future under real threads: however settling and watching interleave, each end is seen once."""

import asyncio
import queue
import sys
import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, as_completed, wait

import pytest

from millpond.pool.future import PoolFuture
from tests.pool_parts.test_future import Owner, owned

SECONDS = 0.25  # for each kind of watcher
PATIENCE = 10.0  # a watcher that has seen nothing by then never will


@pytest.fixture(autouse=True)
def many_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def setters():
    """Two threads that settle whatever futures they are handed."""
    todo: queue.SimpleQueue = queue.SimpleQueue()

    def work():
        while (futures := todo.get()) is not None:
            for future in futures:
                future.settle(id(future), None, None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()

    def settle(futures):
        todo.put(futures[::2])
        todo.put(futures[1::2])

    yield settle
    for _ in threads:
        todo.put(None)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def rounds():
    """Round after round until the time is up; at least one."""
    until = time.monotonic() + SECONDS
    yield
    while time.monotonic() < until:
        yield


def fresh(count=6):
    return [PoolFuture() for _ in range(count)]


def test_result_always_returns(setters):
    for _ in rounds():
        futures = fresh()
        setters(futures)
        assert [future.result(PATIENCE) for future in futures] == [id(future) for future in futures]


def test_exception_always_returns(setters):
    for _ in rounds():
        futures = fresh()
        setters(futures)
        assert [future.exception(PATIENCE) for future in futures] == [None] * len(futures)


def test_several_threads_may_wait_for_one_result(setters):
    for _ in rounds():
        (future,) = fresh(1)
        seen: list = []
        threads = [
            threading.Thread(target=lambda f=future, s=seen: s.append(f.result(PATIENCE))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        setters([future])
        for thread in threads:
            thread.join(PATIENCE)
        assert seen == [id(future)] * 3


def test_wait_for_all_returns_with_all(setters):
    for _ in rounds():
        futures = fresh()
        setters(futures)
        done, missing = wait(futures, timeout=PATIENCE)
        assert (done, missing) == (set(futures), set())
        assert all(future.done() for future in futures)


def test_wait_for_the_first_returns_with_one(setters):
    for _ in rounds():
        futures = fresh()
        setters(futures)
        begun = time.monotonic()
        assert wait(futures, timeout=PATIENCE, return_when=FIRST_COMPLETED).done
        assert time.monotonic() - begun < PATIENCE


def test_as_completed_yields_each_exactly_once(setters):
    for _ in rounds():
        futures = fresh()
        setters(futures)
        found = list(as_completed(futures, timeout=PATIENCE))
        assert len(found) == len(futures)
        assert set(found) == set(futures)


def test_a_callback_runs_exactly_once(setters):
    for _ in rounds():
        futures = fresh()
        calls: queue.SimpleQueue = queue.SimpleQueue()
        setters(futures)
        for future in futures:
            future.add_done_callback(calls.put)
        found = [calls.get(timeout=PATIENCE) for _ in futures]
        assert sorted(map(id, found)) == sorted(map(id, futures))
        assert calls.empty()


def test_callbacks_added_by_several_threads_each_run_once(setters):
    for _ in rounds():
        (future,) = fresh(1)
        calls: queue.SimpleQueue = queue.SimpleQueue()

        def add(name, future=future, calls=calls):
            for number in range(3):
                future.add_done_callback(lambda _, what=(name, number): calls.put(what))

        threads = [threading.Thread(target=add, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        setters([future])
        found = [calls.get(timeout=PATIENCE) for _ in range(6)]
        for thread in threads:
            thread.join(PATIENCE)
        assert sorted(found) == [(name, number) for name in "ab" for number in range(3)]
        assert calls.empty()


def test_callbacks_left_for_later_are_left_once(setters):
    for _ in rounds():
        later: deque = deque()
        (future,) = fresh(1)
        calls: list = []
        setter = threading.Thread(target=future.settle, args=(1, None, later))
        setter.start()
        future.add_done_callback(calls.append)
        setter.join(PATIENCE)
        while later:
            later.popleft().run_callbacks()
        assert calls == [future]


def test_asyncio_sees_every_result(setters):
    async def gather():
        futures = fresh()
        wrapped = [asyncio.wrap_future(future) for future in futures[:3]]
        setters(futures)
        wrapped += [asyncio.wrap_future(future) for future in futures[3:]]
        found = await asyncio.wait_for(asyncio.gather(*wrapped), PATIENCE)
        assert found == [id(future) for future in futures]

    with asyncio.Runner() as runner:
        for _ in rounds():
            runner.run(gather())


@pytest.mark.parametrize("cancellers", [1, 2])
def test_a_task_is_either_cancelled_or_run_and_its_callback_runs_once(cancellers):
    owner = Owner()
    ends: set[bool] = set()
    for _ in rounds():
        future = owned(owner)
        calls: queue.SimpleQueue = queue.SimpleQueue()
        answers: list = []
        future.add_done_callback(calls.put)

        def run(future=future):
            if owner.begin(future):
                future.settle("ran", None, None)

        threads = [threading.Thread(target=run)]
        threads += [
            threading.Thread(target=lambda f=future, a=answers: a.append(f.cancel()))
            for _ in range(cancellers)
        ]
        for thread in threads if len(ends) % 2 else reversed(threads):
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert future.done()
        assert len(set(answers)) == 1
        assert future.cancelled() is answers[0]
        assert calls.get(timeout=PATIENCE) is future
        assert calls.empty()
        if future.cancelled():
            with pytest.raises(CancelledError):
                future.result(0)
        else:
            assert future.result(0) == "ran"
        ends.add(future.cancelled())
