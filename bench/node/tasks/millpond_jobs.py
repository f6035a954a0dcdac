"""Millpond with its defaults: plain functions in worker processes, every end settled durably."""

import time

import marks
import producing

from millpond import App

URLS = {"redis": marks.REDIS_URL, "postgres": marks.POSTGRES_URL, "sqlite": f"sqlite:///{marks.SQLITE}"}
app = App(URLS[marks.STORE])


@app.task(name="noop")
def noop(number: int, enqueued: int) -> None:
    marks.mark(number, enqueued)


@app.task(name="hold")
def hold(number: int, enqueued: int) -> None:
    time.sleep(marks.hold(number, enqueued))


@app.task(name="brief")
def brief(number: int, enqueued: int) -> None:
    marks.mark(number, enqueued)
    time.sleep(marks.BRIEF)


if __name__ == "__main__":
    producing.main(
        producing.Producer(
            one=noop.enqueue,
            hold=hold.enqueue,
            bulk=noop.enqueue_many,
            setup=app.store.migrate,
            close=app.store.close,
        )
    )
