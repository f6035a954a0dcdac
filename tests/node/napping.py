"""An app as programs have it, in a module of its own: its workers come from a template that imported it."""

from __future__ import annotations

import os
import time

from millpond import App

app = App(os.environ.get("MILLPOND_TEST_NODE_STORE", "memory://"))
app.pool("default", workers=(1, 40), max_wait="4s")


@app.task(name="nap")
def nap(seconds: float) -> None:
    """Share nothing."""
    time.sleep(seconds)
