"""Millpond's jobs with a key: at most one of a key at a time, each a sleep that ends with a mark.

A mark here has the handler's own beginning and end, so that two of a key at once would show.
"""

import os
import time

import marks

from millpond import App

URLS = {"redis": marks.REDIS_URL, "postgres": marks.POSTGRES_URL}
SLEEP = 0.02
app = App(URLS[marks.STORE])
app.pool("default", workers=int(os.environ["BENCH_WORKERS"]))


@app.task(name="keyed", key="{key}", limit=1)
def keyed(number: int, key: int) -> None:
    began = marks.now()
    time.sleep(SLEEP)
    marks.mark(number, began)
