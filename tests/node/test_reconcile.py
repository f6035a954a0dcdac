"""What a node has and what its store believes it has: where the two differ, neither stays so for ever."""

from __future__ import annotations

import os
import time

import psycopg
import pytest

from millpond import App, Retry
from millpond.job import JobState
from millpond.node.jobs import reconcile
from tests.node.past import RedisPast, store_with_a_past
from tests.node.test_leases import alive, lines
from tests.node.waiting import all_ended, ended, until
from tests.stores.places import STORES, address_and_name, place

PASTS = ("sqlite", "postgres", "redis")


def app_at(url: str) -> App:
    app = App(url)
    app.store.migrate()
    app.pool("default", workers=2)

    @app.task(name="mark", key="{name}", limit=1, retry=Retry(first=0))
    def mark(name: str, runs: str, gate: str) -> str:
        with open(runs, "a") as file:
            file.write(f"{os.getpid()}\n")
        while not os.path.exists(gate):
            time.sleep(0.005)
        return name

    @app.task(name="quick")
    def quick(runs: str) -> None:
        with open(runs, "a") as file:
            file.write("ran\n")

    return app


@pytest.fixture(params=PASTS)
def past(request, tmp_path):
    """A store that can forget what it has acknowledged."""
    with store_with_a_past(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def app(past):
    made = app_at(past.url)
    yield made
    made.store.close()


@pytest.fixture
def _often(monkeypatch):
    monkeypatch.setattr(reconcile, "EVERY", 0.3)
    monkeypatch.setattr(reconcile, "AGAIN", 0.2)


@pytest.mark.usefixtures("_often")
def test_a_settlement_that_the_store_forgot_makes_the_job_run_again_and_frees_its_slot(
    app, past, start, tmp_path
):
    runs, gate = tmp_path / "runs", tmp_path / "gate"
    start(app)
    handle = app.tasks["mark"].using(unique="one").enqueue("one", str(runs), str(gate))
    until(lambda: handle.job().started_at, "it runs")
    past.remember()
    gate.touch()
    ended(handle)
    past.go_back()
    job = ended(handle)
    assert (job.state, len(lines(runs))) == (JobState.COMPLETED, 2)
    assert [attempt.ended for attempt in job.attempts] == ["lost", "returned"]
    after = (
        app.tasks["mark"].using(unique="one").enqueue("one", str(runs), str(gate))
    )  # the same slot and the same unique key
    assert after.id != handle.id
    assert ended(after).state is JobState.COMPLETED


def test_after_a_reconnect_the_node_looks_at_once(start, tmp_path):
    """Without waiting for the minute: the acknowledged end is gone with the server's last moment."""
    runs, gate = tmp_path / "runs", tmp_path / "gate"
    with store_with_a_past("redis", tmp_path) as past:
        app = app_at(past.url)
        node = start(app)
        handle = app.tasks["mark"].using(unique="one").enqueue("one", str(runs), str(gate))
        until(lambda: handle.job().started_at, "it runs")
        past.remember()
        gate.touch()
        ended(handle)
        assert isinstance(past, RedisPast)
        past.go_back(lambda: until(lambda: node._loop.trouble, "the node misses its store"))
        until(lambda: len(lines(runs)) == 2, "the second run")
        assert ended(handle).state is JobState.COMPLETED
        node.stop(0.0)
        app.store.close()


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_connection_that_was_closed_while_it_lay_idle_is_a_reconnect_too(name, start, tmp_path):
    """The server was away between two calls: none has failed, and its last moments are gone all the same."""
    with store_with_a_past(name, tmp_path) as past:
        app = app_at(past.url)
        node = start(app)
        runs, gate = tmp_path / "runs", tmp_path / "gate"
        handle = app.tasks["mark"].enqueue("one", str(runs), str(gate))
        until(lambda: handle.job().started_at, "it runs")
        past.remember()
        gate.touch()
        ended(handle)
        with node._loop._turn:  # the node asks for nothing meanwhile
            past.go_back()
            if name == "postgres":
                hang_up(past.url)
        until(lambda: len(lines(runs)) == 2, "the second run")
        assert ended(handle).state is JobState.COMPLETED
        assert not node._loop.troubles
        node.stop(0.0)
        app.store.close()


def hang_up(url):
    """End every other session of the database, as a server does that goes away."""
    with psycopg.connect(address_and_name(url)[0], autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


def test_a_forgotten_end_is_charged_as_lost_also_when_the_last_answer_was_lost_with_it(
    app, past, start, tmp_path
):
    """The store went away while it was asked, and came back as it was before the end."""
    runs, gate = tmp_path / "runs", tmp_path / "gate"
    node = start(app)
    handle = app.tasks["mark"].enqueue("one", str(runs), str(gate))
    until(lambda: handle.job().started_at, "it runs")
    past.remember()
    gate.touch()
    ended(handle)
    with node._loop._turn:
        past.go_back()
        node._loop.unsure = 0
        node._loop.hint()
    assert [attempt.ended for attempt in ended(handle).attempts] == ["lost", "returned"]
    assert len(lines(runs)) == 2


@pytest.mark.usefixtures("_often")
def test_a_run_that_the_store_knows_nothing_of_any_more_is_stopped_and_the_job_runs_anew(
    app, past, start, tmp_path
):
    runs, gate = tmp_path / "runs", tmp_path / "gate"
    app.store.configure(queue="default", paused=True)
    start(app)
    handle = app.tasks["mark"].using(unique="one").enqueue("one", str(runs), str(gate))
    past.remember()
    app.store.configure(queue="default", paused=False)
    until(lambda: handle.job().started_at, "it runs")
    worker = int(lines(runs)[0])
    past.go_back()
    until(lambda: not alive(worker), "the end of the run that is nobody's")
    app.store.configure(queue="default", paused=False)
    gate.touch()
    job = ended(handle)
    assert (job.state, len(lines(runs))) == (JobState.COMPLETED, 2)


@pytest.mark.parametrize("name", STORES)
def test_a_node_that_compares_all_the_time_runs_each_job_once(name, tmp_path, start, monkeypatch):
    """An end on its way into the line, a claim that is not handed out yet: the node knows of them all."""
    monkeypatch.setattr(reconcile, "EVERY", 0.0)
    monkeypatch.setattr(reconcile, "AGAIN", 0.0)
    runs = tmp_path / "runs"
    with place(name, tmp_path) as url:
        app = app_at(url)
        node = start(app)
        jobs = all_ended(app.tasks["quick"].enqueue_many([(str(runs),)] * 400))
        until(lambda: node._loop.compared > 20, "it has compared often")
        node.stop(0.0)
        app.store.close()
    assert {(job.state, job.token, job.attempt) for job in jobs} == {(JobState.COMPLETED, 1, 1)}
    assert len(lines(runs)) == 400
