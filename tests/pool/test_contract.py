"""What callers of a ProcessPoolExecutor rely on at the edges: errors on futures, room in the queue, with."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from millpond import Pool
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, Gate

MakePool = Callable[..., Pool]
pytestmark = pytest.mark.timeout(40)


class Stop(BaseException):
    pass


class Exits:
    """Ends the program when it is pickled, in one of several ways."""

    def __init__(self, way: str) -> None:
        self.way = way

    def __reduce__(self) -> Any:
        if self.way == "exit":
            sys.exit(3)
        if self.way == "signal":
            signal.raise_signal(signal.SIGUSR1)
        raise {"interrupt": KeyboardInterrupt, "other": Stop, "error": ValueError}[self.way]


def leave(*_: object) -> None:
    sys.exit(4)


@pytest.mark.parametrize(("way", "error"), [("exit", SystemExit), ("error", ValueError)])
def test_what_pickling_raises_lands_on_the_future_and_keeps_no_place_in_the_queue(
    way: str, error: type[BaseException], new_pool: MakePool
) -> None:
    pool = new_pool(1, max_queue=2, when_full="raise")
    for _ in range(5):
        assert isinstance(pool.submit(repr, Exits(way)).exception(PATIENCE), error)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize(
    ("way", "error"), [("interrupt", KeyboardInterrupt), ("other", Stop), ("signal", SystemExit)]
)
def test_what_is_meant_for_the_submitting_thread_leaves_submit_and_keeps_no_place_either(
    way: str, error: type[BaseException], new_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGUSR1, leave)
    try:
        pool = new_pool(1, max_queue=2, when_full="raise")
        for _ in range(5):
            with pytest.raises(error):
                pool.submit(repr, Exits(way))
        assert pool.submit(tasks.square, 3).result(PATIENCE) == 9
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_with_left_by_a_cancelled_coroutine_waits_for_its_tasks(new_pool: MakePool, gate: Gate) -> None:
    futures = []

    async def work() -> None:
        with new_pool(1) as pool:
            futures.append(pool.submit(tasks.hold, gate.folder))
            await asyncio.to_thread(gate.arrive)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            threading.Timer(0.1, gate.open).start()
            await asyncio.sleep(PATIENCE)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert futures[0].result(0) == "-"


def test_with_left_by_a_closed_generator_waits_for_its_tasks(new_pool: MakePool, gate: Gate) -> None:
    def work() -> Iterator[Any]:
        with new_pool(1) as pool:
            yield pool.submit(tasks.hold, gate.folder)

    steps = work()
    future = next(steps)
    gate.arrive()
    threading.Timer(0.1, gate.open).start()
    steps.close()  # type: ignore[attr-defined]
    assert future.result(0) == "-"


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int = 0
    detail: str = ""


def raise_frozen(*args: Any) -> None:
    raise Frozen(*args)


@pytest.mark.parametrize("args", [(), (3,), (4, "detail")])
def test_an_exception_that_refuses_assignments_keeps_its_type_and_its_fields(
    args: tuple[Any, ...], new_pool: MakePool
) -> None:
    error = new_pool(1).submit(raise_frozen, *args).exception(PATIENCE)
    assert type(error) is Frozen
    assert error == Frozen(*args)
    assert "raise_frozen" in str(error.__cause__)
