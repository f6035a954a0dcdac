"""A callback or a subscriber that does not return: what it holds up, and what it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from millpond import Pool
from tests.pool.tasks import identity

LONG = 120.0
Pools = Callable[..., Pool]


class Held:
    """A callback that waits until the test lets it pass."""

    def __init__(self) -> None:
        self.entered, self.let_pass = threading.Event(), threading.Event()

    def __call__(self, _: object) -> None:
        self.entered.set()
        self.let_pass.wait(LONG)


@pytest.mark.parametrize("where", ["callback", "subscriber"])
def test_health_is_degraded_while_a_callback_or_subscriber_holds_up_the_dispatcher(
    new_pool: Pools, where: str
) -> None:
    pool, held = new_pool(1), Held()
    if where == "subscriber":
        pool.subscribe(held)
    first = pool.submit(identity, 1)
    if where == "callback":
        first.add_done_callback(held)
    assert held.entered.wait(LONG)
    while pool.health().status == "ok":
        assert not held.let_pass.is_set()
    [reason] = pool.health().reasons
    assert "the dispatcher has not come round for" in reason
    assert "threading.py" in reason  # the place where it hangs
    held.let_pass.set()
    assert pool.submit(identity, 2).result(LONG) == 2
    while pool.health().status != "ok":
        pass


def hang(released: threading.Event, entered: threading.Event) -> None:
    entered.set()
    released.wait(LONG)


class HangsWhenDropped:
    """Its destructor does not return before the test lets it pass."""

    def __init__(self, released: threading.Event, entered: threading.Event) -> None:
        self.released, self.entered = released, entered

    def __del__(self) -> None:
        hang(self.released, self.entered)


def drop(released: threading.Event, entered: threading.Event) -> None:
    HangsWhenDropped(released, entered)


@pytest.mark.parametrize("how", ["task", "destructor", "callback"])
def test_a_thread_that_hangs_holds_up_no_task_for_which_another_thread_is_free(
    new_pool: Pools, how: str
) -> None:
    pool = new_pool(2, kind="thread")
    released, entered = threading.Event(), threading.Event()
    if how == "callback":
        begun = threading.Event()
        first: Future[Any] = pool.submit(
            begun.wait, LONG
        )  # so that the callback runs in its thread, not in this one
        first.add_done_callback(lambda _: hang(released, entered))
        begun.set()
    else:
        first = pool.submit({"task": hang, "destructor": drop}[how], released, entered)
    assert entered.wait(LONG)
    assert [pool.submit(identity, number).result(LONG) for number in range(20)] == list(range(20))
    released.set()
    first.result(LONG)
