"""Small things that must survive: ticks, documents, logs."""

from __future__ import annotations

import threading

import pytest

from millpond.errors import Conflict
from millpond.job import Slot
from millpond.store.protocol import Document, Retention, Tick
from tests.stores.acting import new_job, put, put_many, tally, the, travel


# --- ticks ------------------------------------------------------------------------------------------
def test_a_tick_enqueues_its_job_once(store, node):
    job = new_job()
    assert store.plan([Tick("hourly", 1_000, job)]) == [True]
    assert store.plan([Tick("hourly", 1_000, new_job())]) == [False]
    assert tally(store) == {"queued": 1}
    assert node.claim_one().id == job.id


def test_ticks_differ_by_name_and_instant(store):
    ticks = [Tick("a", 1, new_job()), Tick("a", 2, new_job()), Tick("b", 1, new_job())]
    assert store.plan(ticks) == [True, True, True]
    assert store.plan([*ticks, Tick("b", 2, new_job())]) == [False, False, False, True]
    assert tally(store) == {"queued": 4}


def test_a_tick_may_make_no_job(store):
    assert store.plan([Tick("a", 1)]) == [True]
    assert store.plan([Tick("a", 1, new_job())]) == [False]
    assert tally(store) == {}


def test_the_same_tick_twice_in_one_call_is_one(store):
    assert store.plan([Tick("a", 1, new_job()), Tick("a", 1, new_job())]) == [True, False]
    assert tally(store) == {"queued": 1}
    assert store.plan([]) == []


def test_a_tick_whose_job_is_held_up_by_a_unique_key_is_planned_all_the_same(store):
    put(store, new_job(unique="k"))
    assert store.plan([Tick("a", 1, new_job(unique="k", slots=(Slot("s", 1),)))]) == [True]
    assert tally(store) == {"queued": 1}


def test_many_planners_make_one_job(store):
    together = threading.Barrier(4)
    answers: list[bool] = []

    def plan() -> None:
        tick = Tick("a", 7, new_job())
        together.wait()
        answers.extend(store.plan([tick]))

    threads = [threading.Thread(target=plan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False, False, False, True]
    assert tally(store) == {"queued": 1}


def test_of_two_ticks_of_one_call_with_the_same_unique_key_the_first_makes_a_job(store, node):
    first, second = (new_job(unique="k", run_at=1) for _ in range(2))
    assert store.plan([Tick("a", 2, second), Tick("a", 1, first)]) == [True, True]
    assert [job.id for job in node.claim(10)] == [first.id]


def test_a_tick_whose_job_is_there_already_takes_no_key_from_others(store):
    (known,) = put(store, new_job())
    again = new_job(id=known, unique="k", run_at=1)
    assert store.plan([Tick("a", 1, again)]) == [True]
    other = new_job(unique="k", run_at=1)
    assert store.plan([Tick("a", 2, other)]) == [True]
    assert tally(store) == {"queued": 2}


def test_jobs_of_ticks_hold_slots_with_the_capacity_they_were_given_last(store, node):
    jobs = [new_job(slots=(Slot("s", 1),), run_at=1) for _ in range(3)]
    assert all(store.plan([Tick("a", at, job) for at, job in enumerate(jobs)]))
    assert len(node.claim(10)) == 1
    assert store.plan([Tick("b", 1, new_job(slots=(Slot("s", 3),), run_at=1)), Tick("b", 2)]) == [True, True]
    assert len(node.claim(10)) == 2


def test_jobs_of_ticks_are_counted_like_all_others(store):
    store.plan([Tick("a", 1, new_job(run_at=1)), Tick("b", 1, new_job(run_at=1)), Tick("c", 1)])
    found = store.statistics(0, store.clock.now() // 60_000_000 + 1)
    assert sum(minute.counts["enqueued"] for minute in found) == 2


def test_a_tick_is_known_for_a_week_however_long_jobs_are_kept(store):
    store.plan([Tick("a", 1)])
    travel(store, 6 * 86_400)
    store.prune(Retention())
    assert store.plan([Tick("a", 1)]) == [False]
    travel(store, 2 * 86_400)
    store.prune(Retention())
    assert store.plan([Tick("a", 1)]) == [True]


# --- documents --------------------------------------------------------------------------------------
def test_a_document_that_does_not_exist(store):
    assert store.record("d") == Document(b"", 0)


def test_a_document_is_written_and_read(store):
    assert store.record("d", b"\x00one", 0) == Document(b"\x00one", 1)
    assert store.record("d", b"two", 1) == Document(b"two", 2)
    assert store.record("d") == Document(b"two", 2)
    assert store.record("other") == Document(b"", 0)


def test_no_version_means_that_it_must_be_new(store):
    store.record("d", b"one")
    with pytest.raises(Conflict, match="'d'"):
        store.record("d", b"two")


@pytest.mark.parametrize("version", [0, 1, 3, 99])
def test_whoever_has_read_something_else_writes_nothing(store, version):
    store.record("d", b"one", 0)
    store.record("d", b"two", 1)
    with pytest.raises(Conflict):
        store.record("d", b"three", version)
    assert store.record("d") == Document(b"two", 2)


def test_a_version_of_what_does_not_exist(store):
    with pytest.raises(Conflict):
        store.record("d", b"one", 1)
    assert store.record("d") == Document(b"", 0)


def test_an_empty_document_is_a_document(store):
    assert store.record("d", b"", 0) == Document(b"", 1)
    assert store.record("d") == Document(b"", 1)


# --- logs -------------------------------------------------------------------------------------------
def test_lines_are_numbered_from_one(store):
    entries = store.log("l", [b"a", b"b\x00"])
    assert [(entry.number, entry.data) for entry in entries] == [(1, b"a"), (2, b"b\x00")]
    assert entries[0].at == store.clock.now()
    assert [entry.number for entry in store.log("l", [b"c"])] == [1, 2, 3]
    assert store.log("other") == []


def test_reading_goes_on_from_a_number(store):
    store.log("l", [b"%d" % number for number in range(1, 8)])
    assert [entry.number for entry in store.log("l", after=2, limit=3)] == [3, 4, 5]
    assert [entry.number for entry in store.log("l", after=5)] == [6, 7]
    assert store.log("l", after=7) == []


def test_a_log_is_bounded_and_its_numbers_go_on(store):
    store.log("l", [b"x"] * 10, keep=4)
    assert [entry.number for entry in store.log("l")] == [7, 8, 9, 10]
    store.log("l", [b"y"], keep=2)
    assert [(entry.number, entry.data) for entry in store.log("l")] == [(10, b"x"), (11, b"y")]


def test_more_at_once_than_is_kept(store):
    assert [entry.number for entry in store.log("l", [b"x"] * 5, keep=2)] == [4, 5]


def test_lines_carry_their_own_times(store):
    store.log("l", [b"a"])
    travel(store, 60)
    first, second = store.log("l", [b"b"])
    assert second.at - first.at == 60_000_000


# --- what ends must not depend on ---------------------------------------------------------------------
def test_nothing_of_this_is_a_job(store, node):
    store.record("d", b"x", 0)
    store.log("l", [b"x"])
    (job,) = put_many(store, 1)
    assert [found.id for found in node.claim()] == [job]
    assert the(store, job).state == "running"


def test_a_log_that_keeps_nothing_keeps_its_number(store):
    assert [entry.number for entry in store.log("l", [b"a", b"b"], keep=0)] == [2]
    assert [entry.number for entry in store.log("l", [b"c"], keep=-3)] == [3]
    assert store.log("l", limit=0) == []
    assert store.log("l", limit=-1) == []
    assert [entry.number for entry in store.log("l", after=-5)] == [3]
