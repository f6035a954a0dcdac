"""SAQ: concurrency 50 in each of two processes, uvloop, results not kept."""

import asyncio

import marks
import producing
import uvloop
from saq import Queue

uvloop.install()
queue = Queue.from_url(marks.REDIS_URL)


async def noop(context, *, number, enqueued):
    marks.mark(number, enqueued)


async def hold(context, *, number, enqueued):
    await asyncio.sleep(marks.hold(number, enqueued))


async def one(number, enqueued):
    await queue.enqueue("noop", number=number, enqueued=enqueued, ttl=-1)


async def enqueue_hold(number, enqueued):
    keywords = {"retries": 3, "heartbeat": 10, "timeout": 300} if marks.SAFE else {}
    await queue.enqueue("hold", number=number, enqueued=enqueued, **keywords)


settings = {"queue": queue, "functions": [noop, hold], "concurrency": 50}
if marks.SAFE:
    settings["timers"] = {"sweep": 5}

if __name__ == "__main__":
    producing.main(producing.Producer(one=one, hold=enqueue_hold, open=queue.connect, close=queue.disconnect))
