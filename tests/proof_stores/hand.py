"""One of a crowd: a process that works on a store until nothing is left, or fills it, and notes what it did.

`python -m tests.proof_stores.hand work|fill URL NAME FOLDER NUMBER BUSY`. It does not know what the store
is made of. An exchange whose outcome is unknown is settled by asking what it holds; a job whose storing is
unknown is stored again under its id.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import NAMESPACE_OID, uuid5

from millpond.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from millpond.job import Job, JobState, NewJob, Returned, Settlement
from millpond.rules.jobs.lifecycle import settle as verdict_on
from millpond.store.open import open_store
from millpond.store.protocol import Claim
from millpond.store.sqlite.store import SQLiteStore

T = TypeVar("T")
QUEUE = "default"
PATIENCE = 120.0  # seconds without a store before a hand gives up
BATCH = 40


class Hand:
    """A store, a name, and files that outlive both."""

    def __init__(self, url: str, name: str, folder: Path, busy: float) -> None:
        self.store: Any = open_store(url)
        if isinstance(self.store, SQLiteStore) and busy:
            self.store = SQLiteStore(self.store.path, busy=busy)
        self.name = name
        self.folder = folder
        self.deferred: list[Settlement] = []  # ends that another's lock kept out

    def note(self, word: str, lines: list[str]) -> None:
        """Append to a file of evidence, outside the store."""
        file = os.open(self.folder / word, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, "".join(f"{line}\n" for line in lines).encode())
        os.close(file)

    def insist(self, call: Callable[[], T]) -> T:
        """Repeat what is known not to have happened."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return call()
            except (StoreBusy, StoreUnavailable) as error:
                self.note(type(error).__name__, [self.name])
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def until_answered(self, call: Callable[[], object]) -> None:
        """Repeat what does no more when it is done twice: a lease renewed, a job stored under its id."""
        while True:
            try:
                self.insist(call)
            except OutcomeUnknown:
                self.note("OutcomeUnknown", [self.name])
            else:
                return

    # --- working --------------------------------------------------------------------------------------
    def work(self, number: int) -> None:
        """Claim and settle until as many as there are have ended."""
        self.until_answered(lambda: self.store.renew(self.name, "host", b"{}", 3600.0))
        sequence, jobs = 0, list[Job]()
        while True:
            self.note("executed", [job.id for job in jobs])
            sequence += 1
            settlements = self.deferred + [_done(job) for job in jobs]
            jobs = self.exchange(sequence, settlements)
            if not jobs and not self.deferred and self.all_ended(number):
                return

    def exchange(self, sequence: int, settlements: list[Settlement]) -> list[Job]:
        """Settle all we have and claim anew; returns what we hold afterwards."""
        while True:
            try:
                answer = self.insist(
                    lambda: self.store.exchange(
                        self.name, sequence, settlements=settlements, claims=[Claim(QUEUE, BATCH)]
                    )
                )
            except OutcomeUnknown:
                self.note("OutcomeUnknown", [self.name])
                held = self.insist(lambda: self.store.held(self.name))
                if held.sequence == sequence:  # it was done: what we hold now was deferred or claimed in it
                    kept = {(job.id, job.token) for job in held.jobs}
                    self.deferred = [said for said in settlements if (said.id, said.token) in kept]
                    known = {said.id for said in self.deferred}
                    return self.whole([job.id for job in held.jobs if job.id not in known])
            else:
                self.note("stale", list(answer.stale))
                assert not answer.replayed
                self.deferred = [said for said in settlements if said.id in answer.deferred]
                return list(answer.claimed)

    def whole(self, ids: list[str]) -> list[Job]:
        return [job for job in self.insist(lambda: self.store.get(ids)) if job is not None]

    def all_ended(self, number: int) -> bool:
        counts = self.insist(self.store.counts)
        ended: int = sum(queue.states.get(JobState.COMPLETED, 0) for queue in counts.queues)
        if ended < number:
            time.sleep(0.02)
        return ended >= number

    # --- filling --------------------------------------------------------------------------------------
    def fill(self, number: int) -> None:
        """Store jobs, and note each one that was acknowledged."""
        for first in range(0, number, 10):
            ids = [str(uuid5(NAMESPACE_OID, f"{self.name}-{n}")) for n in range(first, first + 10)]
            jobs = [NewJob(id=id_, task="t", payload=b"{}") for id_ in ids]
            self.until_answered(partial(self.store.enqueue, jobs))
            self.note("acknowledged", [job.id for job in jobs])


def _done(job: Job) -> Settlement:
    now = time.time_ns() // 1000
    return Settlement(job.id, job.token, verdict_on(job, Returned(b"1"), now), 0.1, 0.1)


def main() -> None:
    role, url, name, folder, number, busy = sys.argv[1:]
    hand = Hand(url, name, Path(folder), float(busy))
    (hand.fill if role == "fill" else hand.work)(int(number))
    hand.store.close()


if __name__ == "__main__":
    main()
