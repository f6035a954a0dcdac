"""The app of the node that is measured beside the API: its task says when it began."""

from __future__ import annotations

import os
import time

from millpond import App

app = App(os.environ.get("BENCH_API_STORE", "memory://"))
app.pool("pickup", workers=(1, 1))


@app.task(name="begin", queue="pickup")
def begin(sent: float) -> float:
    """How long it took from the call to here, in seconds."""
    return time.time() - sent
