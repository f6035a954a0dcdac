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

    def mend(self) -> list[Any]:
        """What is in here; every step was atomic."""
        return list(self._tasks)

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

    def mend(self) -> list[Any]:
        """Make the books agree with the lines again, after an interrupt; returns what is in here."""
        self._lines = {priority: line for priority, line in self._lines.items() if line}
        self._order = sorted(-priority for priority in self._lines)
        self._top = self._lines[-self._order[0]] if self._order else deque()
        self._count = sum(map(len, self._lines.values()))
        return [task for line in self._lines.values() for task in line]

    def __len__(self) -> int:
        return self._count


class Guarded:
    """A queue of the user's: if it ever fails, every task in it fails with that error, and it is not
    asked again. It may not lose, repeat or invent tasks either."""

    def __init__(self, inner: TaskQueue) -> None:
        self._inner = inner
        self._waiting: dict[int, Any] = {}
        self._failure: Exception | None = None
        if hasattr(inner, "peek"):
            self.peek = self._peek

    def put(self, task: Any) -> None:
        """Take a task in."""
        self._waiting[task.number] = task
        if self._failure is None:
            self._ask(lambda: self._inner.put(task))

    def take(self) -> Any:
        """The next task; after a failure, the next of those to be told."""
        if self._failure is None:
            task = self._ask(lambda: self._check(self._inner.take()))
            if task is not None:
                del self._waiting[task.number]
                return task
        task = self._waiting.pop(next(iter(self._waiting)))
        task.spoiled = self._failure
        return task

    def _peek(self) -> Any:
        """The next task, left where it is."""
        if self._failure is None:
            task = self._ask(lambda: self._check(self._inner.peek()))  # type: ignore[attr-defined]
            if task is not None:
                return task
        return next(iter(self._waiting.values()))

    def mend(self) -> list[Any]:
        """What is in here, after an interrupt."""
        return list(self._waiting.values())

    def __len__(self) -> int:
        return len(self._waiting)

    def _check(self, task: Any) -> Any:
        if getattr(task, "number", None) not in self._waiting:
            raise LookupError(f"the task queue returned {task!r}, which is not waiting in it")
        return task

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except Exception as error:
            self._failure = error
            return None


def make_queue(choice: Any) -> Fifo | ByPriority | Guarded:
    """The queue named or made by the `queue` option."""
    if choice == "fifo":
        return Fifo()
    if choice == "priority":
        return ByPriority()
    if callable(choice):
        queue = choice()
        if isinstance(queue, TaskQueue):
            return Guarded(queue)
        raise OptionError(f"queue={choice!r} made {queue!r}, which lacks put(), take() or len()")
    raise OptionError(f"queue must be 'fifo', 'priority' or a factory, not {choice!r}")
