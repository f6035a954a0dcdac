"""The jobs of the live benchmarks: images that hold a worker, mail on an event loop, traced work."""

import asyncio
import os
import time

from millpond import App

app = App(os.environ.get("BENCH_SCALE_STORE", "memory://"))
MOST = int(os.environ.get("BENCH_SCALE_MOST", "16"))
IS_FIXED = "BENCH_SCALE_FIXED" in os.environ  # all workers are there from the start: what the machine can do
app.pool("images", workers=(MOST if IS_FIXED else 1, MOST), max_wait="10s")
app.pool("mail", workers=(1, 2), kind="async", concurrency=20, max_wait="2s")
app.pool("traced", workers=(0, int(os.environ.get("BENCH_SCALE_TRACED", "32"))), max_wait="2s")


@app.task(queue="images", name="resize")
def resize(seconds: float) -> None:
    """Hold a worker for so long."""
    time.sleep(seconds)


@app.task(queue="mail", name="send")
async def send(seconds: float) -> None:
    """Wait for a server for so long."""
    await asyncio.sleep(seconds)


@app.task(queue="traced", name="work")
def work(seconds: float) -> None:
    """Take exactly as long as the trace says."""
    time.sleep(seconds)
