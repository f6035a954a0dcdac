"""The waiting line of a pool. A queue is three methods: put, take and len.

The engine calls them from one thread at a time. A queue of your own may order tasks as it likes by
`task.options`, `task.name` and `task.submitted_at`; it must return every task it was given exactly once.
With a fourth method, peek(), short tasks travel in batches; without it, one at a time.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any, Protocol, runtime_checkable

from millpond.errors import OptionError


@runtime_checkable
class TaskQueue(Protocol):
    """What a pluggable queue must offer."""

    def put(self, task: Any) -> None:
        """Take a task in."""

    def take(self) -> Any:
        """Return the next task; called only while len() is above zero."""

    def __len__(self) -> int:
        """How many tasks wait."""


class Fifo:
    """First come, first served; priorities are ignored."""

    def __init__(self) -> None:
        self._tasks: deque[Any] = deque()
        self.put = self._tasks.append
        self.take = self._tasks.popleft

    def peek(self) -> Any:
        """The next task, left where it is."""
        return self._tasks[0]

    def __len__(self) -> int:
        return len(self._tasks)


class ByPriority:
    """Higher priority first, first come first served within one priority."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[Any]] = {}
        self._order: list[int] = []  # a heap of the negated priorities in use
        self._top: deque[Any] = deque()  # the line of the highest priority
        self._count = 0

    def put(self, task: Any) -> None:
        """Stand at the end of the line of its priority."""
        priority = task.options.priority
        line = self._lines.get(priority)
        if line is None:
            line = self._lines[priority] = deque()
            heapq.heappush(self._order, -priority)
            self._top = self._lines[-self._order[0]]
        line.append(task)
        self._count += 1

    def take(self) -> Any:
        """The first task of the highest line."""
        task = self._top.popleft()
        self._count -= 1
        if not self._top:
            del self._lines[-heapq.heappop(self._order)]
            if self._order:
                self._top = self._lines[-self._order[0]]
        return task

    def peek(self) -> Any:
        """The next task, left where it is."""
        return self._top[0]

    def __len__(self) -> int:
        return self._count


def make_queue(choice: Any) -> TaskQueue:
    """The queue named or made by the `queue` option."""
    if choice == "fifo":
        return Fifo()
    if choice == "priority":
        return ByPriority()
    if callable(choice):
        queue = choice()
        if isinstance(queue, TaskQueue):
            return queue
        raise OptionError(f"queue={choice!r} made {queue!r}, which lacks put(), take() or len()")
    raise OptionError(f"queue must be 'fifo', 'priority' or a factory, not {choice!r}")
