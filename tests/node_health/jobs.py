"""An app for a real node; its workers import it."""

from __future__ import annotations

from millpond import App

app = App("memory://")


@app.task(queue="sums")
def add(a: int, b: int) -> int:
    return a + b
