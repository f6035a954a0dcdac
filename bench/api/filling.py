"""A store with many jobs in every state, queue and task, put there by the verbs that always do.

A part of the jobs is enqueued, some of it is claimed and ends in one way or another, some is cancelled, and
the next part follows: so every state is found among the old and among the new.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from millpond.ids import new_id
from millpond.job import Failure, Job, JobOptions, NewJob, Outcome, Raised, Returned, Settlement
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim, Filter, Store

QUEUES = ("mail", "images", "exports", "webhooks", "pdf", "search", "billing", "imports")
TASKS = tuple(f"shop.{queue}.{what}" for queue in QUEUES for what in ("make", "check", "send"))
PART = 2000
CLAIMED = 0.8  # of those that may run
FAILURES = (
    ("ValueError", "no such file: a{}.png"),
    ("TimeoutError", "no answer in 30 s"),
    ("KeyError", "'id{}'"),
)
PAYLOAD = b'{"path":"uploads/2026/11/picture-000123.png","width":200,"customer":4711}'
OPTIONS = JobOptions()


def fill(store: Store, number: int) -> float:
    """So many jobs; returns the seconds it took."""
    chance, began = random.Random(7), time.perf_counter()
    node = Filler(store, chance)
    store.enqueue([_job("rare.task", "rare"), *(_job("shop.rare", "rare") for _ in range(9))])
    for part in _parts(number - 10):
        jobs = [_mixed(place, chance) for place in range(part)]
        store.enqueue(jobs)
        store.enqueue(
            [NewJob(id=new_id(), task=TASKS[0], queue="mail", payload=b"{}", depends_on=(jobs[0].id,))]
        )
        store.cancel(Filter(ids=tuple(job.id for job in jobs[1::25])))
        node.work(part)
    node.hold(50)
    return time.perf_counter() - began


def _parts(number: int) -> Iterator[int]:
    while number > 0:
        yield min(number, PART) - 1
        number -= PART


def _job(task: str, queue: str, delay: float = 0.0) -> NewJob:
    return NewJob(
        id=new_id(), task=task, queue=queue, payload=PAYLOAD, options=OPTIONS, delay=delay, fresh=True
    )


def _mixed(place: int, chance: random.Random) -> NewJob:
    queue = QUEUES[min(int(chance.expovariate(0.5)), len(QUEUES) - 1)]
    task = f"shop.{queue}.{chance.choice(('make', 'make', 'check', 'send'))}"
    return _job(task, queue, 86_400.0 if place % 40 == 0 else 0.0)


class Filler:
    """Stands for a node: it takes jobs and says how they ended."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store, self._chance, self._sequence = store, chance, 0
        store.renew("filler", "bench", lease=3600.0)

    def work(self, part: int) -> None:
        """Claim some of what is in line and end it."""
        jobs = self._exchange([], int(part * CLAIMED))
        self._exchange(jobs, 0)

    def hold(self, number: int) -> None:
        """Keep some, as if they ran."""
        self._exchange([], number)

    def _exchange(self, jobs: list[Job], wanted: int) -> list[Job]:
        self._sequence += 1
        each = wanted // len(QUEUES)
        answer = self._store.exchange(
            "filler",
            self._sequence,
            settlements=[self._end(job) for job in jobs],
            claims=[Claim(queue, max(1, each)) for queue in QUEUES] if wanted else [],
        )
        return list(answer.claimed)

    def _end(self, job: Job) -> Settlement:
        outcome: Outcome = Returned(b'"thumbnails/picture-000123.png"')
        if self._chance.random() < 0.06:
            error, message = self._chance.choice(FAILURES)
            failure = Failure(error, message.format(self._chance.randint(1, 999)), "Traceback: ...")
            outcome = Raised(failure, final=True)
        now = time.time_ns() // 1000
        return Settlement(job.id, job.token, settle(job, outcome, now), self._chance.random(), 0.2)
