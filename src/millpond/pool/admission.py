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
