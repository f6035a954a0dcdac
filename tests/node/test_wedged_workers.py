"""A worker of a node that stands still between two jobs: the jobs it was given run, on a real node."""

from __future__ import annotations

from pathlib import Path

import pytest

from millpond import App, Node
from tests.pool import wedges

LONG = 120.0


def answer(number: int) -> int:
    return number


def leave_in_a_thread(how: str) -> None:
    wedges.in_a_thread_left_behind(how)


@pytest.mark.parametrize("how", ["spins in C", "keeps the interpreter's lock", "is stopped"])
def test_jobs_behind_a_thread_that_a_job_left_behind_run_in_another_worker(tmp_path: Path, how: str) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", workers=1)
    left = app.task(name="left")(leave_in_a_thread)
    quick = app.task(name="quick", timeout="3s")(answer)
    with Node(app, grace=5):
        left.enqueue(how).result(timeout=LONG)
        handles = [quick.enqueue(number) for number in range(6)]
        assert [handle.result(timeout=LONG) for handle in handles] == list(range(6))
