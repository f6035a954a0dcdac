"""From how a job ended in its pool to what the store is told: the line of what is not settled yet.

Every end comes through here: a value, an exception, a dead worker, a timeout, a withdrawal. What the
store has not acknowledged stays in the line; nothing is dropped but what the store gave to others.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Collection
from itertools import islice
from typing import Any, NamedTuple

from millpond.errors import (
    PoolClosed,
    PoolDegraded,
    PoolError,
    StoreError,
    TaskKilled,
    TaskTimeout,
    WorkerDied,
)
from millpond.job import (
    MICROSECONDS,
    Cancelled,
    Crashed,
    Failure,
    Lost,
    Outcome,
    OutOfMemory,
    Raised,
    Released,
    Returned,
    Settlement,
    TimedOut,
)
from millpond.job_runner import failure_of
from millpond.node.jobs.claimed_job import JobTask, Withdrawn
from millpond.node.jobs.quarantine import Quarantine
from millpond.node.observability.job_tally import Tally
from millpond.node.worker.entry import TIMES, unpacked
from millpond.rules.jobs.settle_size import MOST_BYTES, cut
from millpond.settlement import completed, settlement
from millpond.system.boot_clock import microseconds

MOST_STACK = 16_000


class End(NamedTuple):
    """How one job ended, and when, in microseconds since this machine was started."""

    task: JobTask
    outcome: Outcome
    begun_at: int | None
    ended_at: int


Ended = tuple[JobTask, Any, BaseException | None, int]  # a value or an error, and when if it is that


class Line:
    """What ended and is not settled: filled by the pools, emptied by the claim loop."""

    def __init__(self) -> None:
        self.raw: deque[Ended] = deque()
        self.waiting: deque[Settlement] = deque()
        self.size = 0  # bytes of what waits
        self.quarantine = Quarantine()  # what the store does not take though it takes others
        self.broken_off = 0  # jobs that ran when their node had to end
        self.listens: Callable[[], bool] = lambda: False  # does a subscriber want each job that returned?
        self.is_heard = False  # the same, asked once for many ends
        self.told: Callable[[End, Outcome, Settlement, int | None], object] = lambda *_: None
        self.ring: Callable[[], object] = list  # set by the claim loop

    def add(self, task: JobTask, value: Any, error: BaseException | None) -> None:
        """A job has ended; called by the pools, inside their turns."""
        self.raw.append((task, value, error, 0 if error is None else microseconds()))
        self.ring()

    def __len__(self) -> int:
        return len(self.raw) + len(self.waiting) + len(self.quarantine)

    @property
    def total(self) -> int:
        """Bytes of all that the store has not taken."""
        return self.size + self.quarantine.size

    def unsettled(self) -> int:
        """The same, with what nobody has looked at since it ended."""
        return self.total + sum(len(end[1]) for end in list(self.raw) if type(end[1]) is bytes)

    def end(self, task: JobTask, value: Any, error: BaseException | None, at: int) -> End:
        """What the pools have put in, as an end."""
        if error is None:
            end = End(task, *unpacked(value))
        else:
            end = End(task, _outcome(error), _begun(task, error, at), at)
        if task.interrupted and isinstance(end.outcome, Raised):  # whatever it made of what we sent it
            return end._replace(outcome=Lost(started=True))
        return end

    def put_returned(self, task: JobTask, value: bytes, node: bytes, offset: int, tally: Tally) -> float:
        """The short way for a job that returned and of which nothing else is known; gives its run time."""
        begun, ended = TIMES.unpack_from(value)
        link = task.link
        said = completed(
            task.job,
            value[TIMES.size :],
            node,
            now=ended + offset,
            started_at=begun + offset,
            worker=0 if link is None else link.pid,
        )
        self.waiting.append(said)
        self.size += size_of(said)
        if self.is_heard or task.job.options.trace:
            outcome = Returned(value[TIMES.size :])
            self.told(End(task, outcome, begun, ended), outcome, said, None if link is None else link.pid)
        run: int = ended - begun
        tally.returned(begun + offset - task.job.run_at, run)
        return max(0, run) / MICROSECONDS

    def put(self, end: End, node: str, offset: int, tally: Tally) -> Outcome:
        """Put the verdict on an end in line; `offset` is the store's clock minus that of the end's times.
        Returns what the end counts as: a worker that died of our SIGTERM has not crashed."""
        outcome = end.outcome
        if end.task.cancelling_at is not None:
            outcome = _if_cancelled(outcome)
        elif end.task.stopped and isinstance(outcome, Crashed | OutOfMemory):
            outcome = Lost(started=True)  # our SIGTERM was the death of its worker
        self.broken_off += end.task.stopped and type(outcome) is Lost
        begun = None if end.begun_at is None else end.begun_at + offset
        link = end.task.link
        pid = None if link is None else link.pid
        if link is not None and _is_failure(outcome):
            link.failed += 1
        said = settlement(
            end.task.job, outcome, node, now=end.ended_at + offset, started_at=begun, worker=pid
        )
        self.waiting.append(said)
        self.size += size_of(said)
        tally.ended(said, outcome)
        self.told(end, outcome, said, pid)
        return outcome

    def batch(self, most: int) -> list[Settlement]:
        """The first in line that go together; they stay there until `settled` says how many are done."""
        if self.size > MOST_BYTES:
            most = cut(map(size_of, self.waiting), most)
        return self.first(most)

    def first(self, count: int) -> list[Settlement]:
        """So many of them, if there are."""
        if len(self.waiting) <= count:
            return list(self.waiting)
        return list(islice(self.waiting, count))

    def settled(self, count: int) -> None:
        """The store has taken the first `count`."""
        if count == len(self.waiting):
            self.waiting.clear()
            self.size = count = 0
        for _ in range(count):
            self.size -= size_of(self.waiting.popleft())

    def isolate(self, said: Settlement, error: StoreError | None, now: float, took: float = 0.0) -> None:
        """Let an end wait in quarantine; `settled` or `remove` takes it out of the line."""
        self.quarantine.add(said, size_of(said), error, now, took)

    def remove(self, said: Collection[Settlement]) -> None:
        """Forget some ends, wherever they wait."""
        gone = {(one.id, one.token) for one in said}
        self.waiting = deque(one for one in self.waiting if (one.id, one.token) not in gone)
        self.size = sum(map(size_of, self.waiting))
        self.quarantine.remove(said)

    def drop_all(self) -> int:
        """The store gave all our jobs to others; returns how many ends are not wanted any more."""
        dropped = len(self.waiting) + self.quarantine.drop_all()
        self.waiting.clear()
        self.size = 0
        return dropped


def size_of(said: Settlement) -> int:
    """About how many bytes a settlement takes."""
    transition = said.transition
    return 500 + len(transition.line) + len(transition.result or b"")


def _begun(task: JobTask, error: BaseException, at: int) -> int | None:
    """When an execution that did not come back began; None if it never did."""
    if isinstance(error, WorkerDied) and error.ran_for is not None:
        return at - round(error.ran_for * MICROSECONDS)
    if task.begun_at is not None:
        since = microseconds() - at  # it may have ended long ago, while the store was away
        return at - max(0, round((time.monotonic() - task.begun_at) * MICROSECONDS) - since)
    if isinstance(error, TaskTimeout):
        return at - round((task.options.timeout or 0.0) * MICROSECONDS)
    has_begun = isinstance(error, WorkerDied | CancelledError) or (
        error.began if isinstance(error, TaskKilled) else type(error) is PoolError
    )
    return at if has_begun else None


def _outcome(error: BaseException) -> Outcome:
    """What an end that is not a value means for the job."""
    if isinstance(error, TaskTimeout):
        return TimedOut(_failure(error, error.stack))
    if isinstance(error, WorkerDied):
        if error.lost:  # whoever killed the template: any job of any pool may have
            return Lost(started=True)
        if error.out_of_memory and error.suspects == 1:
            return OutOfMemory(_failure(error, error.stack))
        return Crashed(_failure(error, error.stack), suspects=error.suspects)
    if isinstance(error, TaskKilled):  # by this node: it is stopping, or may not hold the job any longer
        return Lost(started=True) if error.began else Released()
    if isinstance(error, Withdrawn | PoolClosed | PoolDegraded):  # it never began
        return Released()
    if type(error) is PoolError:  # the pool failed under a job that had begun: that is no fault of the job's
        return Lost(started=True)
    return Raised(failure_of(error))


def _is_failure(outcome: Outcome) -> bool:
    """Did a job that ran to its end bring no result? A worker that dies or is killed counts for itself."""
    if isinstance(outcome, Returned):
        return outcome.refused is not None
    return isinstance(outcome, Raised | TimedOut)


def _failure(error: BaseException, stack: str) -> Failure:
    return Failure(type(error).__name__, str(error), stack[-MOST_STACK:])


def _if_cancelled(outcome: Outcome) -> Outcome:
    """Of a job whose end was asked for: being stopped is that end; an end of its own stays its own."""
    is_ours = isinstance(outcome, Crashed | OutOfMemory | Lost | TimedOut | Released | Raised)
    return Cancelled() if is_ours else outcome
