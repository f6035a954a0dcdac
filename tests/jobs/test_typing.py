"""Types: a task keeps its parameters and its result. mypy reads this file; running it shows it is true.

Every `type: ignore` here is a mistake that mypy must find: an ignore that is not needed is an error itself.
"""

from collections.abc import Coroutine
from typing import Any, assert_type

import pytest

from millpond import App, Call, JobHandle, Task, chain
from millpond.errors import ArgumentsRefused
from millpond.task import AsyncTask, Enqueuer

app = App("memory://")


@app.task(queue="images", timeout="30s")
def resize(path: str, width: int) -> str:
    return f"{path}@{width}"


@app.task
def bare(number: int = 1) -> list[int]:
    return [number]


@app.task(queue="mail")
async def send(user_id: int) -> bool:
    return user_id > 0


@app.task
async def bare_async() -> None: ...


def test_a_handle_has_the_type_of_the_result() -> None:
    assert_type(resize.enqueue("a", width=1), JobHandle[str])
    assert_type(bare.enqueue(), JobHandle[list[int]])
    assert_type(send.enqueue(1), JobHandle[bool])
    assert_type(bare_async.enqueue(), JobHandle[None])
    assert_type(resize.enqueue_many([("a", 1)]), list[JobHandle[str]])
    assert_type(send.using(delay=5, queue="mail").enqueue(1), JobHandle[bool])


async def test_so_has_that_of_async_code() -> None:
    assert_type(await resize.aenqueue("a", 1), JobHandle[str])
    assert_type(await send.aenqueue(1), JobHandle[bool])
    assert_type(await send.aenqueue_many([(1,)]), list[JobHandle[bool]])
    assert_type(await assert_type(send(1), Coroutine[Any, Any, bool]), bool)


def test_a_task_is_called_as_its_function() -> None:
    assert_type(resize("a", 1), str)
    assert_type(bare(), list[int])
    assert isinstance(resize, Task)
    assert isinstance(send, AsyncTask)


def test_options_and_steps_keep_the_types() -> None:
    assert_type(resize.using(priority=3).bind("a", 1), Call[str])
    assert isinstance(resize.using(priority=3), Enqueuer)
    chain(resize.bind("a", 1), send.bind(1))


def test_mistakes_are_found_by_mypy_and_again_when_they_are_made() -> None:
    for mistake in (
        lambda: resize.enqueue("a"),  # type: ignore[call-arg]
        lambda: resize.enqueue("a", "wide"),  # type: ignore[arg-type]
        lambda: send.enqueue(user="a"),  # type: ignore[call-arg]
        lambda: send.using(delay=1).enqueue("a"),  # type: ignore[arg-type]
        lambda: resize.bind(1, 2),  # type: ignore[arg-type]
    ):
        with pytest.raises(ArgumentsRefused):
            mistake()
    with pytest.raises(TypeError, match="did you mean 'delay'"):
        resize.using(dealy=1)  # type: ignore[call-arg]
