"""A small scene for killing people in: an enqueuer, a settler and a rescuer, and who comes after them.

Every store in it stands at the same instant, whatever process it is in, so that leases run out when the
scene says so. What was acknowledged is written to a file outside the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millpond.job import MICROSECONDS, Job, JobState, NewJob, Returned, Settlement, Slot
from millpond.rules.jobs.lifecycle import settle as verdict_on
from millpond.store.open import open_store
from millpond.store.protocol import Claim, Filter, Started
from tests.stores.acting import id_of

BEGINNING = 1_750_000_000 * MICROSECONDS
QUEUE = "default"
PRINTER = (Slot("printer", 1),)
JOBS = [
    NewJob(id=id_of("a"), task="t", payload=b"1"),
    NewJob(id=id_of("b"), task="t", payload=b"1", slots=PRINTER),
    NewJob(id=id_of("c"), task="t", payload=b"1", slots=PRINTER, unique="k", unique_for="waiting"),
    NewJob(id=id_of("d"), task="t", payload=b"1", unique="l"),
    NewJob(id=id_of("e"), task="t", payload=b"1", depends_on=(id_of("a"),)),
    NewJob(id=id_of("f"), task="t", payload=b"1", depends_on=(id_of("b"), id_of("d"))),
    NewJob(id=id_of("g"), task="t", payload=b"1", slots=PRINTER, delay=1.0),
]
IDS = [job.id for job in JOBS]


def opened(url: str, later: float = 0.0) -> Any:
    """The store as it is that many seconds after the beginning."""
    store: Any = open_store(url)
    at(store, later)
    return store


def at(store: Any, later: float) -> None:
    """Move a store to so many seconds after the beginning."""
    store.clock.freeze()
    store.clock.frozen = BEGINNING
    store.clock.shift = round(later * MICROSECONDS)


class Notes:
    """Lines in a file that outlive whoever writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, word: str, ids: list[str]) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, "".join(f"{word} {job}\n" for job in ids).encode())
        os.close(file)

    def read(self, word: str) -> list[str]:
        lines = self.path.read_text().split("\n") if self.path.exists() else []
        return [line.split()[1] for line in lines if line.startswith(f"{word} ")]


# --- the roles: what comes before, and what is done until death ---------------------------------------
def enqueuer(store: Any, notes: Notes) -> None:
    for part in (JOBS[:3], JOBS[3:6], JOBS[6:]):
        store.enqueue(part)
        notes.add("stored", [job.id for job in part])


def settler(store: Any, notes: Notes) -> None:
    store.renew("victim", "host")
    work(store, "victim", notes)


def rescuer(store: Any, notes: Notes) -> None:
    at(store, 21)
    store.rescue("victim")


def before_the_settler(store: Any) -> None:
    store.enqueue(JOBS)


def before_the_rescuer(store: Any) -> None:
    """A node dies with jobs in its hands, one of them begun; the victim has been steady."""
    store.enqueue(JOBS)
    store.renew("dead", "elsewhere")
    store.renew("victim", "host")
    claimed = store.exchange("dead", 1, claims=[Claim(QUEUE, 10)]).claimed
    store.exchange("dead", 2, started=[Started(job.id, job.token) for job in claimed[:1]])
    store.cancel(Filter(ids=(id_of("d"),)))
    for later in (5, 10, 15, 20):
        at(store, later)
        store.renew("victim", "host")


Role = Callable[[Any, Notes], None]
ROLES: dict[str, tuple[Callable[[Any], object], Role]] = {
    "enqueuer": (lambda store: store.migrate(), enqueuer),
    "settler": (before_the_settler, settler),
    "rescuer": (before_the_rescuer, rescuer),
}


def work(store: Any, node: str, notes: Notes, first: int = 1) -> None:
    """Claim, begin and settle until nothing is left."""
    sequence = first
    settlements: list[Settlement] = []
    while True:
        answer = store.exchange(node, sequence, settlements=settlements, claims=[Claim(QUEUE, 2)])
        assert not answer.stale
        notes.add("settled", [settlement.id for settlement in settlements])
        if not answer.claimed:
            return
        store.exchange(node, sequence + 1, started=[Started(job.id, job.token) for job in answer.claimed])
        settlements = [_verdict(job, node, store) for job in answer.claimed]
        sequence += 2


def _verdict(job: Job, node: str, store: Any) -> Settlement:
    result = b'"%s"' % node.encode()
    return Settlement(job.id, job.token, verdict_on(job, Returned(result), BEGINNING), 0.1, 0.1)


# --- who comes after ------------------------------------------------------------------------------------
def inherit(store: Any, notes: Notes) -> None:
    """Another node takes over: stores again what may be missing, rescues, and finishes everything."""
    for later in (40, 46, 52, 58, 64):
        at(store, later)
        store.renew("heir", "host")
    stored = notes.read("stored")
    assert None not in store.get(stored), f"acknowledged and lost: {stored}"
    store.enqueue(JOBS)
    at(store, 65)
    store.rescue("heir")
    work(store, "heir", notes)


def check(store: Any, notes: Notes) -> None:
    """Nothing is lost, nothing happened twice, nothing is still held."""
    jobs = {job.id: job for job in store.get(IDS) if job is not None}
    assert sorted(jobs) == IDS
    ends = {job.id: job.state for job in jobs.values()}
    chosen = {job for job, state in ends.items() if state is JobState.CANCELLED}
    assert chosen <= {id_of("d"), id_of("f")}, ends  # somebody cancelled d, and f depends on it
    assert all(state is JobState.COMPLETED for job, state in ends.items() if job not in chosen), ends
    settled = notes.read("settled")
    assert len(settled) == len(set(settled)), f"settled twice: {settled}"
    for job in jobs.values():
        assert job.state is JobState.CANCELLED or job.attempt == 1 + job.lost
    _check_numbers(store, len(chosen))
    _check_room(store)


def _check_numbers(store: Any, cancelled: int) -> None:
    numbers: dict[str, int] = {}
    for minute in store.statistics(0, 10**9):
        for what, number in minute.counts.items():
            numbers[what] = numbers.get(what, 0) + number
    assert numbers["enqueued"] == len(JOBS)
    assert numbers["completed"] == len(JOBS) - cancelled
    assert numbers.get("cancelled", 0) == cancelled
    assert [(node.id, node.running) for node in store.counts().nodes] == [("heir", 0)]


def _check_room(store: Any) -> None:
    """Slots and unique keys are free again."""
    last = NewJob(id=id_of("z"), task="t", payload=b"1", slots=PRINTER, unique="l")
    assert store.enqueue([last, NewJob(id=id_of("y"), task="t", payload=b"1", unique="k")])[0].created
    answer = store.exchange("heir", 1000, claims=[Claim(QUEUE, 10)])
    assert sorted(job.id for job in answer.claimed) == [id_of("y"), id_of("z")]
