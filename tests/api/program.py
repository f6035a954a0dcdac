"""An app in a module of its own, for the command to import; its store is named by a variable."""

from __future__ import annotations

import os
import time
from pathlib import Path

from millpond import App

app = App(os.environ.get("MILLPOND_TEST_API_STORE", "memory://"))
app.pool("default", workers=(1, 1))


@app.task(name="quick")
def quick(number: int) -> int:
    return number


@app.task(name="hold")
def hold(path: str) -> None:
    """Runs until a file is there."""
    Path(path).with_suffix(".begun").touch()
    while not Path(path).exists():
        time.sleep(0.01)
