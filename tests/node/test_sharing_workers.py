"""Workers that run several jobs, the template they all come from, and the way to a store in memory."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time

import pytest

from millpond import App, Retry, StoreRefused
from millpond.job import JobState
from millpond.pool.process.starters import Hub
from tests.node.waiting import all_ended, ended, until


def test_the_neighbours_of_a_poison_job_are_tried_alone_and_pay_nothing(local, start, tmp_path):
    local.pool("default", workers=1, kind="async", concurrency=10)

    @local.task(retry=Retry(max_crashes=2))
    async def poison(path: str) -> None:
        while len(os.listdir(path)) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    @local.task
    async def honest(path: str, name: str) -> int:
        open(f"{path}/{name}", "w").close()  # noqa: ASYNC230
        await asyncio.sleep(0.2)
        return 1

    start(local)
    others = honest.enqueue_many([(str(tmp_path), str(number)) for number in range(3)])
    bad = ended(poison.enqueue(str(tmp_path)))
    jobs = all_ended(others)
    assert (bad.state, bad.reason, bad.crashes) == (JobState.DEAD, "crashed", 2)
    assert {(job.state, job.crashes) for job in jobs} == {(JobState.COMPLETED, 0)}


def test_all_pools_of_a_node_have_one_template(local, start):
    for name in ("one", "two", "three"):
        local.pool(name, workers=1)

    @local.task
    def parent() -> int:
        return os.getppid()

    start(local, queues=None)
    handles = [parent.using(queue=name).enqueue() for name in ("one", "two", "three")]
    assert len({handle.result(timeout=30) for handle in handles}) == 1


def test_a_template_that_is_killed_is_replaced_and_nobody_pays(local, start, tmp_path):
    @local.task
    def twice(path: str) -> int:
        if not os.path.exists(path):
            with open(path + ".new", "w") as file:
                file.write(str(os.getppid()))
            os.rename(path + ".new", path)
            time.sleep(600)
        return os.getppid()

    start(local)
    handle = twice.enqueue(str(tmp_path / "template"))
    until((tmp_path / "template").exists)
    first = int((tmp_path / "template").read_text())
    os.kill(first, signal.SIGKILL)
    assert handle.result(timeout=30) != first
    job = handle.job()
    assert (job.crashes, job.lost, job.errors) == (0, 0, 0)


def test_a_template_that_is_killed_again_and_again_is_nobodys_crash(local, start, tmp_path):
    @local.task
    def wait_for(path: str) -> None:
        with open(f"{path}.{time.monotonic_ns()}", "w") as file:
            file.write(str(os.getppid()))
        while not os.path.exists(path):
            time.sleep(0.01)

    def templates() -> list[int]:
        return [int(text) for path in sorted(tmp_path.glob("go.*")) if (text := path.read_text())]

    start(local)
    handle = wait_for.enqueue(str(tmp_path / "go"))
    killed: set[int] = set()
    for _ in range(3):  # the pool gives a task back twice
        until(lambda: set(templates()) > killed)
        (found,) = set(templates()) - killed
        os.kill(found, signal.SIGKILL)
        killed.add(found)
    until(lambda: set(templates()) > killed)
    (tmp_path / "go").touch()
    job = ended(handle)
    assert (job.state, job.crashes, job.lost, job.errors) == (JobState.COMPLETED, 0, 1, 0)


def test_what_an_import_opened_is_told(tmp_path, monkeypatch, caplog, start):
    (tmp_path / "opens_at_import.py").write_text(
        "import socket\n"
        "from millpond import App\n"
        "left, right = socket.socketpair()\n"
        f"app = App('sqlite:///{tmp_path / 'jobs.db'}')\n"
        "@app.task\n"
        "def nothing() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import opens_at_import  # type: ignore[import-not-found]

    with caplog.at_level(logging.WARNING, "millpond"):
        start(opens_at_import.app)
        opens_at_import.nothing.enqueue().result(timeout=30)
        until(lambda: "has opened a socket" in caplog.text, "the warning")
    for end in (opens_at_import.left, opens_at_import.right):
        end.close()
    del sys.modules["opens_at_import"]


def test_a_blocked_event_loop_is_named_with_the_place(local, start, caplog):
    local.pool("default", workers=1, kind="async")

    @local.task
    async def block_the_loop() -> None:
        time.sleep(6)  # noqa: ASYNC251

    with caplog.at_level(logging.WARNING, "millpond"):
        start(local)
        block_the_loop.enqueue()
        until(lambda: "event loop of worker" in caplog.text, "the warning")
    assert "block_the_loop" in caplog.text


def test_a_store_in_memory_can_be_asked_for_jobs_from_a_worker(start):
    app = App("memory://")

    @app.task
    def leaf(number: int) -> int:
        return number

    @app.task
    def tree() -> list[object]:
        handle = leaf.using(delay=3600).enqueue(5)
        state = handle.job().state.value
        handle.cancel()
        try:
            app.store.counts()
        except StoreRefused as error:
            return [state, handle.job().state.value, str(error)]
        return []

    start(app)
    before, after, refusal = tree.enqueue().result(timeout=30)
    assert (before, after) == ("scheduled", "cancelled")
    assert "in the process of the node only" in str(refusal)
    app.store.close()


def test_a_hub_starts_another_template_when_its_first_is_gone():
    hub = Hub(())
    first, pid = hub.attach()
    os.kill(pid, signal.SIGKILL)
    until(lambda: socket_is_closed(first))
    second, other = hub.attach()
    assert other != pid
    for end in (first, second):
        end.close()
    hub.close()


def socket_is_closed(end: socket.socket) -> bool:
    try:
        return end.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("kind", ["process", "async"])
def test_a_node_on_an_app_that_cannot_be_brought_to_workers_says_so(start, kind, tmp_path):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    app.pool("default", kind=kind)
    lock = __import__("threading").Lock()

    @app.task
    def holds_a_lock() -> None:
        lock.acquire()

    node = start(app)
    holds_a_lock.enqueue()
    pool = until(lambda: next((p for p in node.report().pools if p.status != "ok"), None), "a degraded pool")
    assert "pickle" in " ".join(pool.reasons)
