"""How many workers a pool of a real node has: growth at once, shrinking by idleness, bounds, and reasons."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from millpond import App, Node
from millpond.events import WorkerStarted, WorkerStopped
from millpond.job import JobState
from millpond.node.observability.events import ScaledDown, ScaledUp
from millpond.node.observability.observers import pool_news
from millpond.node.scaling.decision_log import read_decisions
from millpond.node.scaling.fleet import shares_of
from millpond.node.scaling.observe import Counting, PoolWatch
from millpond.node.scaling.overrides import Bounds, write_bounds
from millpond.rules.scaling.policies import Fixed, ScaleByDepth
from tests.node.waiting import all_ended, until
from tests.proof_stores.worlds import Server

pytestmark = pytest.mark.timeout(60)


def pool_of(node: Node, name: str = "default") -> Any:
    """What the node says about a pool."""
    return next(pool for pool in node.report().pools if pool.name == name)


def size(node: Node, name: str = "default") -> int:
    return len(pool_of(node, name).workers)


def decisions_from_now(node: Node, number: int = 2, name: str = "default") -> list[Any]:
    """The next decisions about a pool, as they come."""
    found: list[Any] = [node._scaling.decision_of(name)]

    def look() -> bool:
        last = node._scaling.decision_of(name)
        if last is not found[-1]:
            found.append(last)
        return len(found) > number

    until(look, f"{number} decisions")
    return found[1:]


@pytest.fixture
def hold(local: App, tmp_path: Path) -> Callable[..., Any]:
    """A task whose jobs run until the gate is open."""
    gate = str(tmp_path / "open")

    @local.task(name="hold")
    def hold_on(path: str = gate) -> None:
        while not os.path.exists(path):
            time.sleep(0.005)

    return hold_on


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    return tmp_path / "open"


# --- growing and shrinking -------------------------------------------------------------------------------
def test_a_pool_grows_while_work_waits_and_returns_to_its_minimum_and_says_why(app, start, tmp_path):
    gate = str(tmp_path / "open")
    heard: list[Any] = []
    app.pool("default", workers=(1, 3), max_wait="1s")

    @app.task
    def hold_on() -> None:
        while not os.path.exists(gate):
            time.sleep(0.005)

    node = start(app)
    node.subscribe(heard.append, [ScaledUp, ScaledDown])
    handles = hold_on.enqueue_many([()] * 6)
    until(lambda: pool_of(node).running == 3, "three at work")
    open(gate, "w").close()
    all_ended(handles)
    until(lambda: size(node) == 1, "one worker is left")
    until(lambda: heard and type(heard[-1]) is ScaledDown and heard[-1].after == 1, "an event for it")
    assert type(heard[0]) is ScaledUp
    assert max(event.after for event in heard) == 3
    lines = until(lambda: [line for line in read_decisions(app.store, 50) if line["after"] == 3], "a line")
    assert lines[0]["sentence"].startswith("default ")
    assert {"base", "backlog", "demand", "binding", "wanted", "alive", "oldest"} <= set(lines[0])


def test_a_job_that_was_claimed_since_the_count_is_not_seen_twice(local, start, hold, tmp_path):
    local.pool("default", workers=(1, 4), max_wait="1h")
    doors = [tmp_path / name for name in "abc"]
    handles = hold.enqueue_many([(str(door),) for door in doors])
    node = start(local)
    pool = node._state.pools["default"]
    until(pool.begun, "the first to run")
    (first, _), *_ = pool.begun()
    watch, counting = PoolWatch(pool, node._state), Counting(node._state)
    assert counting.look()
    assert watch.observe(counting, time.monotonic()).waiting == 2
    doors[0].touch()
    until(lambda: any(task is not first for task, _ in pool.begun()), "the second to run")
    assert watch.observe(counting, time.monotonic()).waiting == 1
    for door in doors:
        door.touch()
    all_ended(handles)


def test_a_pool_without_a_minimum_has_no_workers_until_there_is_work(local, start, hold, gate):
    local.pool("default", workers=(0, 2))
    gate.touch()
    node = start(local)
    decisions_from_now(node, 2)
    assert size(node) == 0
    assert hold.enqueue().result(timeout=30) is None
    until(lambda: size(node) == 0, "nobody is left")
    assert hold.enqueue().result(timeout=30) is None


@pytest.mark.slow
def test_spare_workers_stand_by(local, start, hold, gate):
    local.pool("default", workers=(0, 4), warm=1)
    node = start(local)
    until(lambda: size(node) == 1, "a spare one")
    hold.enqueue()
    until(lambda: pool_of(node).running == 1 and size(node) == 2, "another spare one")
    gate.touch()


@pytest.mark.slow
def test_coroutines_fill_a_worker_before_the_next_one_starts(local, start, gate):
    local.pool("default", workers=(1, 4), kind="async", concurrency=4, max_wait="1s")
    path = str(gate)

    @local.task
    async def wait() -> None:
        while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240 - the gate is a file
            await asyncio.sleep(0.005)

    node = start(local)
    wait.enqueue_many([()] * 4)
    until(lambda: pool_of(node).running == 4, "all at work")
    decisions_from_now(node)
    assert size(node) == 1
    wait.enqueue_many([()] * 4)
    until(lambda: pool_of(node).running == 8, "all at work")
    assert size(node) == 2
    gate.touch()


# --- what is no demand -----------------------------------------------------------------------------------
def test_a_paused_queue_attracts_no_workers(local, start):
    local.pool("default", workers=(0, 3))

    @local.task
    def nothing() -> None: ...

    local.store.configure(queue="default", paused=True)
    handles = nothing.enqueue_many([()] * 20)
    node = start(local)
    assert {decision.wanted for decision in decisions_from_now(node)} == {0}
    assert size(node) == 0
    local.store.configure(queue="default", paused=False)
    all_ended(handles)


def test_jobs_that_are_not_due_or_wait_for_others_attract_no_workers(local, start, hold):
    local.pool("default", workers=(0, 3))
    (later,) = [hold.using(delay="1h").enqueue() for _ in range(1)]
    hold.using(depends_on=[later]).enqueue_many([()] * 5)
    node = start(local)
    assert {decision.wanted for decision in decisions_from_now(node)} == {0}


def test_jobs_parked_at_a_full_slot_attract_no_workers(local, start, gate):
    local.pool("default", workers=(1, 4))
    path = str(gate)

    @local.task(key="all", limit=1)
    def one_by_one() -> None:
        while not os.path.exists(path):
            time.sleep(0.005)

    node = start(local)
    handles = one_by_one.enqueue_many([()] * 8)
    until(lambda: pool_of(node).running == 1, "one at work")
    until(lambda: not any(q.states for q in local.store.counts(ready_only=True).queues), "others are parked")
    decisions_from_now(node, 1)
    until(lambda: node._scaling.decision_of("default").wanted == 1, "one is enough")
    assert {decision.wanted for decision in decisions_from_now(node)} == {1}
    gate.touch()
    all_ended(handles)


def test_a_node_that_is_held_changes_nothing(local, start, hold, gate):
    local.pool("default", workers=(1, 3), max_wait="1s", idle_timeout="50ms")
    node = start(local)
    handles = hold.enqueue_many([()] * 3)
    until(lambda: pool_of(node).running == 3, "three at work")
    node.hold()
    until(lambda: node._scaling.decision_of("default").binding == "hold", "it holds")
    gate.touch()
    all_ended(handles)
    assert {decision.keep for decision in decisions_from_now(node)} == {3}
    assert size(node) == 3
    node.go_on()
    until(lambda: size(node) == 1, "one is left")


def desired(node: Node) -> int:
    """What is told to those who start machines."""
    (share,) = node._scaling.fleet()
    return share.desired


def goes_away(server):
    server.stop("orderly")


def falls_silent(server):
    server.process.server.process.send_signal(signal.SIGSTOP)


def comes_back(server):
    if server.process.server.process is None:
        server.process.start()
    else:
        server.process.server.process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("trouble", "is_known"), [(goes_away, True), (goes_away, False), (falls_silent, False)]
)
def test_a_store_that_is_away_makes_nobody_leave(start, tmp_path, trouble, is_known):
    """Also before anybody has noticed: the last decision was made when there was little to do."""
    server = Server("redis")
    gate = str(tmp_path / "open")
    app = App(server.url)
    app.pool("default", workers=(1, 3), max_wait="1s", idle_timeout="50ms")

    @app.task
    def hold_on() -> None:
        while not os.path.exists(gate):
            time.sleep(0.005)

    try:
        node = start(app)
        handles = hold_on.enqueue_many([()] * 3)
        until(lambda: pool_of(node).running == 3, "three at work")
        until(lambda: desired(node) == 3, "three are wanted")
        trouble(server)
        if is_known:
            until(lambda: node._scaling.decision_of("default").binding == "hold", "it holds")
        open(gate, "w").close()
        until(lambda: pool_of(node).running == 0, "all are idle")
        until(lambda: node._scaling.decision_of("default").binding == "hold", "it holds")
        assert node._scaling.decision_of("default").keep == 3
        assert size(node) == 3
        assert desired(node) == 3  # nobody takes machines away
        comes_back(server)
        all_ended(handles)
        until(lambda: size(node) == 1, "one is left")
        node.stop(0.0)
    finally:
        app.store.close()
        server.process.server.remove()


def test_who_claims_for_new_workers_is_called_when_their_number_counts(local, start):
    local.pool("default", workers=(1, 3))
    node = start(local)
    decision = until(lambda: node._scaling.decision_of("default"), "a decision")
    pool, sizes = node._state.pools["default"], list[int]()
    pool.want(msgspec.structs.replace(decision, wanted=3), lambda: sizes.append(pool.size()))
    assert until(lambda: sizes, "the call") == [3]


def test_each_worker_that_comes_up_is_told_to_who_claims(local, start):
    local.pool("default", workers=(1, 1))
    node, told = start(local), list[str]()
    news = pool_news(node.monitoring, "default", lambda: told.append("up"))
    news(WorkerStarted(4711))
    news(WorkerStopped(4711, "idle"))
    assert told == ["up"]


# --- policies --------------------------------------------------------------------------------------------
def test_a_fixed_pool_is_what_it_is(local, start, hold):
    local.pool("default", workers=(0, 4), policy=Fixed(2))
    node = start(local)
    until(lambda: size(node) == 2, "two")
    hold.enqueue_many([()] * 8)
    until(lambda: pool_of(node).running == 2, "two at work")
    decisions_from_now(node)
    assert size(node) == 2


@pytest.mark.slow
def test_a_pool_may_go_by_the_number_of_jobs(local, start, hold):
    local.pool("default", workers=(1, 8), policy=ScaleByDepth(up=4, down=1))
    node = start(local)
    hold.enqueue_many([()] * 9)
    until(lambda: pool_of(node).running >= 2, "more at work")
    assert "in line" in pool_of(node).sentence or pool_of(node).sentence


def test_in_shadow_the_policy_only_recommends(local, start, hold):
    local.pool("default", workers=(1, 3), policy=Fixed(1), shadow=True)
    node = start(local)
    hold.enqueue_many([()] * 6)
    until(lambda: pool_of(node).running == 3, "three at work, by what waits")
    assert pool_of(node).wanted == 1
    assert pool_of(node).shadow
    (line, *_) = until(lambda: read_decisions(local.store, 10), "a line")
    assert line["shadow"]


# --- bounds that change ----------------------------------------------------------------------------------
def test_bounds_can_be_set_while_a_node_runs_and_no_busy_worker_is_stopped(local, start, hold, gate):
    local.pool("default", workers=(1, 3), max_wait="1s")
    node = start(local)
    handles = hold.enqueue_many([()] * 3)
    until(lambda: pool_of(node).running == 3, "three at work")
    write_bounds(local.store, "default", Bounds(1, 1))
    until(lambda: pool_of(node).most == 1, "other bounds")
    decisions_from_now(node)
    assert pool_of(node).running == 3
    gate.touch()
    assert {(job.state, job.attempt) for job in all_ended(handles)} == {(JobState.COMPLETED, 1)}
    until(lambda: size(node) == 1, "one is left")
    write_bounds(local.store, "default", Bounds(2, 4))
    until(lambda: size(node) == 2, "the new minimum")
    write_bounds(local.store, "default", None)
    until(lambda: (pool_of(node).least, pool_of(node).most) == (1, 3), "what the app says")


@pytest.mark.slow
def test_bounds_that_nobody_can_read_change_nothing(local, start, hold):
    local.pool("default", workers=(1, 3))
    local.store.record("pools/default", b'{"workers": [9, 2]}', 0)
    node = start(local)
    decisions_from_now(node)
    assert (pool_of(node).least, pool_of(node).most) == (1, 3)


# --- with others -----------------------------------------------------------------------------------------
def test_pools_share_the_workers_of_a_node(local, start):
    """Who came first may have more for a moment: no busy worker is stopped, but one that is free leaves."""
    for name in ("a", "b"):
        local.pool(name, workers=(1, 4), max_wait="1s")

    def work() -> None:
        time.sleep(0.02)

    for name in ("a", "b"):
        local.task(queue=name, name=name)(work).enqueue_many([()] * 4000)
    node = start(local, max_workers=4)
    until(lambda: [size(node, name) for name in ("a", "b")] == [2, 2], "each has its part")
    decisions_from_now(node, name="a")
    until(lambda: [size(node, name) for name in ("a", "b")] == [2, 2], "each has its part again")
    assert [node._scaling.decision_of(name).wanted for name in ("a", "b")] == [2, 2]


def test_every_node_knows_the_pools_of_all(local, start):
    local.pool("default", workers=(1, 3))

    @local.task
    def nothing() -> None: ...

    first, second = start(local, lease=1.5), start(local, lease=1.5)
    until(lambda: len(first.report().fleet) == 2 == len(second.report().fleet), "both")
    shares = until(
        lambda: len(found := shares_of(local.store.counts().nodes)) == 2 and found, "both in the store"
    )
    assert {(share.name, share.least, share.most) for share in shares} == {("default", 1, 3)}


def test_a_count_that_was_made_in_a_hurry_is_learned_from_too(local, start):
    @local.task(name="nap")
    def nap() -> None: ...

    node = start(local)
    until(lambda: node._scaling.decision_of("default"), "a decision")
    node._scaling.stop(10.0)
    all_ended(nap.enqueue_many([()] * 5))
    until(lambda: node._scaling.counting.look(soon=True), "a count just now")
    node._scaling._round()
    assert node._scaling._pools["default"].watch.estimates.tasks["nap"].weight


def test_what_was_learned_outlives_the_node(local, start):
    @local.task(name="nap")
    def nap() -> None:
        time.sleep(0.02)

    first = start(local)
    all_ended(nap.enqueue_many([()] * 20))
    until(lambda: "nap" in first._scaling._pools["default"].watch.estimates.tasks, "it was learned")
    first.stop()
    known = until(lambda: local.store.record("estimates/default").value, "it was written down")
    assert 0.01 < msgspec.json.decode(known)["nap"][0] < 1.0
    second = start(local)
    until(lambda: second._scaling.decision_of("default"), "a decision")
    assert "nap" in second._scaling._pools["default"].watch.estimates.tasks
