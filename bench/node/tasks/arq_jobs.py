"""arq: 200 jobs at once, polling every 5 ms, results not kept, uvloop."""

import asyncio

import marks
import producing
import uvloop
from arq import create_pool
from arq.connections import RedisSettings

uvloop.install()
place = RedisSettings.from_dsn(marks.REDIS_URL)


async def noop(context, number, enqueued):
    marks.mark(number, enqueued)


async def hold(context, number, enqueued):
    await asyncio.sleep(marks.hold(number, enqueued))


class WorkerSettings:
    functions = (noop, hold)
    redis_settings = place
    max_jobs = 200
    keep_result = 0
    poll_delay = 0.005
    log_results = False
    job_timeout = 20 if marks.SAFE else 300  # a killed job comes back only after this


quiet = {"version": 1, "disable_existing_loggers": False, "loggers": {"arq": {"level": "WARNING"}}}
opened = {}


async def open_pool():
    opened["pool"] = await create_pool(place)


async def one(number, enqueued):
    await opened["pool"].enqueue_job("noop", number, enqueued)


async def enqueue_hold(number, enqueued):
    await opened["pool"].enqueue_job("hold", number, enqueued)


if __name__ == "__main__":
    producing.main(producing.Producer(one=one, hold=enqueue_hold, open=open_pool))
