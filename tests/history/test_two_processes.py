"""Two real processes on one SQLite file, one of which comes to harm: what they leave is judged clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millpond.store.open import open_store
from millpond.store.protocol import Filter, Retention
from tests.history.entries import Settled
from tests.history.evidence import Evidence, read
from tests.history.judge import judge
from tests.history.rules import Bug
from tests.history.witness import finals

LONG = 50.0  # seconds after which something is stuck


class Pair:
    """Two hands, their store, and what was seen of them."""

    def __init__(self, folder: Path, nap: int = 0) -> None:
        self.url = f"sqlite:///{folder / 'jobs.db'}"
        self.folder = folder / "evidence"
        self.folder.mkdir()
        self.evidence = Evidence(self.folder)
        self.store = open_store(self.url)
        self.store.migrate()
        self.victim, self.other = self.start("victim", nap), self.start("other", 0)

    def start(self, label: str, nap: int) -> subprocess.Popen[bytes]:
        words = [self.url, str(self.folder), label, str(nap)]
        return subprocess.Popen([sys.executable, "-m", "tests.history.hand", *words])

    def lines_of(self, process: subprocess.Popen[bytes]) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.folder.glob(f"{process.pid}-*"))

    def until(self, happened) -> None:
        """Wait for what the processes do by themselves."""
        limit = time.monotonic() + LONG
        while not happened():
            assert time.monotonic() < limit
            assert self.other.poll() is None
            time.sleep(0.001)

    def finish(self) -> None:
        self.until(lambda: self.lines_of(self.other) >= 200)
        (self.folder / "stop").touch()
        assert self.other.wait(LONG) == 0

    def knows(self, process: subprocess.Popen[bytes]) -> bool:
        """Has the store a node of this process?"""
        return any(f"-{process.pid}-" in node.id for node in self.store.counts().nodes)

    def judged(self) -> list[str]:
        return [str(found) for found in judge(read(self.folder), finals(self.store))]

    def clean_up(self) -> None:
        for process in (self.victim, self.other):
            if process.poll() is None:
                process.kill()
            process.wait()
        self.store.close()


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    pair = Pair(tmp_path, **getattr(request, "param", {}))
    yield pair
    pair.clean_up()


@pytest.mark.parametrize("lines", [1, 20, 200, 500])
def test_a_process_is_killed_at_some_point_and_nothing_is_wrong(pair: Pair, lines: int):
    pair.until(lambda: pair.lines_of(pair.victim) >= lines)
    pair.evidence.kill(pair.victim.pid, node="victim")
    assert pair.victim.wait(LONG) == -signal.SIGKILL
    pair.finish()
    assert len(finals(pair.store)) >= 10
    assert pair.judged() == []


def test_a_job_taken_out_of_a_real_store_is_missed(pair: Pair):
    pair.until(lambda: pair.lines_of(pair.victim) >= 100)
    pair.evidence.kill(pair.victim.pid, node="victim")
    pair.victim.wait(LONG)
    pair.finish()
    victim = max(finals(pair.store))
    assert pair.store.prune(Retention(), Filter(ids=(victim,))) == 1
    (found,) = judge(read(pair.folder), finals(pair.store))
    assert (found.bug, found.job) == (Bug.LOST, victim)


@pytest.mark.parametrize("pair", [{"nap": 10}], indirect=True)
def test_a_process_that_slept_while_it_was_rescued_wakes_up_refused(pair: Pair):
    _, status = os.waitpid(pair.victim.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    pair.until(lambda: not pair.knows(pair.victim))  # it was rescued
    os.kill(pair.victim.pid, signal.SIGCONT)
    pair.until(
        lambda: any(isinstance(line, Settled) and line.accepted is False for line in read(pair.folder))
    )
    pair.finish()
    assert pair.victim.wait(LONG) == 0
    assert pair.judged() == []
