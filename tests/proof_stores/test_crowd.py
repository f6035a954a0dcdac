"""Eight processes on one store: every job is settled once, none twice, none is left, whatever the store does.

The evidence is in files outside the store: a line for every execution, written before it is settled.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Self

import apsw
import pytest

from millpond.job import JobState, NewJob, Slot
from millpond.store.open import open_store
from tests.proof_stores.worlds import Server
from tests.stores.acting import id_of
from tests.stores.places import place

HANDS = 8
LONG = 1800.0  # seconds after which a crowd is stuck
SIZES = [4000, pytest.param(100_000, marks=pytest.mark.slow)]


class Crowd:
    """Processes at work on a store, and the files they write."""

    def __init__(self, url: str, folder: Path, number: int) -> None:
        self.url, self.folder, self.number = url, folder, number
        self.hands: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whoever is still at work when a test has failed ends here."""
        for hand in self.hands:
            if hand.poll() is None:
                hand.kill()
            hand.communicate()

    def add(self, role: str, names: list[str], number: int, busy: float = 0.0) -> None:
        for name in names:
            words = [role, self.url, name, str(self.folder), str(number), str(busy)]
            command = [sys.executable, "-m", "tests.proof_stores.hand", *words]
            self.hands.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))

    def read(self, word: str) -> list[str]:
        path = self.folder / word
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def wait_until_executed(self, number: int) -> None:
        until = time.monotonic() + LONG
        while len(self.read("executed")) < number:
            assert time.monotonic() < until
            assert all(hand.poll() in (None, 0) for hand in self.hands), self.last_words()
            time.sleep(0.01)

    def last_words(self) -> list[str]:
        return [hand.communicate(timeout=LONG)[1] for hand in self.hands if hand.poll() not in (None, 0)]

    def join(self) -> None:
        """All of them come to their end, by themselves."""
        words = [hand.communicate(timeout=LONG)[1] for hand in self.hands]
        assert [hand.returncode for hand in self.hands] == [0] * len(self.hands), words

    def check(self) -> None:
        executed = Counter(self.read("executed"))
        twice = [job for job, times in executed.items() if times > 1]
        assert not twice, f"executed twice: {twice[:5]}"
        assert len(executed) == self.number
        assert not self.read("stale")
        store = open_store(self.url)
        (queue,) = store.counts().queues
        store.close()
        assert queue.states == {JobState.COMPLETED: self.number}


def fill(url: str, number: int, *, slots: int = 0) -> None:
    """Store jobs; with slots, every job wants one of so many that let two run at a time."""
    store = open_store(url)
    store.migrate()
    for first in range(0, number, 1000):
        jobs = range(first, min(first + 1000, number))
        store.enqueue([_job(n, (Slot(f"s{n % slots}", 2),) if slots else ()) for n in jobs])
    store.close()


def _job(number: int, slots: tuple[Slot, ...]) -> NewJob:
    return NewJob(id=id_of(f"{number:06}"), task="t", payload=b"{}", slots=slots, fresh=True)


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("name", ["sqlite", "postgres", "redis"])
def test_eight_processes_settle_every_job_once(name: str, number: int, tmp_path: Path):
    with place(name, tmp_path) as url:
        fill(url, number)
        with Crowd(url, tmp_path, number) as crowd:
            crowd.add("work", [f"n{n}" for n in range(HANDS)], number)
            crowd.join()
            crowd.check()


@pytest.mark.parametrize("number", [500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["sqlite", "postgres", "redis"])
def test_eight_processes_that_need_the_same_slots_leave_no_job_parked(name: str, number: int, tmp_path: Path):
    with place(name, tmp_path) as url:
        fill(url, number, slots=7)
        with Crowd(url, tmp_path, number) as crowd:
            crowd.add("work", [f"n{n}" for n in range(HANDS)], number)
            crowd.join()
            crowd.check()


@pytest.mark.parametrize(("seconds", "busy"), [(1.0, 0.2), pytest.param(30.0, 5.0, marks=pytest.mark.slow)])
def test_a_foreign_lock_on_the_file_loses_nothing_and_kills_nobody(
    seconds: float, busy: float, tmp_path: Path
):
    with place("sqlite", tmp_path) as url:
        fill(url, 10_000)
        with Crowd(url, tmp_path, 10_000) as crowd:
            crowd.add("work", ["n0", "n1"], 10_000, busy)
            crowd.wait_until_executed(1)
            foreign = locked(tmp_path / "jobs.db")
            until = time.monotonic() + seconds
            while time.monotonic() < until or set(crowd.read("StoreBusy")) != {"n0", "n1"}:
                assert all(hand.poll() is None for hand in crowd.hands), crowd.last_words()
                time.sleep(0.01)
            foreign.close()
            crowd.join()
            crowd.check()


def locked(path: Path) -> apsw.Connection:
    """A foreign connection with the write lock. It asks again and again: waiting its turn it might starve."""
    foreign = apsw.Connection(str(path))
    while True:
        try:
            foreign.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            continue
        return foreign


@pytest.mark.parametrize("number", [1000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", ["crash", pytest.param("orderly", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_restart_of_the_server_loses_nothing_that_was_acknowledged(
    name: str, how: str, number: int, tmp_path: Path
):
    server = Server(name)
    try:
        fill(server.url, 0)
        with Crowd(server.url, tmp_path, 2 * number) as crowd:
            crowd.add("fill", ["f0", "f1"], number)
            crowd.add("work", ["n0", "n1"], 2 * number)
            crowd.wait_until_executed(number // 4)
            server.stop(how)
            server.process.start()
            crowd.join()
            assert crowd.read("StoreUnavailable") + crowd.read("OutcomeUnknown")  # somebody was in the middle
            assert len(set(crowd.read("acknowledged"))) == 2 * number
            crowd.check()
    finally:
        server.process.server.remove()
