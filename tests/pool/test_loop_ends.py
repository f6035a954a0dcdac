"""The loop of an async worker ends by itself: its worker has died, no task pays for another."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

import pytest

from millpond import WorkerDied
from tests.pool import tasks
from tests.pool.tasks import PATIENCE, untyped

forgotten: list[asyncio.Future[None]] = []


async def leave() -> None:
    sys.exit(3)


def forget_a_task() -> None:
    forgotten.append(asyncio.ensure_future(leave()))


def forget_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, 3)


def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()


def interrupt_the_loop() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    asyncio.get_running_loop().call_soon(interrupt)


def close_every_descriptor() -> None:
    os.closerange(3, 1000)


@untyped
async def end_the_loop(end: Callable[[], None]) -> str:
    """The task itself is done when the loop ends."""
    end()
    return "done"


ENDS = [forget_a_task, forget_a_callback, stop_the_loop, interrupt_the_loop, close_every_descriptor]


@pytest.mark.parametrize("end", ENDS)
def test_a_loop_that_ends_makes_suspects_of_the_tasks_in_it_and_cancels_none(new_pool, gate, end):
    pool = new_pool(1, kind="async", concurrency=4)
    neighbours = [pool.submit(tasks.hold_async, gate.folder, number) for number in range(3)]
    gate.arrive(3)
    culprit = pool.submit(end_the_loop, end)
    for future in neighbours:
        with pytest.raises(WorkerDied) as caught:
            future.result(PATIENCE)
        assert caught.value.suspects in (3, 4)  # four if the loop ended before the culprit's answer
    assert culprit.exception(PATIENCE) is None or isinstance(culprit.exception(), WorkerDied)
    assert pool.submit(tasks.square, 3).result(PATIENCE) == 9


@pytest.mark.parametrize("end", ENDS)
def test_a_task_in_a_loop_that_ends_does_not_run_what_it_would_do_when_cancelled(
    new_pool, gate, journal, end
):
    pool = new_pool(1, kind="async", concurrency=2)
    neighbour = pool.submit(note_a_cancel, gate.folder, journal)
    gate.arrive()
    pool.submit(end_the_loop, end)
    with pytest.raises(WorkerDied):
        neighbour.result(PATIENCE)
    assert not journal.exists()


@untyped
async def note_a_cancel(folder, journal):
    try:
        await tasks.hold_async(folder)
    except asyncio.CancelledError:
        tasks.note(journal, "cancelled")
        raise
