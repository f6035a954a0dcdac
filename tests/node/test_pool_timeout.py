"""A pool with a timeout, on a real node and in every store: what the job says is what the node does."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from millpond import App, JobFailed, Node, Retry
from tests.stores.places import place


def sleeps(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_a_node_stops_a_job_at_the_timeout_of_its_pool_and_no_other(tmp_path: Path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("images", workers=2, timeout="1s")
    bounded = app.task(queue="images", name="bounded", retry=Retry(attempts=1))(sleeps)
    own = app.task(queue="images", name="own", timeout="1m")(sleeps)
    with Node(app, grace=5):
        patient = own.enqueue(2.0)
        with pytest.raises(JobFailed, match="timeout"):
            bounded.enqueue(600.0).result(timeout=60)
        assert patient.result(timeout=60) == 2.0


@pytest.mark.parametrize("where", ["sqlite", "postgres", "redis"])
def test_every_store_keeps_the_timeout_with_the_job(where: str, tmp_path: Path):
    with place(where, tmp_path) as url:
        app = App(url)
        app.store.migrate()
        task = app.task(queue="images", name="task")(sleeps)
        app.pool("images", timeout="30s")
        found = app.store.get([task.enqueue(1.0).id, task.using(queue="other").enqueue(1.0).id])
        assert [job.options.timeout for job in found if job is not None] == [30.0, 3600.0]
        app.store.close()
