"""Celery: prefork 2, prefetch 128 a process, no results, acknowledged after the run."""

import time

import marks
import producing
from celery import Celery

app = Celery("celery_jobs", broker=marks.REDIS_URL)
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1 if marks.SAFE else 128,
    broker_transport_options={"visibility_timeout": 30} if marks.SAFE else {},
)


@app.task(name="noop")
def noop(number, enqueued):
    marks.mark(number, enqueued)


@app.task(name="hold")
def hold(number, enqueued):
    time.sleep(marks.hold(number, enqueued))


if __name__ == "__main__":
    producing.main(producing.Producer(one=noop.delay, hold=hold.delay))
