"""When the fence of a worker comes down: as soon as it holds nothing that must stop there, and not before."""

from __future__ import annotations

import pytest

from millpond.pool.channel import shared_page as layout
from millpond.pool.process.worker_link import Doom
from tests.pool_parts.two_ends import TwoEnds

UNTIL, LATER = 10**18, 2 * 10**18


@pytest.fixture
def both():
    with TwoEnds() as made:
        yield made


def send(both, *, fenced):
    """As an engine does: the fence first, then the task."""
    task = both.new_task()
    task.body, task.fenced = b"", fenced
    if fenced:
        both.link.put_fence(task, UNTIL)
    both.link.send_tasks([task])
    return task


def answer(both, task):
    both.outbox.answer(task.number, 1, "done", True, 0)
    both.collect()


def fence(both):
    return both.link.page.words[layout.FENCE]


def test_it_comes_down_with_the_answer_of_the_last_fenced_task(both):
    first, plain, last = send(both, fenced=True), send(both, fenced=False), send(both, fenced=True)
    for task in (last, first):
        assert fence(both) == UNTIL
        answer(both, task)
    assert fence(both) == 0
    assert list(both.link.inflight.values()) == [plain]


def test_it_comes_down_when_a_fenced_task_that_has_not_begun_is_recalled(both):
    running = send(both, fenced=False)
    both.link.tickets_left()  # the worker has taken its ticket
    behind = send(both, fenced=True)
    assert both.link.recall() == [behind]
    assert fence(both) == 0
    assert list(both.link.inflight.values()) == [running]


def test_it_stays_while_the_worker_is_killed_for_a_fenced_task(both):
    task = send(both, fenced=True)
    doom = Doom(task.number, "timeout", 0.0, lambda _: TimeoutError())
    both.link.doomed.append((both.link.inflight.pop(task.number), doom))
    both.collect()
    both.link.move_fence(LATER)
    assert fence(both) == LATER


def test_a_renewal_moves_it_only_where_there_is_one(both):
    task = send(both, fenced=True)
    both.link.move_fence(LATER)
    assert fence(both) == LATER
    answer(both, task)
    both.link.move_fence(UNTIL)
    assert fence(both) == 0
