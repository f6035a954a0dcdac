"""Getting into the line and out of it, the same for every engine: room, expiry."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable
from typing import Any

from millpond.errors import PoolClosed, PoolFull, TaskExpired
from millpond.pool.options import PoolOptions
from millpond.pool.queue_room import Place, Room
from millpond.pool.task import Task
from millpond.pool.task_queue import TaskQueue

MANY = 256  # tasks that have ended in the queue, above which they are taken out


def wait_for_room(room: Room, options: PoolOptions, closed: Callable[[], bool], *, may_block: bool) -> Place:
    """Take a place in a bounded queue, waiting for one if that is what the pool was told."""
    place = room.take()
    if place is not None:
        return place
    if options.when_full == "raise" or not may_block:
        raise PoolFull(
            f"the queue holds max_queue={options.max_queue} tasks already; "
            "submit later, raise max_queue, or use when_full='block'"
        )
    while (place := room.wait(0.2)) is None:
        if closed():
            raise PoolClosed("the pool was shut down while this task waited for room in its queue")
    return place


def leave_queue(room: Room | None, task: Task) -> None:
    """Give a task's place back, once."""
    place, task.place = task.place, None
    if room is not None and place is not None:
        room.give_back(place)


class EndedInLine:
    """Counts the tasks that have ended where they wait, and has them taken out when they are many.

    A queue gives its tasks in its own order only. So a task that is cancelled or rejected gives its place
    back at once and stays in the queue until its turn. Behind a long task that turn may not come: without
    the sweep such tasks would gather there without end. Shown in
    test_cancelled_tasks_do_not_gather_behind_a_long_one.
    """

    def __init__(self) -> None:
        self.count = 0

    def add(self, task: Task, room: Room | None) -> None:
        """A task has ended and is still in the queue."""
        leave_queue(room, task)
        task.ended_in_line = True
        self.count += 1

    def take(self, task: Task) -> None:
        """It has been taken out."""
        if task.ended_in_line:
            task.ended_in_line = False
            self.count -= 1

    def are_many(self, queue: TaskQueue) -> bool:
        """Is it time to sweep? As many were cancelled since the last time as a sweep looks at, or half."""
        return self.count > MANY and self.count * 2 > len(queue)

    def sweep(self, queue: TaskQueue, begin: Callable[[Task], object]) -> None:
        """If they are many, take out of the queue whatever has ended, each by `begin`. The others stay, in
        their order."""
        if not self.are_many(queue):
            return
        found: list[Task] = []
        try:
            while len(queue):
                found.append(queue.take())
        finally:  # an interrupt must not lose those that are between two places
            for task in found:
                if task.ended_in_line:
                    begin(task)
                else:
                    queue.put(task)


def belongs_to_call(error: BaseException) -> bool:
    """Was this raised by the pickling of a call? Then its future gets it; Ctrl-C and what a signal handler
    raises belong to the thread that submits."""
    if isinstance(error, Exception):
        return True
    return isinstance(error, SystemExit) and not _from_signal_handler(error)


def _from_signal_handler(error: BaseException) -> bool:
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(_function_of(handler), "__code__", None) for handler in handlers if callable(handler)}
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(frame.f_code in codes for frame in frames)


def _function_of(handler: Any) -> Any:
    handler = getattr(handler, "func", handler)  # a partial
    if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
        handler = getattr(type(handler), "__call__", handler)  # noqa: B004  an object that can be called
    return getattr(handler, "__func__", handler)


def expired_error(name: str, task: Task, now: float) -> TaskExpired:
    """What a task gets that waited too long."""
    waited = now - task.submitted_at
    return TaskExpired(f"{name} waited {waited:.3g} s and was rejected without having begun")
