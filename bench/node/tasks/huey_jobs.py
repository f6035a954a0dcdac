"""Huey on Redis or SQLite (WAL, synchronous FULL), without results. It pops a job before running it."""

import time

import marks
import producing
from huey import RedisHuey, SqliteHuey

if marks.STORE == "redis":
    huey = RedisHuey("bench", url=marks.REDIS_URL, results=False)
else:
    huey = SqliteHuey("bench", filename=marks.SQLITE, results=False)


@huey.task()
def noop(number, enqueued):
    marks.mark(number, enqueued)


@huey.task(retries=3)
def hold(number, enqueued):
    time.sleep(marks.hold(number, enqueued))


if __name__ == "__main__":
    import huey_jobs  # the tasks must bear this name, not __main__

    producing.main(producing.Producer(one=huey_jobs.noop, hold=huey_jobs.hold))
