"""A store that is silent, slow or behind dead connections: the node keeps its lease and its bounds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millpond import App, Node, Retry, current_job
from millpond.errors import StoreUnavailable
from millpond.job import JobState
from millpond.node.jobs import claim_loop
from millpond.node.lease.heartbeat import AGAIN, BEATS, patience
from millpond.node.state import FENCE_MARGIN, margin
from millpond.rules.jobs import claim_size
from millpond.store.open import open_store
from millpond.system import boot_clock
from tests.node.test_leases import alive, lines
from tests.node.waiting import BOUND, all_ended, ended, until
from tests.proof_node.proxy import Proxy
from tests.stores.places import place

SERVERS = ("postgres", "redis")
LEASE = 10.0  # long enough that a machine which stands still for a second changes nothing
LARGE = 1_000_000
SOON = 0.5  # seconds after which the claim loop of these tests gives an exchange up


@contextmanager
def app_at(url: str, workers: int = 1) -> Iterator[App]:
    """An app with the tasks of these tests."""
    app = App(url)
    app.store = open_store(url, patience=SOON)
    app.pool("default", workers=workers)

    @app.task(name="hold", retry=Retry(first=0))
    def hold(marks: str, go: str) -> int:
        """Leave a line with the time again and again, until `go` exists."""
        while True:
            with open(marks, "a") as file:
                file.write(f"{boot_clock.seconds()} {os.getpid()}\n")
            if os.path.exists(go):
                return current_job().token
            time.sleep(0.01)

    @app.task(name="hold_slot", key="one", limit=1, retry=Retry(first=0))
    def hold_slot(marks: str, go: str) -> int:
        return hold(marks, go)

    @app.task(name="large")
    def large(marks: str) -> str:
        with open(marks, "a") as file:
            file.write(f"{current_job().id}\n")
        time.sleep(0.02)
        return "x" * LARGE

    @app.task(name="quick")
    def quick() -> None: ...

    try:
        yield app
    finally:
        app.store.close()


def claim_all_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the machine takes: jobs are claimed behind one that runs for long, and stay claimed."""
    monkeypatch.setattr(claim_size, "SHORTEST", BOUND)
    monkeypatch.setattr(claim_size, "LONGEST", BOUND)


def last(marks: Path) -> tuple[float, int]:
    """When a job that holds on was last seen, and in which process."""
    at, pid = lines(marks)[-1].split()
    return float(at), int(pid)


@pytest.mark.parametrize("name", SERVERS)
def test_a_node_whose_connections_die_without_a_word_keeps_its_lease_and_its_job(name, tmp_path):
    """New connections work: there is time enough to make one."""
    marks, go = tmp_path / "marks", tmp_path / "go"
    with place(name, tmp_path) as url, Proxy(url) as proxy, app_at(url) as there, app_at(proxy.url) as here:
        there.store.migrate()
        with Node(here, lease=LEASE) as first:
            handle = there.tasks["hold"].enqueue(str(marks), str(go))
            until(lambda: handle.job().started_at, "the job runs")
            with Node(there, lease=LEASE) as second:
                lost_at = boot_clock.seconds()
                proxy.lose_all()
                until(
                    lambda: first._state.renewed_at > lost_at + LEASE or handle.job().token > 1,
                    "the node has kept its lease for longer than it lasts, or lost it",
                )
                go.touch()
                job = ended(handle)
                assert second._upkeep.rescued == 0
    assert (job.state, job.token, job.result) == (JobState.COMPLETED, 1, b"1")
    assert len({line.split()[1] for line in lines(marks)}) == 1


@pytest.mark.parametrize("lease", [1.0, 2.0, 3.3, 4.0, 15.0, 300.0])
def test_two_tries_fit_in_a_lease_and_the_heartbeat_stops_holders_of_slots_before_the_template(lease):
    first = lease / BEATS + patience(lease)
    assert first + min(AGAIN, lease / BEATS) < lease
    assert min(FENCE_MARGIN, 0.3 * lease) < margin(lease) < lease * (1 - 1 / BEATS)


def test_nothing_begins_on_a_lease_that_is_about_to_end(tmp_path, monkeypatch):
    """The store may answer a claim before the heartbeat has reached it again."""

    def away(*_: object) -> None:
        raise StoreUnavailable("the heartbeat has not reached the store yet")

    with place("sqlite", tmp_path) as url, app_at(url) as app:
        app.store.migrate()
        (tmp_path / "go").touch()
        with Node(app, lease=LEASE) as node:
            state, loop = node._state, node._loop
            with monkeypatch.context() as patched:
                patched.setattr(state.heart, "renew", away)
                state.renewed_at = boot_clock.seconds() - LEASE + state.margin - 0.01
                handle = app.tasks["hold_slot"].enqueue(str(tmp_path / "marks"), str(tmp_path / "go"))
                for _ in range(3):
                    before = loop.round_at
                    until(lambda: loop.round_at > before, "another round of the claim loop")  # noqa: B023
                assert handle.job().state is JobState.QUEUED
            job = ended(handle)
    assert (job.state, job.token, job.lost) == (JobState.COMPLETED, 1, 0)


@pytest.mark.parametrize("name", SERVERS)
def test_a_job_with_a_slot_is_stopped_before_the_lease_ends_and_one_without_goes_on(name, tmp_path, caplog):
    held, free, go = tmp_path / "held", tmp_path / "free", tmp_path / "go"
    with (
        place(name, tmp_path) as url,
        Proxy(url) as proxy,
        app_at(url) as there,
        app_at(proxy.url, 2) as here,
    ):
        there.store.migrate()
        with Node(here, lease=LEASE) as node:
            with_slot = there.tasks["hold_slot"].enqueue(str(held), str(go))
            without = there.tasks["hold"].enqueue(str(free), str(go))
            until(lambda: with_slot.job().started_at and without.job().started_at, "both run")
            _, worker = last(held)
            proxy.fall_silent()
            until(lambda: not alive(worker), "the end of the worker that holds the slot")
            lease_ends_at = node._state.renewed_at + LEASE
            assert last(held)[0] < lease_ends_at
            assert (
                f"Job {with_slot.id} holds slots and the lease ends" in caplog.text
            )  # not left to the template
            until(lambda: last(free)[0] > lease_ends_at, "the other goes on without a lease")
            proxy.speak_again()
            go.touch()
            stopped, unharmed = all_ended([with_slot, without])
    assert [attempt.ended for attempt in stopped.attempts] == ["lost", "returned"]
    assert [attempt.ended for attempt in unharmed.attempts] == ["returned"]
    assert without.id not in caplog.text


@pytest.mark.parametrize("name", SERVERS)
def test_beyond_a_bound_of_unsettled_ends_nothing_more_is_started(name, tmp_path, monkeypatch):
    marks, go, number = tmp_path / "marks", tmp_path / "go", 60
    monkeypatch.setattr(claim_loop, "MOST_UNSETTLED", 4 * LARGE)
    claim_all_ahead(monkeypatch)
    with place(name, tmp_path) as url, Proxy(url) as proxy, app_at(url) as there, app_at(proxy.url) as here:
        there.store.migrate()
        with Node(here, lease=60.0) as node:
            pool = node._state.pools["default"]
            all_ended(there.tasks["quick"].enqueue_many([()] * 50))  # now some are claimed ahead
            first = there.tasks["hold"].enqueue(str(tmp_path / "first"), str(go))
            until(lambda: lines(tmp_path / "first"), "the worker is busy")
            handles = there.tasks["large"].enqueue_many([(str(marks),)] * number)
            until(lambda: len(pool.held) == number + 1, "all are claimed")
            proxy.fall_silent()
            go.touch()
            until(lambda: not pool.held, "nothing is left that could begin")
            assert node._state.line.size > 4 * LARGE
            began = lines(marks)
            assert 4 <= len(began) < number
            proxy.speak_again()
            jobs = all_ended([first, *handles])
    assert {(job.state, job.attempt) for job in jobs} == {(JobState.COMPLETED, 1)}
    assert sorted(lines(marks)) == sorted(handle.id for handle in handles)  # each of them once


def test_ends_that_are_too_much_for_a_slow_link_get_through_in_smaller_parts(tmp_path, monkeypatch):
    """Of an exchange that takes longer than an answer is waited for, the same again would be no better."""
    marks, go, number = tmp_path / "marks", tmp_path / "go", 12
    claim_all_ahead(monkeypatch)
    slow = threading.Event()

    def delay(data: bytes) -> bool:
        if slow.is_set() and len(data) > 10_000:
            time.sleep(len(data) / (6 * LARGE))  # the fault itself: 6 MB a second
        return True

    with place("redis", tmp_path) as url, Proxy(url, delay) as proxy, app_at(url) as there:
        there.store.migrate()
        with app_at(proxy.url) as here, Node(here, lease=60.0) as node:
            all_ended(there.tasks["quick"].enqueue_many([()] * 50))
            first = there.tasks["hold"].enqueue(str(tmp_path / "first"), str(go))
            until(lambda: lines(tmp_path / "first"), "the worker is busy")
            handles = there.tasks["large"].enqueue_many([(str(marks),)] * number)
            until(lambda: len(node._state.pools["default"].held) == number + 1, "all are claimed")
            proxy.fall_silent()
            slow.set()
            go.touch()
            until(lambda: node._state.line.size > number * LARGE, "all ends wait")
            proxy.speak_again()
            jobs = all_ended([first, *handles])
    assert {(job.state, job.token) for job in jobs} == {(JobState.COMPLETED, 1)}
    assert len(lines(marks)) == number
