"""Options for some tasks, context that travels, views of large data, and what lives in `__main__`."""

from __future__ import annotations

import array
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Executor, wait
from typing import Any

import numpy as np
import pytest

from millpond import OptionError, Pool, TaskTimeout, WorkerDied
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate, answers, request_id

PROCESSES = ["process", "async"]
KINDS = [*PROCESSES, "thread"]
MakePool = Callable[..., Pool]
RunScript = Callable[..., str]
pytestmark = pytest.mark.timeout(40)
local_only: contextvars.ContextVar[int] = contextvars.ContextVar("local_only")


# --- using ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_options_never_mix_with_arguments(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    for submitter in (pool, pool.using(priority=3)):
        arguments = {"fn": 1, "self": 2, "timeout": 3, "priority": 4}
        assert submitter.submit(tasks.takes_option_names, **arguments).result(PATIENCE) == (1, 2, 3, 4)
        every = {"context": 1, "deadline": 2, "chunksize": 3, "kind": 4, "args": 5, "kwargs": 6, "call": 7}
        assert submitter.submit(tasks.report, 1, 2, **every).result(PATIENCE) == ((1, 2), every)


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_is_an_executor_and_ends_with_its_pool(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    with pool.using(priority=1) as view:
        assert isinstance(view, Executor)
        assert view.submit(tasks.square, 2).result(PATIENCE) == 4
    view.shutdown()
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    assert view.submit(tasks.square, 4).result(PATIENCE) == 16
    pool.shutdown()
    with pytest.raises(RuntimeError):
        view.submit(tasks.square, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_view_keeps_its_pool_alive(kind: str, new_pool: MakePool) -> None:
    view = Pool(1, kind=kind).using(priority=1)  # type: ignore[arg-type]
    try:
        assert view.submit(tasks.square, 3).result(PATIENCE) == 9
    finally:
        view._pool.shutdown()


def test_a_view_changes_only_what_it_names(new_pool: MakePool) -> None:
    pool = new_pool(1, timeout=0.2)
    with pytest.raises(TaskTimeout):
        pool.using(priority=3).submit(tasks.hang).result(PATIENCE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"prioritty": 1}, TypeError, "did you mean 'priority'"),
        ({"max_workers": 1}, TypeError, "max_workers"),
        ({"priority": "high"}, TypeError, "priority"),
        ({"priority": 1.5}, TypeError, "priority"),
        ({"priority": True}, TypeError, "priority"),
        ({"max_queue_age": 0}, OptionError, "max_queue_age"),
        ({"max_queue_age": "never"}, OptionError, "max_queue_age"),
        ({"context": "x"}, OptionError, "context"),
    ],
)
def test_a_view_refuses_what_it_cannot_do(
    kind: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Pool(1, kind=kind).using(**options)


@pytest.mark.parametrize("option", ["timeout", "deadline", "retries_on_crash"])
def test_a_view_of_threads_refuses_what_threads_cannot_do(option: str) -> None:
    with pytest.raises(OptionError, match=f"{option} cannot be had with kind='thread'"):
        Pool(1, kind="thread").using(**{option: 1})


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize(
    "options", [{"timeout": -1}, {"deadline": "later"}, {"retries_on_crash": -1}], ids=str
)
def test_a_view_of_processes_refuses_impossible_values(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        Pool(1, kind=kind).using(**options)


# --- context -------------------------------------------------------------------------------------------
def in_context(value: str, action: Callable[[], Any]) -> Any:
    """Do something where `request_id` has a value."""
    context = contextvars.copy_context()
    context.run(request_id.set, value)
    return context.run(action)


def test_a_thread_gets_the_whole_context_of_its_submitter(new_pool: MakePool) -> None:
    pool = new_pool(1, kind="thread", context=True)
    assert in_context("alice", lambda: pool.submit(tasks.see_request_id)).result(PATIENCE) == "alice"
    assert pool.submit(tasks.see_request_id).result(PATIENCE) == "nobody"


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_process_gets_the_variables_that_were_named(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, context=[request_id])
    assert in_context("alice", lambda: pool.submit(tasks.see_request_id)).result(PATIENCE) == "alice"
    assert pool.submit(tasks.see_request_id).result(PATIENCE) == "nobody"


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_coroutine_sees_the_context_too(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, context=[request_id])
    assert in_context("alice", lambda: pool.submit(tasks.request_id_later)).result(PATIENCE) == "alice"
    assert pool.submit(tasks.request_id_later).result(PATIENCE) == "nobody"


@pytest.mark.parametrize("kind", KINDS)
def test_context_is_carried_for_a_view_and_for_map(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    view = pool.using(context=True if kind == "thread" else [request_id])
    seen = in_context("bob", lambda: view.map(tasks.see_request_id, range(3), timeout=PATIENCE))
    assert list(seen) == ["bob"] * 3
    assert in_context("bob", lambda: pool.submit(tasks.see_request_id)).result(PATIENCE) == "nobody"


@pytest.mark.parametrize("kind", KINDS)
def test_with_context_arguments_stay_what_they_are(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, context=True if kind == "thread" else [request_id])
    named = {"values": 1, "call": 2, "args": 3, "kwargs": 4, "self": 5}
    assert pool.submit(tasks.report, 7, **named).result(PATIENCE) == ((7,), named)


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_crash_with_context_names_the_users_function(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, context=[request_id])
    with pytest.raises(WorkerDied, match=r"tasks\.crash did not finish"):
        pool.submit(tasks.crash).result(PATIENCE)


def test_a_thread_with_context_shows_the_users_function(new_pool: MakePool, gate: Gate) -> None:
    pool = new_pool(1, kind="thread", context=True)
    running = pool.submit(tasks.hold, gate.folder)
    gate.arrive()
    assert str(pool.statistics().workers[0].task).endswith("tasks.hold")
    gate.let_pass()
    running.result(PATIENCE)


def test_what_cannot_be_carried_is_refused_with_the_reason() -> None:
    hidden: contextvars.ContextVar[int] = contextvars.ContextVar("hidden")
    with pytest.raises(OptionError, match="cannot leave its process"):
        Pool(1, context=True)
    with pytest.raises(OptionError, match="not a ContextVar"):
        Pool(1, context=["request_id"])
    with pytest.raises(OptionError, match="not a global of an importable module"):
        Pool(1, context=[hidden])
    with pytest.raises(OptionError, match="True or False"):
        Pool(1, kind="thread", context=[request_id])


# --- views of large data -------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", PROCESSES)
def test_by_default_a_task_owns_writable_memory(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    for data in (bytearray(200_000), array.array("d", [1.0]) * 50_000, np.ones(100_000)):
        assert pool.submit(tasks.is_writable, data).result(PATIENCE)
    back = pool.submit(tasks.identity, np.arange(100_000)).result(PATIENCE)
    back[0] = 7
    assert back.sum() == sum(range(100_000)) + 7


@pytest.mark.parametrize("kind", PROCESSES)
def test_with_views_a_task_reads_the_arguments_where_they_lie(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind, views=True)
    data = np.arange(100_000)
    assert not pool.submit(tasks.is_writable, data).result(PATIENCE)
    assert answers([pool.submit(np.sum, data + n) for n in range(20)]) == [
        int(data.sum()) + 100_000 * n for n in range(20)
    ]


def test_threads_share_their_arguments(new_pool: MakePool) -> None:
    data = np.zeros(10)
    assert new_pool(1, kind="thread").submit(tasks.identity, data).result(PATIENCE) is data


# --- asynchronous and mixed use ------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_views_and_pool_share_the_same_workers(kind: str, new_pool: MakePool) -> None:
    pool = new_pool(1, kind=kind)
    futures = [pool.using(priority=n).submit(tasks.pid_of) for n in range(5)]
    assert not wait(futures, PATIENCE).not_done
    assert len({future.result() for future in futures}) == 1
    assert threading.active_count() < 20


# --- __main__ ------------------------------------------------------------------------------------------
MAIN = """
    import enum, sys
    from dataclasses import dataclass
    from millpond import Pool

    print("main runs")

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int

        def moved(self, by):
            return Point(self.x + by, self.y + by)

    class Colour(enum.Enum):
        RED = 1

    class Outer:
        class Inner:
            value = 5

    class Trouble(Exception):
        def __init__(self, code, point):
            super().__init__(code, point)
            self.code, self.point = code, point

    FACTOR = 3

    def helper(number):
        return number * FACTOR

    def scale(point):
        assert isinstance(point, Point), type(point)
        return Point(helper(point.x), helper(point.y))

    def is_red(colour):
        return colour is Colour.RED, Colour.RED

    def inner(value):
        assert isinstance(value, Outer.Inner)
        return Outer.Inner()

    def fail(point):
        raise Trouble(42, point)

    class Task:
        def __init__(self, base):
            self.base = base

        def __call__(self, number):
            return Point(self.base, number)

        def method(self, number):
            return self.base + number

    def read_flag():
        return flag

    def set_flag(value):
        global flag
        flag = value

    with Pool(2, kind=sys.argv[1], initializer=set_flag if sys.argv[1] != "thread" else None,
              initargs=("set",) if sys.argv[1] != "thread" else ()) as pool:
        scaled = pool.submit(scale, Point(1, 2)).result(8)
        assert type(scaled) is Point and scaled == Point(3, 6), scaled
        red, back = pool.submit(is_red, Colour.RED).result(8)
        assert red and back is Colour.RED
        assert type(pool.submit(inner, Outer.Inner()).result(8)) is Outer.Inner
        error = pool.submit(fail, Point(5, 6)).exception(8)
        assert type(error) is Trouble and error.code == 42 and error.point == Point(5, 6), repr(error)
        try:
            pool.submit(fail, Point(7, 8)).result(8)
        except Trouble as caught:
            assert caught.point == Point(7, 8)
        assert pool.submit(Task(7), 8).result(8) == Point(7, 8)
        assert pool.submit(Task(7).method, 8).result(8) == 15
        assert pool.submit(Point(1, 1).moved, 4).result(8) == Point(5, 5)
        assert pool.submit(Point, 4, y=5).result(8) == Point(4, 5)
        assert pool.submit(lambda point: point.moved(1), Point(0, 0)).result(8) == Point(1, 1)
        mapped = list(pool.map(scale, [Point(n, n) for n in range(200)]))
        assert mapped == [Point(3 * n, 3 * n) for n in range(200)]
        assert {type(point) for point in mapped} == {Point}
        assert {Point(1, 1): "found"}[pool.submit(Point, 1, 1).result(8)] == "found"
    print("all good")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_what_lives_in_main_travels_both_ways_and_main_is_never_run_again(
    kind: str, run_script: RunScript
) -> None:
    assert run_script(MAIN, kind).splitlines() == ["main runs", "all good"]


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_context_variable_of_main_is_refused_with_the_reason(kind: str, run_script: RunScript) -> None:
    printed = run_script(
        """
        import contextvars, sys
        from millpond import OptionError, Pool
        user = contextvars.ContextVar("user")
        try:
            Pool(1, kind=sys.argv[1], context=[user])
        except OptionError as error:
            print(error)
        """,
        kind,
    )
    assert "importable module" in printed
