"""Nodes that die, are stopped or wake up late: their jobs run elsewhere, and each end is recorded once."""

from __future__ import annotations

import os
import signal

import pytest

from millpond import App
from millpond.job import MICROSECONDS, JobState
from tests.node import process as nodes
from tests.node.process import node_process
from tests.node.stopping import stop
from tests.node.waiting import all_ended, ended, until
from tests.proof_recurring.machines import Machine
from tests.stores.places import SHARED, place


@pytest.fixture(params=SHARED)
def url(request, tmp_path):
    with place(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def app(url, monkeypatch):
    """The tasks of the node processes, on the store of this test."""
    made = App(url)
    made.store.migrate()
    monkeypatch.setattr(nodes.app, "store", made.store)
    yield made
    made.store.close()


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.usefixtures("app")
def test_the_jobs_of_a_killed_node_run_on_another(url, tmp_path):
    with node_process(url) as first:
        handle = nodes.mark.enqueue(str(tmp_path / "marks"), str(tmp_path / "go"))
        until(lambda: handle.job().started_at, "the store to know that it began")
        with node_process(url):
            first.kill()
            until(lambda: len(lines(tmp_path / "marks")) == 2, "the second run")
            (tmp_path / "go").touch()
            job = ended(handle)
    assert (job.state, job.lost, job.token) == (JobState.COMPLETED, 1, 3)  # two claims and a rescue
    assert [attempt.ended for attempt in job.attempts] == ["lost", "returned"]
    assert job.result == b"3"


@pytest.mark.usefixtures("app")
def test_a_job_took_as_long_as_it_took_though_the_clock_of_its_machine_was_set(url, tmp_path):
    machine = Machine(tmp_path / "clock")
    with node_process(url, variables=machine.environment):
        handle = nodes.mark.enqueue(str(tmp_path / "marks"), str(tmp_path / "go"))
        until(lambda: handle.job().started_at)
        machine.set(3 * 3600.0)
        (tmp_path / "go").touch()
        (run,) = ended(handle).attempts
    assert run.started_at is not None
    assert 0 < run.ended_at - run.started_at < 600 * MICROSECONDS


@pytest.mark.usefixtures("app")
def test_a_node_stopped_past_its_lease_and_woken_can_settle_nothing(url, tmp_path):
    with node_process(url, 1.0) as first:
        handle = nodes.mark.enqueue(str(tmp_path / "marks"), str(tmp_path / "go"))
        until(lambda: handle.job().started_at)
        with node_process(url, 1.0):
            stop(first.pid, url)
            until(lambda: len(lines(tmp_path / "marks")) == 2, "the second run")
            (tmp_path / "go").touch()
            job = ended(handle)
            first.send_signal(signal.SIGCONT)
            again = nodes.mark.enqueue_many([(str(tmp_path / "after"),)] * 20)
            all_ended(again)
        last = handle.job()
    assert job.result == last.result == b"3"
    assert (last.state, last.token, len(last.attempts)) == (JobState.COMPLETED, 3, 2)


@pytest.mark.usefixtures("app")
def test_a_job_that_holds_a_slot_is_stopped_with_its_nodes_lease_even_if_the_node_is(url, tmp_path):
    with node_process(url, 1.5) as first:
        handle = nodes.guarded.enqueue("one", str(tmp_path / "marks"), str(tmp_path / "go"))
        until(lambda: handle.job().started_at)
        worker = int(lines(tmp_path / "marks")[0].split()[1])
        stop(first.pid, url)
        until(lambda: not alive(worker), "the end of the stopped node's worker")
        with node_process(url, 1.5):
            until(lambda: len(lines(tmp_path / "marks")) == 2, "the second run")
            (tmp_path / "go").touch()
            assert ended(handle).state == JobState.COMPLETED


def test_a_drained_node_gives_back_what_it_has_not_begun_at_no_cost(app, url, tmp_path):
    drains = tmp_path / "drains"
    with node_process(url, variables={nodes.SIGN: str(drains)}) as first:
        held = nodes.mark.enqueue_many([(str(tmp_path / "marks"), str(tmp_path / "go"))] * 4)
        until(lambda: len(lines(tmp_path / "marks")) == 2, "two at work")
        first.send_signal(signal.SIGTERM)
        until(drains.exists, "it claims no more")
        until(lambda: sum(job.state == JobState.QUEUED for job in app.store.get([h.id for h in held])) == 2)
        (tmp_path / "go").touch()
        assert first.wait(30) == 0
    jobs = app.store.get([handle.id for handle in held])
    assert sorted((job.state.value, job.attempt) for job in jobs) == [
        ("completed", 1),
        ("completed", 1),
        ("queued", 0),
        ("queued", 0),
    ]
    assert app.store.counts().nodes == ()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_scripts_of_these_tests_are_importable():
    assert os.path.exists(nodes.__file__)
