"""A node in one process, by hand: it enqueues, claims, runs and settles until it is told to stop.

`python -m tests.history.hand URL FOLDER LABEL NAP`. It leaves evidence of all it does in FOLDER. When a
file named `stop` is there it enqueues no more, and leaves when nothing in the store is unfinished. It stops
itself like a suspended machine in its execution number NAP, if that is not 0.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from millpond import App, RetryAfter, Snooze, current_job
from millpond.errors import NodeRefused
from millpond.ids import new_id
from millpond.job import ENDS, Job, Settlement
from millpond.job_runner import run
from millpond.settlement import settlement
from millpond.store.open import open_store
from millpond.store.protocol import Claim, Started
from tests.history.entries import Kind
from tests.history.evidence import Evidence
from tests.history.witness import witnessed

HOST = "here"
LEASE = 60.0  # longer than any run: nobody is rescued because he was slow


class Hand:
    """A node incarnation after another, under one label."""

    def __init__(self, url: str, folder: str, label: str, nap: int) -> None:
        self.evidence = Evidence(folder, label)
        self.store = witnessed(open_store(url), self.evidence)
        self.app = App(self.store)
        self.renewed = 0.0
        self.stop = Path(folder) / "stop"
        self.nap, self.enqueued, self.executions = nap, 0, 0
        self.app.task(name="plain")(self.work)
        self.app.task(name="alone", key="one", limit=1)(self.work)

    def work(self, number: int) -> int:
        """The function of every task here."""
        with self.evidence.execution():
            self.executions += 1
            if self.executions == self.nap:
                with self.evidence.fault(Kind.FROZEN, pid=os.getpid(), node=self.evidence.node):
                    os.kill(os.getpid(), signal.SIGSTOP)
            if number % 7 == 3 and current_job().attempt == 1:
                raise RetryAfter(0)
            if number % 11 == 5 and current_job().token == 1:
                raise Snooze(0)
            self.evidence.effect()
            return number

    def live(self) -> None:
        """Until told to stop; refused as one incarnation, it goes on as the next."""
        while True:
            try:
                self.live_once()
                return
            except NodeRefused:
                continue

    def live_once(self) -> None:
        self.node, self.sequence, self.renewed = f"{HOST}-{os.getpid()}-{new_id()}", 0, 0.0
        done: list[Settlement] = []
        while True:
            self.keep_the_lease()
            self.store.rescue(self.node, self.gone())
            stopping = self.stop.exists()
            if not stopping:
                self.enqueue()
            jobs = self.exchange(done)
            done = [self.executed(job) for job in jobs]
            if stopping and not jobs and self.all_ended():
                return

    def enqueue(self) -> None:
        for _ in range(3):
            self.enqueued += 1
            task = self.app.get_task("alone" if self.enqueued % 5 == 2 else "plain")
            task.enqueue(self.enqueued)

    def keep_the_lease(self) -> None:
        if time.monotonic() - self.renewed > LEASE / 10:
            self.renewed = time.monotonic()
            info = msgspec.json.encode({"pid": os.getpid()})
            self.store.renew(self.node, HOST, info, LEASE)

    def exchange(self, done: list[Settlement]) -> list[Job]:
        """Settle, claim, and say what has begun; what is refused as started is not begun."""
        self.sequence += 2
        claims = [Claim("default", 3)]
        answer = self.store.exchange(self.node, self.sequence, settlements=done, claims=claims)
        if not answer.claimed:
            return []
        started = [Started(job.id, job.token) for job in answer.claimed]
        told = self.store.exchange(self.node, self.sequence + 1, started=started)
        return [job for job in answer.claimed if job.id not in told.stale]

    def executed(self, job: Job) -> Settlement:
        began = time.time_ns() // 1000
        outcome = run(self.app, job)
        now = time.time_ns() // 1000
        return settlement(job, outcome, self.node, now=now, started_at=began, worker=os.getpid())

    def gone(self) -> list[str]:
        """Nodes here whose process is no more; and those that sleep, as if their lease had run out."""
        nodes = [(node.id, msgspec.json.decode(node.info)["pid"]) for node in self.store.counts().nodes]
        return [node for node, pid in nodes if not _is_awake(pid)]

    def all_ended(self) -> bool:
        return all(
            state in ENDS or not number
            for queue in self.store.counts().queues
            for state, number in queue.states.items()
        )


def _is_awake(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "T"


def main() -> None:
    url, folder, label, nap = sys.argv[1:]
    hand = Hand(url, folder, label, int(nap))
    hand.live()
    hand.store.close()


if __name__ == "__main__":
    main()
