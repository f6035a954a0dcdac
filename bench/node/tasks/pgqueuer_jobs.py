"""PgQueuer: batches of 200, uvloop, durable tables; its coroutines run in the process that fetches them.

Its own command line does not start with the typer it pulls in, so `worker` is a verb of this file.
"""

import asyncio
import sys
from datetime import timedelta

import asyncpg
import marks
import producing
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

BATCH = 200
opened = {}


def packed(number, enqueued):
    return b"%d,%d" % (number, enqueued)


def unpacked(payload):
    return [int(word) for word in payload.split(b",")]


async def work():
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(marks.POSTGRES_URL)))

    @queue.entrypoint("noop")
    async def noop(job):
        marks.mark(*unpacked(job.payload))

    @queue.entrypoint("hold")
    async def hold(job):
        await asyncio.sleep(marks.hold(*unpacked(job.payload)))

    short = {"heartbeat_timeout": timedelta(seconds=10), "dequeue_timeout": timedelta(seconds=2)}
    await queue.run(**(short if marks.SAFE else {"batch_size": BATCH}))


async def open_connection():
    opened["connection"] = await asyncpg.connect(marks.POSTGRES_URL)
    opened["queries"] = Queries(AsyncpgDriver(opened["connection"]))


async def close():
    await opened["connection"].close()


async def setup():
    await open_connection()
    await opened["queries"].install()
    await close()


async def one(number, enqueued):
    await opened["queries"].enqueue("noop", packed(number, enqueued))


async def bulk(pairs):
    size = len(pairs)
    await opened["queries"].enqueue(["noop"] * size, [packed(*pair) for pair in pairs], [0] * size)


async def enqueue_hold(number, enqueued):
    await opened["queries"].enqueue("hold", packed(number, enqueued))


if __name__ == "__main__":
    uvloop.install()
    if sys.argv[1] == "worker":
        asyncio.run(work())
    else:
        producing.main(
            producing.Producer(
                one=one, hold=enqueue_hold, bulk=bulk, setup=setup, open=open_connection, close=close
            )
        )
