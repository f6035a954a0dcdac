"""The real dashboard process, and questions to it over HTTP with the time each took."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "millpond")


class Times(NamedTuple):
    """Of some answers, in seconds."""

    values: tuple[float, ...]

    def part(self, share: float) -> float:
        """A quantile."""
        found = sorted(self.values)
        return found[min(len(found) - 1, int(len(found) * share))]


class Asker:
    """One connection that is kept, as a browser keeps it."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection = http.client.HTTPConnection(address, timeout=60)

    def get(self, path: str) -> Any:
        """The document at a path."""
        self._connection.request("GET", f"/api/v1/{path}")
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {body[:300]!r}")
        return json.loads(body)

    def times(self, path: str, number: int) -> Times:
        """Ask again and again."""
        taken = []
        for _ in range(number):
            began = time.perf_counter()
            self.get(path)
            taken.append(time.perf_counter() - began)
        return Times(tuple(taken))


class Dashboard(NamedTuple):
    """A running one."""

    process: subprocess.Popen[bytes]
    address: str
    admin: str


def environment(folder: Path, url: str) -> dict[str, str]:
    """Variables for our processes: tokens and store of the bench alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MILLPOND_")}
    here = str(Path(__file__).parent)
    return {**kept, "XDG_STATE_HOME": str(folder / "state"), "BENCH_API_STORE": url, "PYTHONPATH": here}


@contextmanager
def dashboard(folder: Path, url: str) -> Iterator[Dashboard]:
    """`millpond dashboard` beside the store, until the block ends."""
    words = (*COMMAND, "dashboard", "--store", url, "--listen", "127.0.0.1:0", "--json")
    with (folder / "dashboard.log").open("ab") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, env=environment(folder, url))
    try:
        said = _document(process)
        tokens = json.loads(Path(said["token_file"]).read_text(encoding="utf-8"))
        address = said["dashboard"].split("//")[1].strip("/")
        yield Dashboard(process, address, tokens["admin"]["token"])
    finally:
        process.kill()
        process.wait()


def _document(process: subprocess.Popen[bytes]) -> Any:
    """What it prints when it serves."""
    assert process.stdout is not None
    text = b""
    for line in process.stdout:
        text += line
        if line.rstrip() == b"}":
            return json.loads(text)
    raise RuntimeError(f"the dashboard ended with {process.wait()} and printed {text!r}")


def questions(asker: Asker) -> dict[str, str]:
    """What people ask, by name; the paths hold ids and cursors of this store."""
    first = asker.get("jobs?limit=50")
    job = first["jobs"][0]
    deep = first["cursor"]
    for _ in range(20):
        deep = asker.get(f"jobs?limit=500&cursor={deep}")["cursor"]
    middle = quote(asker.get(f"jobs?limit=1&cursor={deep}")["jobs"][0]["created_at"])
    return {
        "overview": "overview",
        "list: newest": "jobs?limit=50",
        **{
            f"list: {state}": f"jobs?limit=50&state={state}"
            for state in ("queued", "running", "scheduled", "blocked", "completed", "dead", "cancelled")
        },
        "list: queue": "jobs?limit=50&queue=mail",
        "list: queue with few": "jobs?limit=50&queue=rare",
        "list: task": "jobs?limit=50&task=shop.images.check",
        "list: queue, task, state": "jobs?limit=50&queue=pdf&task=shop.pdf.send&state=dead",
        "list: time": f"jobs?limit=50&created_before={middle}",
        "list: ids": f"jobs?id={job['id']}&id={first['jobs'][9]['id']}",
        "list: deep cursor": f"jobs?limit=50&cursor={deep}",
        "search: nothing matches": "jobs?limit=50&task=nobody.knows.it",
        "search: text": "jobs?limit=50&text=no-such-text-anywhere",
        "job": f"jobs/{job['id']}",
        "queues": "queues",
        "dead letters": "dead?limit=50",
        "dead letters: causes": "dead/causes",
        "statistics: 1 h": "statistics?window=1h",
        "statistics: 24 h": "statistics?window=24h",
        "events": "events/recent",
    }
