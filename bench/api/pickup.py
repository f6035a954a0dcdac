"""A real node beside the API, one job every 20 ms: how soon each begins, alone and before a crowd."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from asking import COMMAND, Dashboard, Times, environment

from millpond.ids import new_id
from millpond.job import JobState, NewJob
from millpond.store.open import open_store

EVERY = 0.02
SETTLE = 60.0  # seconds that the last jobs may take


class Picked(NamedTuple):
    """The jobs of one stretch."""

    times: Times
    failed: int  # that did not complete


class Node:
    """`millpond run` on the queue of these jobs alone."""

    def __init__(self, folder: Path, url: str) -> None:
        self._store = open_store(url)
        with (folder / "node.log").open("ab") as log:
            self._process = subprocess.Popen(
                (*COMMAND, "run", "pickup_app:app", "--queue", "pickup"),
                stdout=log, stderr=log, env=environment(folder, url), cwd=Path(__file__).parent,
            )  # fmt: skip
        self.stretch(1.0)  # until it runs

    def stretch(self, seconds: float) -> Picked:
        """A job every 20 ms for so long."""
        ids, until = [], time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            job = NewJob(id=new_id(), task="begin", queue="pickup", payload=_payload(), fresh=True)
            self._store.enqueue([job])
            ids.append(job.id)
            time.sleep(max(0.0, now + EVERY - time.monotonic()))
        return self._results(ids)

    def _results(self, ids: list[str]) -> Picked:
        until = time.monotonic() + SETTLE
        while True:
            jobs = [job for job in self._store.get(ids) if job is not None]
            ended = [job for job in jobs if job.state is JobState.COMPLETED]
            if len(ended) == len(ids) or time.monotonic() > until:
                taken = tuple(float(json.loads(job.result or b"0")) for job in ended)
                return Picked(Times(taken or (float("inf"),)), len(ids) - len(ended))
            time.sleep(0.1)

    def stop(self) -> None:
        """It drains and leaves."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._store.close()


def _payload() -> bytes:
    return json.dumps({"sent": time.time()}).encode()


class Memory:
    """The most that a process was seen to hold, in bytes."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._process = psutil.Process(pid)
        self._stop = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            try:
                self.most = max(self.most, self._process.memory_info().rss)
            except psutil.NoSuchProcess:
                return

    def stop(self) -> None:
        """Enough seen."""
        self._stop.set()


def crowd(served: Dashboard, seconds: float, clients: int) -> subprocess.Popen[bytes]:
    """Streams, lists, huge bodies and too many clients, in a process of their own."""
    words = (
        str(Path(__file__).with_name("crowd.py")),
        served.address,
        served.admin,
        str(seconds),
        str(clients),
    )
    return subprocess.Popen((sys.executable, *words), stdout=subprocess.PIPE)


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """What the crowd says at its end."""
    out, _ = process.communicate(timeout=120)
    return dict(json.loads(out))


def seconds_to_stop(served: Dashboard) -> float:
    """From SIGTERM to the end of the process, while streams are open."""
    process = crowd(served, 30, 0)
    time.sleep(3)
    began = time.perf_counter()
    os.kill(served.process.pid, signal.SIGTERM)
    served.process.wait(30)
    taken = time.perf_counter() - began
    process.kill()
    process.communicate()
    return taken
