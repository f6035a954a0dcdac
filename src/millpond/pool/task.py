"""One submitted call, as the engines keep it until it is settled: the future and its record in one.

One object instead of two is worth a third of the cost of a short task. Users see a Future; the engines
use the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millpond.pool.channel.functions import Function, name_of
from millpond.pool.future import Owner, PoolFuture
from millpond.pool.options import TaskOptions

if TYPE_CHECKING:
    from millpond.pool.channel.pickling import Packed
    from millpond.pool.process.worker_link import Doom, Link
    from millpond.pool.queue_room import Place


class ChunkBroken(Exception):
    """A chunk of a map lost its worker at one item."""

    def __init__(self, index: int, error: BaseException) -> None:
        super().__init__(index)
        self.index = index
        self.error = error


class Task(PoolFuture[Any]):
    """A future that knows its call, its options and where it is."""

    # Defaults on the class: an ordinary task never sets these.
    items = 0  # calls in it, if it is a chunk of a map
    crashes = 0
    halts = 0  # workers that stood still over what it needs, before it began
    losses = 0  # how often it went down with the template
    estimate = 0.0
    swells = False  # it takes memory that others need: to kill it must not wait long for its stack
    fenced = False  # must have stopped when the pool's fence is reached
    place: Place | None = None  # in a bounded queue, while it waits
    link: Link | None = None
    region: int | None = None
    function: Function = None  # type: ignore[assignment]
    packed: Packed | None = None  # only with large buffers or definitions
    rejected_at: float | None = None
    doom: Doom | None = None  # it was told to stop, and answered
    ended_in_line = False  # cancelled or rejected, and still in the queue
    spoiled: Exception | None = None  # the custom queue that held it failed

    def __init__(self, number: int, owner: Owner, options: TaskOptions, submitted: int) -> None:
        self.number = number
        self._owner = owner
        self.options = options
        self.submitted = submitted  # ns on the monotonic clock

    if TYPE_CHECKING:
        body: Any  # header and payload, ready to send; for threads: what to call

    @property
    def name(self) -> str:
        """The function, for messages."""
        if self.function is not None:
            return self.function.name
        body = self.body  # a thread's task carries its call; it lets go of it when it is settled
        return "a task" if body is None else name_of(body[0])

    @property
    def bulky(self) -> bool:
        """Is there more to it than its run time shows?"""
        return bool(self.items or (self.packed is not None and self.packed.buffers))

    @property
    def submitted_at(self) -> float:
        """When it was submitted, on the monotonic clock."""
        return self.submitted / 1e9

    @property
    def deadline_at(self) -> float | None:
        """The instant by which it must be done."""
        deadline = self.options.deadline
        return None if deadline is None else self.submitted / 1e9 + deadline
