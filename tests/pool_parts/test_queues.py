"""The waiting lines: nothing is lost or doubled, and the order is the promised one."""

from collections import deque
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.errors import OptionError
from millpond.pool.task_queue import ByPriority, Fifo, Guarded, TaskQueue, make_queue

calm = settings(deadline=None)
steps = st.lists(st.none() | st.integers(-3, 3))  # a priority to put, or None: take one


def run(queue, steps, next_of):
    """Drive a queue beside a plain list; `next_of` says which of the list must come next."""
    line: list = []
    for number, step in enumerate([*steps, *[None] * len(steps)]):
        if step is not None:
            task = SimpleNamespace(options=SimpleNamespace(priority=step), number=number)
            queue.put(task)
            line.append(task)
        elif line:
            expected = next_of(line)
            assert queue.peek() is expected
            assert queue.take() is expected
            line.remove(expected)
        assert len(queue) == len(line)
    assert not line


@calm
@given(steps)
def test_first_come_first_served(steps):
    run(Fifo(), steps, lambda line: line[0])


@calm
@given(steps)
def test_the_highest_priority_first_and_first_come_within_one(steps):
    run(ByPriority(), steps, lambda line: max(line, key=lambda task: (task.options.priority, -task.number)))


def test_queues_are_chosen_by_name_or_made_by_a_factory():
    class Own:
        def __init__(self):
            self.tasks: deque = deque()

        def put(self, task):
            self.tasks.append(task)

        def take(self):
            return self.tasks.pop()

        def __len__(self):
            return len(self.tasks)

    assert isinstance(make_queue("fifo"), Fifo)
    assert isinstance(make_queue("priority"), ByPriority)
    assert isinstance(make_queue(Own), Guarded)
    assert isinstance(make_queue(Own), TaskQueue)


@pytest.mark.parametrize("choice", ["lifo", None, 3, deque, list])
def test_what_is_no_queue_is_refused_with_a_reason(choice):
    with pytest.raises(OptionError, match="queue"):
        make_queue(choice)
