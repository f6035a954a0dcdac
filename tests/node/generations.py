"""Nodes and producers of two versions of the schema, each a process: `python -m tests.node.generations ...`.

`node older|newer` is a node until SIGTERM. `producer older|newer LEDGER RATE` enqueues so many jobs a second
until SIGTERM, and puts down in the ledger, for each call, the job and when the call began and returned. One
that fails ends it with another exit code than 0.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from millpond import App, Node, Retry
from tests.stores.schemas import know_older

STORE = "MILLPOND_TEST_NODE_STORE"
GENERATION = "MILLPOND_TEST_NODE_GENERATION"
ROOT = Path(__file__).parents[2]

if os.environ.get(GENERATION) == "older":
    know_older()
app = App(os.environ.get(STORE, "memory://"))
app.pool("default", workers=(1, 1))


@app.task(retry=Retry(attempts=1))
def quick(number: int) -> int:
    """Does nothing."""
    return number


class Call(NamedTuple):
    """One enqueue, as its producer saw it; seconds since 1970."""

    id: str
    began: float
    ended: float


class Process:
    """A node or a producer that was started."""

    def __init__(self, role: str, generation: str, url: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.node.generations", role, *arguments],
            env={**os.environ, STORE: url, GENERATION: generation},
            cwd=ROOT,
        )

    def stop(self) -> None:
        """Ask it to leave; it must do so in good order."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(60) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def processes() -> Iterator[list[Process]]:
    """Those that still run in the end are killed."""
    made: list[Process] = []
    try:
        yield made
    finally:
        for process in made:
            process.kill()


def calls(ledger: Path) -> list[Call]:
    """What a producer has put down."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    parts = [line.split() for line in lines if line.endswith(".")]  # the last one may be half written
    return [Call(job, float(began), float(ended)) for job, began, ended, _ in parts]


def produce(ledger: Path, rate: float, stop: threading.Event) -> None:
    """Enqueue in step with the clock."""
    begin, number = time.monotonic(), 0
    with ledger.open("a") as file:
        while not stop.wait(max(0.0, begin + number / rate - time.monotonic())):
            began = time.time()
            job = quick.enqueue(number).id
            file.write(f"{job} {began} {time.time()} .\n")
            file.flush()
            number += 1


def main() -> None:
    """Be one of them until SIGTERM."""
    from tests.node import generations  # the module under the name that its workers import

    role, *arguments = sys.argv[1:]
    stop = threading.Event()
    if role == "node":
        node = Node(generations.app, lease=5)
        signal.signal(signal.SIGTERM, lambda *_: node.drain(20.0))
        node.start()
        node.wait()
    else:
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        generations.produce(Path(arguments[0]), float(arguments[1]), stop)


if __name__ == "__main__":
    main()
