"""Procrastinate: a pool of ten connections; stalled jobs are retried as its manual shows."""

import asyncio

import marks
import producing
from procrastinate import App, PsycopgConnector

safe = {"update_heartbeat_interval": 2, "stalled_worker_timeout": 10, "concurrency": 4} if marks.SAFE else {}
connector = PsycopgConnector(conninfo=marks.POSTGRES_URL, min_size=10, max_size=10)
app = App(connector=connector, worker_defaults=safe)


@app.task(name="noop")
async def noop(number, enqueued):
    marks.mark(number, enqueued)


@app.task(name="hold", retry=3)
async def hold(number, enqueued):
    await asyncio.sleep(marks.hold(number, enqueued))


if marks.SAFE:

    @app.periodic(cron="* * * * * */5")
    @app.task(queueing_lock="retry_stalled", pass_context=True, name="retry_stalled")
    async def retry_stalled(context, timestamp):
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=10):
            await app.job_manager.retry_job(job)


async def setup():
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def one(number, enqueued):
    await noop.defer_async(number=number, enqueued=enqueued)


async def bulk(pairs):
    await noop.batch_defer_async(*[{"number": number, "enqueued": stamp} for number, stamp in pairs])


async def enqueue_hold(number, enqueued):
    await hold.defer_async(number=number, enqueued=enqueued)


if __name__ == "__main__":
    producing.main(
        producing.Producer(
            one=one,
            hold=enqueue_hold,
            bulk=bulk,
            setup=setup,
            open=connector.open_async,
            close=connector.close_async,
        )
    )
