"""How much memory a job takes in Redis, queued and completed.

Run by `python -m bench.stores.redis_memory [JOBS]`.

Starts a server of its own. Measured is the difference of `used_memory`, divided by the number of jobs. Jobs
are kept in buckets of about a minute, and Redis packs small keys: a few jobs in a bucket take less each.
"""

from __future__ import annotations

import sys

from millpond.job import NewJob, Returned, Settlement, Slot
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim
from millpond.store.redis.store import RedisStore
from tests.servers.redis import Redis, program

STEP = 1000
MINUTE = 65_536_000  # microseconds: the jobs of one bucket
PAYLOAD = b'{"a":[123456],"k":{"to":"someone@example.org","n":1}}'  # 53 bytes


def used(server: Redis) -> int:
    """Bytes that the server says it uses."""
    with server.client() as client:
        return int(client.info("memory")["used_memory"])


def job_id(store: RedisStore, number: int) -> str:
    """An id of version 7 that was made at the store's time."""
    stamp = f"{store.clock.now() // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{number % 4096:03x}-8000-{number:012x}"


def fill(store: RedisStore, number: int, each: int, *, slots: bool = False) -> None:
    """Store jobs, so many in each minute; with a key of its own for each if asked."""
    step = min(STEP, each)
    for first in range(0, number, step):
        names = range(first, min(first + step, number))
        jobs = [
            NewJob(
                id=job_id(store, name),
                task="shop.mail.send",
                payload=PAYLOAD,
                slots=(Slot(f"shop.mail.send:{name}", 1),) if slots else (),
            )
            for name in names
        ]
        store.enqueue(jobs)
        if (first + step) % each == 0:
            store.clock.shift += MINUTE


def drain(store: RedisStore, each: int) -> None:
    """Run every job, with a result of a few bytes; so many in each minute."""
    sequence, ran, done = 0, 0, ()
    while True:
        sequence += 1
        store.renew("n1", "here", lease=3600)
        claims = [Claim("default", min(STEP, each))]
        answer = store.exchange("n1", sequence, settlements=done, claims=claims)
        if not answer.claimed:
            return
        now = store.clock.now()
        done = tuple(
            Settlement(job.id, job.token, settle(job, Returned(b'"sent"'), now)) for job in answer.claimed
        )
        ran += len(done)
        if ran % each == 0:
            store.clock.shift += MINUTE


def measure(number: int, each: int, *, slots: bool) -> tuple[float, float]:
    """Bytes a queued and a completed job."""
    server = Redis(program("redis-server", "valkey-server"))
    store = RedisStore(server.url)
    store.migrate()
    store.clock.freeze()
    store.renew("n1", "here", lease=3600)
    before = used(server)
    fill(store, number, each, slots=slots)
    queued = used(server)
    drain(store, each)
    ended = used(server)
    store.close()
    server.server.remove()
    return (queued - before) / number, (ended - before) / number


def main() -> None:
    """Print a line for each sort of job."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for jobs, each, slots in (
        (number, number, False),
        (number, number, True),
        (number, 600, False),
        (number, 60, False),
        (number // 20, 1, False),
    ):
        queued, ended = measure(jobs, each, slots=slots)
        what = "with a key of its own" if slots else "plain"
        print(
            f"{jobs:,} jobs, {each:,} a minute, {what}: {queued:,.0f} bytes queued, {ended:,.0f} completed",
            flush=True,
        )


if __name__ == "__main__":
    main()
