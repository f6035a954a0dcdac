"""Ids: UUIDs of version 7, strictly rising within a process, apart from each other after a fork."""

import os
import threading
import time
import uuid
from itertools import pairwise

import pytest

from millpond import ids
from millpond.ids import new_id

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def test_an_id_is_a_uuid_of_version_7_in_its_one_spelling():
    before = time.time_ns() // 1_000_000
    text = new_id()
    made = uuid.UUID(text)
    assert text == str(made)
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= before + 60_000


def test_ids_rise_strictly_as_text():
    made = [new_id() for _ in range(10_000)]
    assert all(left < right for left, right in pairwise(made))


def test_ids_rise_even_when_the_clock_goes_back(monkeypatch):
    first = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_id() > first


def test_the_largest_random_part_moves_on_to_the_next_millisecond(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_000)
    monkeypatch.setattr(os, "urandom", lambda number: b"\xff" * number)
    monkeypatch.setattr(ids, "_last", "")
    first, second = uuid.UUID(new_id()), uuid.UUID(new_id())
    assert first < second
    assert (first.version, second.version) == (7, 7)
    assert (first.int >> 80, second.int >> 80) == (5, 6)


@pytest.mark.parametrize(
    ("last", "following"),
    [
        ("00000000-0005-7abc-9def-0123456789ab", "00000000-0005-7abc-9def-0123456789ac"),
        ("00000000-0005-7abc-9def-ffffffffffff", "00000000-0005-7abc-9df0-000000000000"),
        ("00000000-0005-7abc-bfff-ffffffffffff", "00000000-0005-7abd-8000-000000000000"),
        ("00000000-ffff-7fff-bfff-ffffffffffff", "00000001-0000-7000-8000-000000000000"),
    ],
)
def test_counting_on_leaves_version_and_variant_alone(monkeypatch, last, following):
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(ids, "_last", last)
    assert new_id() == following


def test_threads_never_make_the_same_id():
    made: list[str] = []

    def make():
        made.extend([new_id() for _ in range(2000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 16_000


@forks
def test_a_forked_child_makes_ids_of_its_own():
    new_id()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writable, "".join(new_id() for _ in range(100)).encode())
        finally:
            os._exit(0)
    os.close(writable)
    ours = {new_id() for _ in range(100)}
    with os.fdopen(readable) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    theirs = [text[place : place + 36] for place in range(0, len(text), 36)]
    assert len(set(theirs)) == 100
    assert theirs == sorted(theirs)
    assert not ours & set(theirs)


@forks
def test_a_fork_while_the_lock_is_held_does_not_block_the_child():
    with ids._lock:
        child = os.fork()
        if child == 0:
            new_id()
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
