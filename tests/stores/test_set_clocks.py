"""Somebody sets the clock of the machine that a SQLite file is on: its processes agree on the time."""

from __future__ import annotations

import time

import pytest

from millpond.job import MICROSECONDS
from millpond.store.clock import Clock
from millpond.system import boot_clock
from tests.stores.acting import new_job, the

HOUR = 3600 * MICROSECONDS
NEAR = 60 * MICROSECONDS


@pytest.fixture
def set_by(monkeypatch):
    """Set the wall clock, as the stores of this process see it."""
    by = [0]
    monkeypatch.setattr("millpond.store.clock._wall_clock", lambda: time.time_ns() // 1000 + by[0])

    def set_it(microseconds: int) -> None:
        by[0] += microseconds

    return set_it


def stored(store) -> int:
    """The instant that a new job gets."""
    (made,) = store.enqueue([new_job()])
    return int(the(store, made.id).created_at)


@pytest.fixture
def url(sqlite_path) -> str:
    return f"sqlite:///{sqlite_path}"


def running(store):
    store.clock.frozen = None
    return store


def test_set_back_the_time_goes_on(url, open_at, set_by):
    store = running(open_at(url))
    before = stored(store)
    set_by(-2 * HOUR)
    assert before <= stored(store) < before + NEAR


def test_a_process_that_starts_afterwards_has_the_same_time(url, open_at, set_by):
    store = running(open_at(url))
    before = stored(store)
    set_by(-2 * HOUR)
    stored(store)
    assert before <= stored(running(open_at(url))) < before + NEAR


def test_a_process_that_starts_afterwards_knows_although_nobody_was_there(url, open_at, set_by):
    before = stored(running(open_at(url)))
    set_by(-2 * HOUR)
    assert before <= stored(running(open_at(url))) < before + NEAR


def test_who_only_reads_has_the_same_time(url, open_at, set_by):
    before = stored(running(open_at(url)))
    set_by(-2 * HOUR)
    reader = running(open_at(url))
    reader.counts()
    assert before <= reader.clock.now() < before + NEAR


def test_who_slept_through_it_takes_over_what_others_saw(url, open_at, set_by, monkeypatch):
    monkeypatch.setattr("millpond.store.clock.ASK", 0)
    awake, asleep = running(open_at(url)), running(open_at(url))
    before = stored(asleep)
    set_by(2 * HOUR)
    assert stored(awake) >= before + 2 * HOUR
    set_by(-2 * HOUR)
    stored(awake)
    assert stored(asleep) >= before + 2 * HOUR


def test_of_several_that_saw_it_the_first_is_believed(url, open_at, set_by):
    one, other = running(open_at(url)), running(open_at(url))
    stored(one), stored(other)
    set_by(-2 * HOUR)
    one.clock.now(), other.clock.now()
    stored(one), stored(other)
    stored(one), stored(other)
    assert one.clock.mark == other.clock.mark


def test_the_mark_of_another_boot_says_nothing(url, open_at, set_by):
    store = running(open_at(url))
    store.clock.epoch = "before"
    stored(store)
    set_by(-2 * HOUR)
    rebooted = running(open_at(url))
    assert stored(rebooted) < time.time_ns() // 1000 - HOUR


def test_nonsense_in_the_document_is_written_anew(url, open_at):
    store = running(open_at(url))
    stored(store)
    store.record("clock", b"?", store.record("clock").version)
    stored(running(open_at(url)))
    assert b"boot" in store.record("clock").value


def test_a_pause_between_two_looks_is_no_setting(monkeypatch):
    clock = Clock()
    before = clock.now()
    real, pauses = boot_clock.microseconds, [180]
    monkeypatch.setattr(
        "millpond.store.clock._boot_clock",
        lambda: real() - (pauses.pop() if pauses else 0) * MICROSECONDS,
    )
    assert before <= clock.now() < before + NEAR
    assert clock.now() < before + NEAR
