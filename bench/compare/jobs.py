"""The app and the no-op work of a comparison: nothing but public interface, which both commits must have.

A job leaves the instant of its beginning (CLOCK_MONOTONIC, 8 bytes) in a file in memory, so that neither
commit pays for a counter in its store.
"""

import os
import time

from millpond import App

MARKS = os.environ.get("COMPARE_MARKS", "")
app = App(os.environ.get("COMPARE_STORE", "memory://"))
_file: int | None = None


def nothing() -> None:
    """The task of the pool."""


@app.task(name="stamp")
def stamp() -> None:
    """The job of the stores."""
    global _file
    began = time.monotonic_ns()
    if _file is None:
        _file = os.open(MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_file, began.to_bytes(8, "little"))
