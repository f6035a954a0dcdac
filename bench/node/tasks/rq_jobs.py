"""RQ: two workers, results not kept. A killed job is retried, which RQ does only if asked."""

import time

import marks
import producing
from redis import Redis
from rq import Queue, Retry

queue = Queue("bench", connection=Redis.from_url(marks.REDIS_URL))


def noop(number, enqueued):
    marks.mark(number, enqueued)


def hold(number, enqueued):
    time.sleep(marks.hold(number, enqueued))


def bulk(pairs):
    import rq_jobs

    queue.enqueue_many([Queue.prepare_data(rq_jobs.noop, args=pair, result_ttl=0) for pair in pairs])


def one(number, enqueued):
    import rq_jobs

    queue.enqueue(rq_jobs.noop, number, enqueued, result_ttl=0)


def enqueue_hold(number, enqueued):
    import rq_jobs

    queue.enqueue(rq_jobs.hold, number, enqueued, retry=Retry(max=3))


if __name__ == "__main__":
    producing.main(producing.Producer(one=one, hold=enqueue_hold, bulk=bulk))
