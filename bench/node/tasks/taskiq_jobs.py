"""taskiq-redis on a stream: reads of 200, acknowledged after the run, uvloop."""

import asyncio

import marks
import producing
from taskiq_redis import RedisStreamBroker

safe = {"idle_timeout": 15_000, "unacknowledged_lock_timeout": 5} if marks.SAFE else {}
broker = RedisStreamBroker(marks.REDIS_URL, xread_count=200, **safe)


@broker.task(task_name="noop")
async def noop(number, enqueued):
    marks.mark(number, enqueued)


@broker.task(task_name="hold")
async def hold(number, enqueued):
    await asyncio.sleep(marks.hold(number, enqueued))


async def one(number, enqueued):
    await noop.kiq(number, enqueued)


async def enqueue_hold(number, enqueued):
    await hold.kiq(number, enqueued)


if __name__ == "__main__":
    import uvloop

    uvloop.install()
    producing.main(producing.Producer(one=one, hold=enqueue_hold, open=broker.startup, close=broker.shutdown))
