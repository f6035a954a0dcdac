"""A rolling deploy on real processes: nodes of an old version are exchanged one by one under load."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from millpond import App
from millpond.job import ENDS, JobState
from tests.node import versions
from tests.node.waiting import all_ended, until
from tests.stores.places import place

NODES = 2
EACH = 10


@contextmanager
def fleet(url: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Nodes of version 1; all that run in the end are stopped."""
    nodes = [versions.start(1, url) for _ in range(NODES)]
    try:
        yield nodes
    finally:
        for node in nodes:
            node.kill()
            node.wait()


def enqueue(old: App, new: App, names: str) -> list[Any]:
    """Load, as producers of both versions make it."""
    calls = {"same": (old, 1), "old_name": (old, 1), "removed": (old, 1), "weigh": (old, 1)}
    calls |= {"added": (new, 1), "new_name": (new, 1)}
    found: list[Any] = []
    for name in names.split():
        app, number = calls[name]
        found += app.get_task(name).enqueue_many([(number,)] * EACH)
    return found


def live(app: App, number: int) -> bool:
    return sum(node.lease_left > 0 and not node.sealed for node in app.store.counts().nodes) == number


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_a_rolling_deploy_charges_no_job_kills_none_and_opens_no_breaker(store: str, tmp_path: Path) -> None:
    """Jobs of either version run on nodes that can run them, and are charged for nothing else."""
    with place(store, tmp_path) as url:
        old, new = versions.version(1, url), versions.version(2, url)
        old.store.migrate()
        with fleet(url) as nodes:
            until(lambda: live(old, NODES), "the old nodes")
            handles = enqueue(old, new, "same old_name removed weigh added new_name")
            until(lambda: all(handle.job().state in ENDS for handle in handles[: 4 * EACH]), "the old jobs")
            exchange(nodes, url, new, handles, old)
            jobs = all_ended(handles)
            until(lambda: new.orchestrator.status_of("tick").last_success_at, "a tick")
            status = new.orchestrator.status_of("tick")
        assert {job.state for job in jobs} == {JobState.COMPLETED}
        assert [(job.attempt, job.errors, job.crashes, job.lost) for job in jobs] == [(1, 0, 0, 0)] * len(
            jobs
        )
        assert (status.breaker, status.consecutive_failures) == ("closed", 0)
        old.store.close()
        new.store.close()


def exchange(nodes: list[subprocess.Popen[bytes]], url: str, new: App, handles: list[Any], old: App) -> None:
    """One node after the other, with new load beside it."""
    for place_of in range(NODES):
        nodes.append(versions.start(2, url))
        until(lambda: live(new, NODES + 1), "the new node")
        names = "same added new_name old_name" + (" removed weigh" if place_of == 0 else "")
        handles += enqueue(old, new, names)
        handles += new.get_task("weigh").enqueue_many([(3, "kg")] * EACH)
        removed = [handle for handle in handles if handle.job().task == "removed"]
        all_ended(removed)  # what only the old version has must be done before the old version is gone
        nodes[place_of].send_signal(signal.SIGTERM)
        assert nodes[place_of].wait(30) is not None
        until(lambda: live(new, NODES), "the old node's lease to be given up")
