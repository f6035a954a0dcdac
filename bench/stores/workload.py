"""What is measured: enqueueing one by one and in bulk, and claiming and settling in batches of 100.

Each part takes a store and a size and returns jobs a second. Nothing here knows which store it is.
"""

import time
from collections.abc import Iterator

from millpond.ids import new_id
from millpond.job import Job, JobOptions, NewJob, Returned, Settlement, Slot
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim, Store

BATCH = 100
BULK = 1000
PAYLOAD = b'{"path":"uploads/2026/11/picture-000123.png","width":200}'
RESULT = b'"thumbnails/picture-000123.png"'


def new_jobs(number: int, **options: object) -> list[NewJob]:
    """Jobs as an app makes them: a small payload, default options."""
    default = JobOptions()
    return [
        NewJob(id=new_id(), task="app.resize", payload=PAYLOAD, options=default, fresh=True, **options)  # type: ignore[arg-type]
        for _ in range(number)
    ]


def one_by_one(store: Store, number: int) -> float:
    """Durable enqueues, each a call of its own."""
    jobs = new_jobs(number)
    begin = time.perf_counter()
    for job in jobs:
        store.enqueue([job])
    return number / (time.perf_counter() - begin)


def bulk(store: Store, number: int) -> float:
    """Enqueues of a thousand jobs a call."""
    jobs = new_jobs(number)
    begin = time.perf_counter()
    for start in range(0, number, BULK):
        store.enqueue(jobs[start : start + BULK])
    return number / (time.perf_counter() - begin)


def drain(store: Store, number: int, node: str = "bench") -> float:
    """Claim and settle so many jobs, a hundred to an exchange, as a node does."""
    store.renew(node, "bench")
    begin, done = time.perf_counter(), 0
    for claimed in exchanges(store, node):
        done += len(claimed)
        if done >= number:
            break
    return done / (time.perf_counter() - begin)


def exchanges(store: Store, node: str) -> Iterator[tuple[Job, ...]]:
    """Exchange after exchange, each settling what the one before claimed."""
    settlements: list[Settlement] = []
    for sequence in range(time.time_ns(), time.time_ns() + 10**9):
        answer = store.exchange(node, sequence, settlements=settlements, claims=[Claim("default", BATCH)])
        if answer.stale:
            raise RuntimeError(f"stale settlements: {answer.stale}")
        now = time.time_ns() // 1000
        settlements = [
            Settlement(job.id, job.token, settle(job, Returned(RESULT), now), 0.012, 0.003)
            for job in answer.claimed
        ]
        yield answer.claimed
        if not answer.claimed:
            return


def blocked_in_front(store: Store, blocked: int, free: int) -> float:
    """Many jobs of one key, of which one may run, in front of others: the rate of the others."""
    key = (Slot("one-at-a-time", 1),)
    for start in range(0, blocked, BULK):
        store.enqueue(new_jobs(min(BULK, blocked - start), slots=key))
    for start in range(0, free, BULK):
        store.enqueue(new_jobs(min(BULK, free - start)))
    return drain(store, free)
