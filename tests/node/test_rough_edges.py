"""What happens at the edges of a node: a start that fails, a thread that overruns, a second life."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time

import pytest
from msgspec.structs import replace

from millpond import App, Cancel, Node, Resources, Retry, StoreError, TaskKilled, current_job
from millpond.job import JobState
from millpond.node.jobs import claim_loop
from millpond.node.jobs.claimed_job import Withdrawn
from millpond.node.node import pools_for
from millpond.node.worker.entry import TOKEN
from millpond.node.worker.store_proxy import Doorway
from millpond.pool.process import stop_tasks
from millpond.store.protocol import Claim, Progress
from tests.node.waiting import all_ended, ended, until


@pytest.fixture
def still(local):
    """A node with its lease and a pool, whose loop the test turns by hand."""
    local.pool("default", workers=(0, 1))
    node = Node(local)
    node._make_pools()
    node._state.renew()
    node._state.phase = "running"
    yield node
    for pool in node._state.pools.values():
        pool.close(0.0)
        pool.join(time.monotonic() + 30)
    node._state.phase = "starting"
    node.stop(0.0)


def test_a_node_that_was_rescued_claims_again_though_its_last_claim_was_dropped(local, still):
    @local.task
    def nothing() -> None: ...

    nothing.enqueue()
    still._loop._round()
    assert len(still._loop._claimed) == 1
    still._loop.refused = still._state.identity.id
    nothing.enqueue()
    still._loop._round()
    still._loop.hint()
    still._loop._round()
    assert len(still._loop._claimed) == 1 or still._state.pools["default"].held


def claimed_once(local, still):
    """A job that the node has claimed and not begun, and the pool it is for."""

    @local.task
    def nothing() -> None: ...

    nothing.enqueue()
    still._loop._round()
    [job] = still._loop._claimed
    return job, still._state.pools["default"]


def test_the_late_end_of_a_job_that_came_back_leaves_the_new_claim_in_the_books(local, still):
    job, pool = claimed_once(local, still)
    old, new = pool._task(pool._crew, job), pool._task(pool._crew, job)
    old.disowned = True
    pool.held[job.id] = new
    still._state.line.add(old, None, Withdrawn())
    still._loop._take_ends()
    assert pool.held == {job.id: new}
    assert len(still._state.line) == 0


def test_what_the_old_run_of_a_job_that_came_back_tells_is_not_taken_for_the_new_ones(local, still):
    job, pool = claimed_once(local, still)
    pool.held[job.id] = pool._task(pool._crew, job)
    for token in (job.token - 1, job.token):
        pool._noted(job.id.encode() + TOKEN.pack(token) + b"%d" % token)
    assert still._loop._running.progress() == [Progress(job.id, job.token, b"%d" % job.token)]
    pool.held.clear()


def claimed_twice(local, still):
    """A job that this node has claimed, lost and claimed again: both claims, its pool and the budget."""
    local.task(name="large", resources=Resources(memory="900MB"))(lambda: None)
    local.get_task("large").enqueue()
    budget, pool = still._state.budget, still._state.pools["default"]
    budget.expect(local.tasks.values(), ())
    still._loop._round()
    [job] = still._loop._claimed

    def claim():
        budget.sift(pool, [job])
        return pool.held[job.id]

    return claim, pool, budget


def test_the_late_end_of_a_job_that_came_back_leaves_the_new_claim_waiting_for_its_memory(local, still):
    claim, pool, budget = claimed_twice(local, still)
    old, new = claim(), claim()
    old.disowned = True
    assert pool.kept == len(pool.held) == 1
    still._state.line.add(old, None, Withdrawn())
    still._loop._take_ends()
    assert [kept.task for kept in budget.waiting.values()] == [new]
    assert pool.kept == 1
    still._state.line.add(new, None, Withdrawn())
    still._loop._take_ends()
    assert (budget.waiting, pool.kept, pool.held) == ({}, 0, {})


def test_the_memory_of_a_job_that_came_back_is_given_once_and_stays_its_own(local, still):
    claim, pool, budget = claimed_twice(local, still)
    old = claim()
    assert budget.admit(0.0) == [(old, pool)]
    new = claim()
    old.disowned = True
    assert budget.admit(0.0) == []  # what the old run holds is not free yet
    still._state.line.add(old, None, TaskKilled("it is another's"))
    still._loop._take_ends()
    assert budget.admit(0.0) == [(new, pool)]
    budget.ended(old, 1.0)
    assert [held.task for held in budget.holding.values()] == [new]
    assert budget.admit(0.0) == []
    budget.ended(new, 1.0)
    assert budget.holding == {}


def test_a_job_that_needs_memory_runs_again_on_the_node_that_was_rescued(local, start, tmp_path, monkeypatch):
    monkeypatch.setattr(stop_tasks, "STACK_WAIT", 3.0)  # the old run ends long after the new claim
    local.pool("default", workers=2)

    @local.task(resources=Resources(memory="900MB"), retry=Retry(first=0))
    def stubborn(mark: str) -> int:
        if not os.path.exists(mark):
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # no stack to be had
            open(mark, "w").close()
            time.sleep(600)
        return current_job().token

    node = start(local, budget=Resources(memory="1GB"))
    handle = stubborn.enqueue(str(tmp_path / "begun"))
    until(lambda: handle.job().started_at)
    first = handle.job().token
    local.store.renew("other", socket.gethostname())
    local.store.rescue("other", [node._state.identity.id])
    assert handle.result(timeout=30) > first + 1  # the rescue and the second claim raised it
    until(lambda: not node._state.budget.holding, "nothing is held")
    assert (node._state.budget.waiting, node._state.pools["default"].kept) == ({}, 0)


def test_the_cancel_of_a_job_that_came_back_leaves_its_old_run_to_be_stopped(local, still):
    @local.task
    def nothing() -> None: ...

    nothing.enqueue()
    still._loop._round()
    [job] = still._loop._claimed
    pool, state = still._state.pools["default"], still._state
    old, new = pool._task(pool._crew, job), pool._task(pool._crew, replace(job, token=job.token + 1))
    pool.held[job.id] = old
    state.disown_all()
    pool.held[job.id] = new
    state.cancel(job.id)
    assert {*state.cancelled.values()} == {old, new}


def test_an_end_that_cannot_be_understood_is_settled_as_lost(local, still):
    @local.task
    def nothing() -> None: ...

    handle = nothing.enqueue()
    still._loop._round()
    [job] = still._loop._claimed
    pool = still._state.pools["default"]
    still._loop._claimed = ()
    still._state.line.add(pool._task(pool._crew, job), "no outcome", None)
    still._loop._round()
    assert [attempt.ended for attempt in handle.job().attempts] == ["lost"]


def test_a_thread_that_overruns_takes_no_place_from_those_after_it(local, start):
    local.pool("default", workers=1, kind="thread", concurrency=2)

    @local.task(timeout=0.3, retry=Retry(attempts=1))
    def stuck() -> None:
        time.sleep(600)

    @local.task(timeout=30)
    def quick() -> int:
        return 1

    start(local)
    assert {job.reason for job in all_ended(stuck.enqueue_many([(), ()]))} == {"timeout"}
    assert quick.enqueue().result(timeout=30) == 1


def test_a_job_whose_neighbour_ended_is_not_told_that_its_end_is_wanted(local, start, tmp_path):
    local.pool("default", workers=1, kind="thread", concurrency=2)

    @local.task
    def wait_for(path: str) -> bool:
        while not os.path.exists(path):
            time.sleep(0.005)
        return current_job().cancelled

    start(local)
    first = wait_for.enqueue(str(tmp_path / "first"))
    until(lambda: first.job().started_at)
    second = wait_for.enqueue(str(tmp_path / "second"))
    until(lambda: second.job().started_at)
    (tmp_path / "first").touch()
    assert ended(first).state == JobState.COMPLETED
    (tmp_path / "second").touch()
    assert second.result(timeout=30) is False


def test_a_coroutine_alone_in_its_worker_can_see_that_its_end_is_wanted(local, start, tmp_path):
    local.pool("default", workers=1, kind="async", concurrency=1)

    @local.task
    async def look(path: str) -> None:
        while not current_job().cancelled:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        open(path, "w").close()  # noqa: ASYNC230
        raise Cancel

    start(local)
    handle = look.enqueue(str(tmp_path / "seen"))
    until(lambda: handle.job().started_at)
    handle.cancel()
    assert ended(handle).state == JobState.CANCELLED
    assert (tmp_path / "seen").exists()


def test_jobs_go_on_when_the_folder_of_the_node_is_removed(local, start, tmp_path, monkeypatch):
    folder = tmp_path / "release"
    folder.mkdir()
    monkeypatch.chdir(folder)

    @local.task(retry=Retry(attempts=1))
    def nothing() -> int:
        return 1

    start(local)
    assert nothing.enqueue().result(timeout=30) == 1
    folder.rmdir()
    assert nothing.enqueue().result(timeout=30) == 1


def test_a_start_that_fails_leaves_nothing_behind():
    app = App("redis://127.0.0.1:1/0")
    app.pool("default", workers=1)
    node = Node(app)
    with pytest.raises(StoreError):
        node.start()
    assert node.wait(0)
    node.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "millpond-default"]


def test_a_doorway_that_was_closed_leaves_no_thread():
    app = App("memory://")
    doorway = Doorway(app.store)
    doorway.close()
    assert not doorway._thread.is_alive()


def test_a_pool_that_serves_other_queues_does_not_hide_the_queue_of_its_name():
    app = App("memory://")
    app.pool("mail", queues=["letters"], workers=1)

    @app.task(queue="mail")
    def send() -> None: ...

    found = {settings.name: settings.queues for settings in pools_for(app, None)}
    assert found == {"mail": ("letters",), "mail-default": ("mail",)}


def test_what_was_rescued_is_claimed_though_nothing_announces_it(local, start, monkeypatch):
    """As on PostgreSQL behind a pooler, where nothing is heard until the next look."""

    @local.task
    def five() -> int:
        return 5

    handle = five.enqueue()
    local.store.renew("dead", "elsewhere", lease=0.5)
    assert local.store.exchange("dead", 1, claims=[Claim("default", 1)]).claimed
    monkeypatch.setattr(local.store, "wait", lambda _, timeout: threading.Event().wait(timeout))
    monkeypatch.setattr(claim_loop, "POLL", 600.0)
    start(local, lease=1.0)
    assert handle.result(timeout=30) == 5
