"""Answers through ring and socket: each arrives once and unchanged, wherever the ring wraps or fills."""

import marshal
import os
import pickle
import random
import socket
import threading
from collections import deque
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millpond.pool.channel import frames
from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.shared_page import Page, Regions
from millpond.pool.worker.result_writer import FLUSH_AFTER, SMALL, Outbox
from tests.pool_parts.two_ends import TwoEnds, load

calm = settings(deadline=None, max_examples=50)
OVERHEAD = len(pickle.dumps(b"x" * 1000, 5)) - 1000
LARGEST = SMALL - OVERHEAD - 8


@pytest.fixture
def ends():
    with TwoEnds() as both:
        yield both


def put(ends, value, *, good=True, now=1):
    number = ends.expect()
    ends.outbox.answer(number, 5, value, good, now)
    return number


def test_a_frame_whose_sender_is_interrupted_hides_no_other(ends):
    """As by a signal handler of the task's that raises: behind the call, the frame is on its way."""
    send, outbox = ends.outbox._send_all, ends.outbox

    def send_and_raise(data: Any) -> None:
        send(data)
        raise TimeoutError("the task's own")

    outbox._send_all = send_and_raise
    with pytest.raises(TimeoutError):
        outbox.send(frames.NOTE, b"first")
    outbox._send_all = send
    outbox.send(frames.NOTE, b"second")
    ends.link.collect(deque())
    outbox.send(frames.NOTE, b"third")
    ends.link.collect(deque())
    assert [bytes(frame.body) for frame in ends.link.news] == [b"first", b"second", b"third"]


@contextmanager
def answering(ends, sent):
    """A worker that really runs beside us and answers as fast as it is let. It never outlives the test."""

    def work():
        try:
            for number, value in sent.items():
                ends.outbox.answer(number, 5, value, True, 1)
            ends.outbox.flush()
        except OSError:
            return  # the test has failed and hung up

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    except BaseException:
        ends.link.sock.shutdown(socket.SHUT_RDWR)
        raise
    finally:
        worker.join(10)


def values(found):
    read = {frames.PLAIN_VALUE: lambda payload, _: marshal.loads(payload)}
    return {number: read.get(verdict, load)(payload, buffers) for number, verdict, payload, buffers in found}


# --- the ring --------------------------------------------------------------------------------------
@calm
@given(
    start=st.integers(0, 3 * layout.RING_BYTES)
    | st.integers(layout.RING_BYTES - 100, layout.RING_BYTES + 30),
    steps=st.lists(st.integers(0, 300) | st.integers(0, LARGEST) | st.just(-1), max_size=60),
)
@example(start=0, steps=[LARGEST] * 16)
@example(start=layout.RING_BYTES - 23, steps=[10])
@example(start=layout.RING_BYTES - 8, steps=[10])
@example(start=layout.RING_BYTES - 7, steps=[10])
@example(start=layout.RING_BYTES - 24, steps=[0, 0])
def test_answers_of_any_size_arrive_once_and_unchanged_wherever_the_ring_wraps(start, steps):
    """A step is the size of an answer, or -1: the parent looks. It looks in time to keep the socket open."""
    sent: dict[int, bytes] = {}
    got: dict[int, bytes] = {}
    unseen = 0
    with TwoEnds() as ends:
        ends.move_to(start)
        for step in [*steps, -1]:
            if step < 0 or unseen > layout.RING_BYTES + 60_000:
                ends.outbox.flush()
                found, news = ends.collect()
                got.update(values(found))
                assert len(got) == len(ends.answers), "an answer came twice"
                assert not news
                unseen = 0
            if step >= 0:
                value = bytes([len(sent) % 251]) * step
                sent[put(ends, value)] = value
                unseen += step
        while ends.link.inflight:
            got.update(values(ends.collect()[0]))
        assert got == sent
        assert not ends.link.stray
        assert ends.page.words[layout.CONSUMED] == ends.page.words[layout.WRITTEN]


@pytest.mark.parametrize("gap", range(40))
def test_a_record_that_does_not_fit_before_the_end_begins_at_the_start(ends, gap):
    ends.move_to(layout.RING_BYTES - gap)
    ends.page.ring[-40:] = b"\xff" * 40  # what an earlier round left there
    sent = {put(ends, value): value for value in (b"a" * 50, b"b" * 60)}
    found, _ = ends.collect()
    assert values(found) == sent
    assert not ends.link.stray


def test_a_full_ring_falls_back_to_the_socket_and_recovers(ends):
    sent: dict[int, bytes] = {}
    while ends.outbox._written + 5000 < layout.RING_BYTES:
        value = bytes([len(sent)]) * 4000
        sent[put(ends, value)] = value
    before = ends.outbox._written
    for index in range(5):
        value = bytes([index]) * 6000
        sent[put(ends, value)] = value
    assert ends.outbox._written == before, "those went down the socket"
    while ends.link.inflight:
        ends.collect()
    assert values(ends.answers) == sent
    put(ends, b"once more")
    assert ends.outbox._written > before
    assert values(ends.collect()[0]).popitem()[1] == b"once more"


def test_answers_outlive_a_worker_that_never_rang(ends):
    sent = {put(ends, value): value for value in (1, "two", None, (3,))}
    ends.sock.close()
    assert values(ends.collect()[0]) == sent


def test_the_doorbell_rings_once_for_many_answers(ends):
    for value in range(10):
        put(ends, value)
    assert not ends.rung()
    ends.outbox.flush()
    ends.outbox.flush()
    assert os.eventfd_read(ends.link.bell) == 1


def test_an_answer_waits_for_the_doorbell_no_longer_than_its_bound(ends):
    put(ends, 1, now=1000)
    put(ends, 2, now=1000 + FLUSH_AFTER)
    assert not ends.rung()
    put(ends, 3, now=1001 + FLUSH_AFTER)
    assert ends.rung()


def test_an_answer_nobody_asked_for_makes_the_worker_a_stray_and_settles_nothing(ends):
    ends.outbox.answer(999, 5, "stray", True, 1)
    ends.outbox.answer(998, 5, np.zeros(layout.PAGE * 10), True, 1)
    number = put(ends, "mine")
    assert list(values(ends.collect()[0])) == [number]
    assert ends.link.stray


def test_a_slow_parent_gets_everything_from_a_fast_worker(ends):
    """The writer fills ring and socket and is made to wait; here the two really run at once."""
    noise = random.Random(1)
    sizes = [noise.choice((10, 500, 9000, LARGEST)) for _ in range(1500)]
    numbers = [ends.expect() for _ in sizes]
    sent = {number: bytes([number % 251]) * size for number, size in zip(numbers, sizes, strict=True)}

    with answering(ends, sent):
        got = values(ends.collect_until(len(sent)))
    assert got == sent
    assert len(ends.answers) == len(sent)


def test_a_socket_made_nonblocking_by_a_task_still_takes_everything(ends):
    ends.sock.setblocking(False)
    ends.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    value = b"x" * 3_000_000
    number = ends.expect()
    ends.outbox._regions = Regions(1)
    with answering(ends, {number: value}):
        got = values(ends.collect_until(1))
    assert got == {number: value}


# --- values and verdicts --------------------------------------------------------------------------
PLAIN = {
    "bool": True,
    "minus zero": -0.0,
    "none": None,
    "text": "text",
    "surrogate": "\ud800",
    "beyond 64 bits": 2**70,
    "larger than the ring": 1 << 2_000_000,
    "larger than the socket": 1 << 20_000_000,
    "long text": "x" * 100_000,
}


@pytest.mark.parametrize("value", PLAIN.values(), ids=PLAIN)
def test_plain_values_arrive_exactly_whatever_their_size(ends, value):
    number = ends.expect()
    with answering(ends, {number: value}):
        (got,) = values(ends.collect_until(1)).values()
    assert type(got) is type(value)
    assert marshal.dumps(got) == marshal.dumps(value)


def test_a_result_that_cannot_be_pickled_is_an_error_of_its_task(ends):
    number = put(ends, threading.Lock())
    ((found, verdict, payload, buffers),) = ends.collect()[0]
    assert (found, verdict) == (number, frames.ERROR)
    error = load(payload, buffers)
    assert isinstance(error, TypeError)
    assert "pickle" in str(error)


def test_an_exception_arrives_with_its_traceback(ends):
    try:
        raise KeyError("gone")
    except KeyError as error:
        put(ends, error, good=False)
    ((_, verdict, payload, buffers),) = ends.collect()[0]
    got = load(payload, buffers)
    assert verdict == frames.ERROR
    assert got.args == ("gone",)
    assert "test_outbox.py" in str(got.__cause__)


def test_a_users_own_error_is_never_taken_for_trouble_with_the_payload(ends):
    class Unreadable(Exception):
        pass

    error = Unreadable("the scan is too dark")
    error.__cause__ = ValueError("too dark")
    put(ends, error, good=False)
    ((_, verdict, _, _),) = ends.collect()[0]
    assert verdict == frames.ERROR


def test_an_exception_that_carries_a_large_array_arrives_as_itself(ends):
    put(ends, ValueError(np.arange(20_000.0)), good=False)
    ((_, _, payload, buffers),) = ends.collect()[0]
    error = load(payload, buffers)
    assert isinstance(error, ValueError)
    assert np.array_equal(error.args[0], np.arange(20_000.0))


# --- large answers ----------------------------------------------------------------------------------
def test_large_buffers_arrive_writable_through_the_arena_and_its_space_comes_back(ends):
    for index in range(30):  # several times the arena in all
        array = np.full(1_250_000, index, dtype=np.float64)
        number = put(ends, array)
        ((found, verdict, payload, buffers),) = ends.collect()[0]
        got = load(payload, buffers)
        assert (found, verdict) == (number, frames.VALUE)
        assert np.array_equal(got, array)
        got[0] = -1.0
        assert ends.page.words[layout.ARENA_FREED] == ends.page.words[layout.ARENA_DONE] == index + 1


def test_what_came_through_the_arena_is_not_changed_by_what_comes_next(ends):
    payloads: list[Any] = [np.full(20_000, 1.0), b"\x02" * 100_000, bytearray(b"\x03") * 100_000]
    put(ends, payloads)
    ((_, _, payload, buffers),) = ends.collect()[0]
    ends.page.arena_out[:1_000_000] = b"\xff" * 1_000_000
    first, second, third = load(payload, buffers)
    assert np.array_equal(first, payloads[0])
    assert (second, third) == tuple(payloads[1:])
    assert isinstance(second, bytes)
    assert isinstance(third, bytearray)


def test_large_answers_use_the_socket_when_the_arena_is_full(ends):
    ends.outbox._regions = Regions(300_000)
    noise = random.Random(2)
    sent = {ends.expect(): noise.randbytes(noise.randrange(65_536, 200_000)) for _ in range(60)}
    with answering(ends, {number: np.frombuffer(value, dtype=np.uint8) for number, value in sent.items()}):
        got = values(ends.collect_until(len(sent)))
    assert {number: value.tobytes() for number, value in got.items()} == sent
    assert 0 < ends.page.words[layout.ARENA_DONE] <= len(sent)


# --- counting ---------------------------------------------------------------------------------------
@calm
@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=200))
def test_counts_and_sums_are_exact_and_the_histograms_a_fair_sample(tasks):
    page = Page.create("millpond-test")
    waits, runs = [wait for wait, _ in tasks], [run for _, run in tasks]
    Outbox(None, page, -1).count(waits, runs, errors=1, items=len(tasks))  # type: ignore[arg-type]
    words = page.words
    assert words[layout.TASKS_DONE] == len(tasks)
    assert words[layout.ERRORS] == 1
    assert (words[layout.SUM_WAIT], words[layout.SUM_RUN]) == (sum(waits), sum(runs))
    step = len(tasks) // 16 + 1
    for first in (layout.WAITS, layout.RUNS):
        assert len(tasks) <= sum(words[first : first + layout.HISTOGRAM]) < len(tasks) + step
    page.close()


def test_a_task_that_seems_to_begin_before_it_was_submitted_stops_nobody(ends):
    ends.outbox.count([-5], [10], errors=0, items=1)
    assert ends.page.words[layout.TASKS_DONE] == 1
