"""Two versions of one app, each a node in a process of its own: `python -m tests.node.versions VERSION`.

Version 2 has a new task, a renamed one, one whose signature was changed, a new recurring one, and one less.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from millpond import App, Node, Retry

STORE = "MILLPOND_TEST_NODE_STORE"
ONCE = Retry(attempts=1)


def same(number: int) -> int:
    """In both versions."""
    return number


def weigh_old(grams: int) -> str:
    return f"{grams} g"


def weigh_new(grams: int, unit: str) -> str:
    return f"{grams} {unit}"


def with_unit(arguments: dict[str, Any]) -> dict[str, Any]:
    """What version 2 makes of the arguments that version 1 stored."""
    return {**arguments, "unit": "g"}


def tick() -> None:
    """The new recurring task."""


def version(number: int, url: str) -> App:
    """The app as one version of the code has it."""
    app = App(url)
    app.pool("default", workers=(1, 1))
    app.task(name="same", retry=ONCE)(same)
    if number == 1:
        app.task(name="weigh", retry=ONCE)(weigh_old)
        app.task(name="old_name", retry=ONCE)(same)
        app.task(name="removed", retry=ONCE)(same)
    else:
        app.task(name="weigh", retry=ONCE, upgrade=with_unit)(weigh_new)
        app.task(name="new_name", retry=ONCE, aliases=["old_name"])(same)
        app.task(name="added", retry=ONCE)(same)
        app.recurring(every=0.2, name="tick", max_failures=1)(tick)
    return app


def start(number: int, url: str) -> subprocess.Popen[bytes]:
    """A node of that version."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.node.versions", str(number)],
        env={**os.environ, STORE: url},
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
    )


def main() -> None:
    """Be a node until SIGTERM."""
    app = version(int(sys.argv[1]), os.environ[STORE])
    node = Node(app, lease=5)
    signal.signal(signal.SIGTERM, lambda *_: node.drain(10.0))
    node.start()
    node.wait()


if __name__ == "__main__":
    main()
