"""The app whose planners are broken in these proofs. Every run leaves a line outside the store."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from millpond import App, Retry, Slot, current_job
from tests.history.evidence import FOLDER

STORE = "MILLPOND_PROOF_STORE"
UNLUCKY = Retry(attempts=1, max_crashes=1000, max_lost=1000)

app = App(os.environ.get(STORE, "memory://"))
app.pool("default", workers=2)


def note(what: str) -> None:
    """Append a line by one write."""
    job = current_job()
    line = json.dumps([what, job.task, job.id, os.getpid(), time.monotonic()]) + "\n"
    path = Path(os.environ[FOLDER]) / "runs"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)


def run(seconds: float) -> None:
    note("begin")
    time.sleep(seconds)
    note("end")


@app.recurring(every=0.5, retry=UNLUCKY)
def quick() -> None:
    """Due twice a second."""
    run(0.0)


@app.recurring(cron="* * * * * *", retry=UNLUCKY, overlap="queue")
def steady() -> None:
    """Due at every full second; one that comes too soon waits."""
    run(0.2)


@app.recurring(every=1, depends_on=[quick], retry=UNLUCKY)
def after() -> None:
    """Wants a success of `quick` since its last run."""
    run(0.0)


@app.recurring(every=1, blocks=[quick, steady], retry=UNLUCKY)
def alone() -> None:
    """Never beside the two."""
    run(0.1)


def work_at_the_dock() -> None:
    """One of three that share two places."""
    run(0.1)


DOCK = tuple(
    app.orchestrator.register(
        work_at_the_dock, name=f"dock{number}", every=1, blocks=[Slot("dock", 2)], retry=UNLUCKY
    )
    for number in range(3)
)
