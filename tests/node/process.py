"""Nodes as processes of their own, to be killed, stopped and started again.

Run as a script it is such a node: `python -m tests.node.process URL LEASE`; its jobs write to files, so
that what really happened can be seen from outside.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from millpond import App, Node, Retry, current_job
from millpond.job import Priority

SIGN = "MILLPOND_TEST_NODE_DRAINS"  # a file that is made when the node begins to drain
app = App(os.environ.get("MILLPOND_TEST_NODE_STORE", "memory://"))
app.pool("default", workers=(1, 2))


@app.task(retry=Retry(first=0))
def mark(path: str, wait_for: str = "") -> int:
    """Leave a line for each time it begins; end when `wait_for` exists."""
    job = current_job()
    with open(path, "a") as file:
        file.write(f"{job.token} {os.getpid()}\n")
    while wait_for and not os.path.exists(wait_for):
        time.sleep(0.005)
    return job.token


@app.task(key="{name}", limit=1, retry=Retry(first=0))
def guarded(name: str, path: str, wait_for: str) -> int:
    """The same, one at a time for each name."""
    return mark(path, wait_for)


@app.task(priority=Priority.NORMAL)
def quick(number: int) -> int:
    """Does nothing."""
    return number


@contextmanager
def node_process(
    url: str, lease: float = 2.0, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A node on this store; killed in the end if it still runs."""
    environment = {**os.environ, "MILLPOND_TEST_NODE_STORE": url, **(variables or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.node.process", str(lease)],
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait()


def main() -> None:
    """Be a node until SIGTERM."""
    from tests.node import process  # the module under the name that its workers import

    node = Node(process.app, lease=float(sys.argv[1]))

    def leave(*_: object) -> None:
        node.drain(10.0)
        if SIGN in os.environ:
            Path(os.environ[SIGN]).touch()

    signal.signal(signal.SIGTERM, leave)
    node.start()
    node.wait()


if __name__ == "__main__":
    main()
