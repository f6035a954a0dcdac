"""How a node comes to its end: what has ended is told to a store that was away, what runs is told to end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from millpond import App, Node, Retry
from millpond.job import Job, JobState
from millpond.node.observability.events import NodeStopped, WorkerCrashed
from millpond.rules.node.shutdown import LEAST
from tests.node.waiting import until
from tests.proof_stores.worlds import Server

pytestmark = pytest.mark.timeout(90)
NOT_TOLD = "could not be told"
BUSY = 1.0  # seconds that a machine with other things to do may take for what takes none


class Outage:
    """A node with a job that runs, and a store that has gone away, or does not answer any more."""

    def __init__(self, name: str, folder: Path, start: Callable[..., Node]) -> None:
        self.server, self.runs, gate = Server(name.removeprefix("silent ")), folder / "runs", folder / "open"
        self.app = App(self.server.url)
        self.app.store.migrate()
        self.app.pool("default", workers=1)

        @self.app.task(retry=Retry(first=0))
        def hold_on(runs: str, gate: str) -> str:
            with open(runs, "a") as file:
                file.write("begun\n")
            while not os.path.exists(gate):
                time.sleep(0.005)
            return "done"

        self.node = start(self.app)
        self.handle = hold_on.enqueue(str(self.runs), str(gate))
        until(self.runs.exists, "it runs")
        if name.startswith("silent"):
            self.server.process.server.process.send_signal(signal.SIGSTOP)
        else:
            self.server.stop("orderly")
        until(lambda: self.node._loop.trouble, "the node has noticed")
        self.open = gate.touch

    def tries(self) -> int:
        """How often the node has spoken in vain."""
        return sum(self.node._loop.troubles.values())


@pytest.fixture
def outage(request: Any, tmp_path: Path, start: Callable[..., Node]) -> Iterator[Outage]:
    made = Outage(request.param, tmp_path, start)
    yield made
    made.node.kill()
    made.node.wait()
    made.app.store.close()
    made.server.process.server.remove()


@pytest.mark.parametrize("outage", ["redis", "postgres"], indirect=True)
def test_what_ended_while_the_store_was_away_is_settled_when_it_is_back_within_grace(outage, caplog):
    outage.node.drain(25.0)
    outage.open()
    until(lambda: len(outage.node._state.line) == 1, "its end waits")
    before = outage.tries()
    until(lambda: outage.node.wait(0) or outage.tries() > before + 12, "it has been away for long")
    assert not outage.node.wait(0)
    outage.server.process.start()
    assert outage.node.wait(30.0)
    job = outage.handle.job()
    assert (job.state, len(job.attempts), outage.handle.result(timeout=0)) == (JobState.COMPLETED, 1, "done")
    assert outage.runs.read_text() == "begun\n"
    assert NOT_TOLD not in caplog.text
    assert [node.id for node in outage.app.store.counts().nodes if node.lease_left > 0] == []


@pytest.mark.parametrize("outage", ["redis", "postgres", "silent redis"], indirect=True)
def test_a_store_that_stays_away_is_waited_for_until_the_end_of_grace_and_no_longer(outage, caplog):
    outage.open()
    until(lambda: len(outage.node._state.line) == 1, "its end waits")
    over_at = time.monotonic() + 8.0
    outage.node.stop(8.0)
    assert time.monotonic() <= over_at + BUSY
    assert f"1 ends {NOT_TOLD}" in caplog.text


@pytest.mark.parametrize("outage", ["redis"], indirect=True)
def test_whoever_hurries_does_not_wait_for_a_store_that_is_away(outage, caplog):
    outage.open()
    until(lambda: len(outage.node._state.line) == 1, "its end waits")
    outage.node.drain(60.0)
    until(lambda: "ends wait for the store" in caplog.text, "it waits")
    outage.node.hurry()
    assert outage.node.wait(LEAST + BUSY)
    assert f"1 ends {NOT_TOLD}" in caplog.text


def mark(folder: str, name: str) -> None:
    Path(folder, name).touch()


async def clean_up(folder: str, how: str) -> str:
    """Wait to be told, clean up, and end in one way or another."""
    mark(folder, "begun")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        mark(folder, "cleaned up")
        if how == "raises":
            raise OSError("the line was cut") from None
        if how == "leaves":
            raise
    return "as far as it came"


@pytest.fixture
def told(local: App, start: Callable[..., Node], tmp_path: Path) -> Callable[[str], Job]:
    """What becomes of a coroutine that is told to end, by the way it ends then."""

    def tell(how: str) -> Job:
        local.pool("default", workers=1, kind="async", concurrency=5)
        handle = local.task(retry=Retry(attempts=1))(clean_up).enqueue(str(tmp_path), how)
        node = start(local)
        until((tmp_path / "begun").exists, "it runs")
        node.stop(4.0)
        assert (tmp_path / "cleaned up").exists()
        return handle.job()

    return tell


@pytest.mark.parametrize("how", ["leaves", "raises"])
def test_a_coroutine_beside_others_is_told_near_the_end_of_grace_and_goes_back(told, how, caplog):
    job = told(how)
    assert (job.state, job.errors, job.crashes, job.lost) == (JobState.QUEUED, 0, 0, 1)
    assert [attempt.ended for attempt in job.attempts] == ["lost"]
    assert "still running" not in caplog.text


def test_a_coroutine_that_returns_when_it_is_told_has_completed(told):
    job = told("returns")
    assert (job.state, job.result) == (JobState.COMPLETED, b'"as far as it came"')


def test_a_coroutine_that_does_not_listen_is_killed_at_the_end_of_grace(local, start, tmp_path, caplog):
    local.pool("default", workers=1, kind="async", concurrency=5)

    @local.task
    async def deaf(folder: str) -> None:
        mark(folder, "begun")
        while True:
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                continue

    handle = deaf.enqueue(str(tmp_path))
    node = start(local)
    until((tmp_path / "begun").exists, "it runs")
    node.stop(2.0)
    assert "1 jobs were still running and are stopped" in caplog.text
    job = handle.job()
    assert (job.state, job.errors, job.lost) == (JobState.QUEUED, 0, 1)


def test_while_a_node_drains_nobody_takes_the_place_of_a_worker_that_was_told_to_end(
    local: App, start: Callable[..., Node], tmp_path: Path
):
    """Whoever came would have nothing to do, and would have to be waited for."""
    begun = tmp_path / "begun"
    local.pool("default", workers=2)

    @local.task
    def wait_for_long() -> None:
        begun.touch()
        time.sleep(300)

    node = start(local)
    heard: list[str] = []
    wait_for_long.enqueue()
    until(begun.exists, "it runs")
    until(lambda: sum(node._state.pools["default"].crew()[:2]) == 2, "both workers are up")
    for engine in node._state.pools["default"].engines():
        engine.events.subscribe(lambda event: heard.append(type(event).__name__))
    node.stop(1.0)
    assert "WorkerStopped" in heard
    assert not {"WorkerStarted", "WorkerFailedToStart"}.intersection(heard)


class Stubborn(NamedTuple):
    """A node with a job that it must end, and what it told of that."""

    node: Node
    handle: Any
    heard: list[Any]


@pytest.fixture
def stubborn(local: App, start: Callable[..., Node], tmp_path: Path) -> Stubborn:
    """A job that runs for longer than anybody waits for it."""

    @local.task
    def stay(path: str) -> None:
        Path(path).touch()
        time.sleep(600)

    node = start(local)
    heard: list[Any] = []
    node.subscribe(heard.append, [NodeStopped, WorkerCrashed])
    handle = stay.enqueue(str(tmp_path / "begun"))
    until((tmp_path / "begun").exists)
    return Stubborn(node, handle, heard)


@pytest.mark.parametrize("grace", [0.0, 2.0], ids=["killed", "told first"])
def test_a_node_that_has_stopped_tells_what_it_broke_off_and_of_no_crash(stubborn, grace):
    node, handle, heard = stubborn
    node.drain(grace, "SIGQUIT")
    assert node.wait(30.0)
    assert [(one.reason, one.released, one.killed) for one in heard] == [("SIGQUIT", 0, 1)]
    assert handle.job().lost == 1
    assert [pool.crashed for pool in node.report().pools] == [0]


@pytest.mark.parametrize("way", ["stop", "a command"])
def test_a_node_that_drains_can_be_given_less_time(stubborn, way):
    node, handle, heard = stubborn
    node.drain(3600.0, "a command")
    if way == "stop":
        node.stop(0.5)
    else:
        node._drain_as_told({"grace": 0.5})
    assert node.wait(30.0)
    assert (handle.job().lost, heard[-1].reason) == (1, "a command")


def test_a_node_stops_also_where_no_thread_can_be_started_any_more(stubborn, monkeypatch):
    node, _, _ = stubborn
    begin = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "millpond-stop":
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    node.stop(0.0)
    assert node.wait(0.0)
