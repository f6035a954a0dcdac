"""Every error Millpond raises, as one tree.

MillpondError
├── OptionError (ValueError)                 an option was given a value it cannot take
├── JobError
│   ├── UnknownTask (LookupError)            no task of that name is registered
│   ├── ArgumentsRefused (TypeError)         the arguments do not fit the task's signature
│   ├── PayloadRefused (ValueError)          a value cannot be stored as JSON
│   ├── UnknownJob (LookupError)             no job of that id is in the store
│   ├── JobFailed                            the job ended dead: there is no result
│   ├── JobCancelled                         the job was cancelled: there is no result
│   └── ResultTimeout (TimeoutError)         the job had not ended in time
├── StoreError
│   ├── StoreBusy (TimeoutError)             locked by somebody else for too long; nothing happened
│   ├── StoreUnavailable (ConnectionError)   cannot be reached; nothing happened
│   ├── OutcomeUnknown (ConnectionError)     the connection died; it may or may not have happened
│   ├── StoreRefused                         cannot be used as it is: says why and what to change
│   ├── SchemaOutdated                       needs `millpond migrate`, or newer code
│   ├── NodeRefused                          the node has no lease, or was rescued
│   └── Conflict                             a document was changed by somebody else
└── PoolError
    ├── WorkerDied (BrokenProcessPool)       the worker running this task died
    │   └── MemoryExceeded                   ... because the task outgrew max_memory
    ├── TaskTimeout (TimeoutError)           the task ran longer than it was allowed
    ├── TaskExpired (TimeoutError)           the task waited longer than it was allowed; never ran
    ├── TaskKilled                           pool.kill(future) or a hurried shutdown stopped it
    ├── PayloadError (BrokenProcessPool)     arguments or a result could not be unpickled on arrival
    ├── PoolFull                             the bounded queue has no room
    ├── PoolClosed (RuntimeError)            submitted after shutdown, or in a forked child
    └── PoolDegraded (BrokenProcessPool)     the pool cannot start workers at the moment

Each error carries its facts as attributes; the text is for people and says what to do next.
"""

from __future__ import annotations

import signal as signals
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple


class MillpondError(Exception):
    """The root of every error raised by Millpond."""


class OptionError(MillpondError, ValueError):
    """An option has a value it cannot take; the message names the option and a valid example."""


# --- jobs -----------------------------------------------------------------------------------------------
class JobError(MillpondError):
    """The root of what goes wrong with a job before or after it runs."""


class UnknownTask(JobError, LookupError):
    """No task of that name is registered with the app."""


class ArgumentsRefused(JobError, TypeError):
    """The arguments do not fit the task's signature or its annotations."""


class PayloadRefused(JobError, ValueError):
    """A value cannot be stored; `path` says where it is."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class UnknownJob(JobError, LookupError):
    """No job of that id is in the store: it never was, or it has been pruned."""


class JobFailed(JobError):
    """The job ended dead; `reason`, `error` (its type), `job_message` and `traceback` say how."""

    def __init__(
        self, message: str, reason: str = "", error: str = "", job_message: str = "", traceback: str = ""
    ) -> None:
        super().__init__(message)
        self.reason, self.error, self.job_message, self.traceback = reason, error, job_message, traceback


class JobCancelled(JobError):
    """The job was cancelled; `reason` says by what."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class ResultTimeout(JobError, TimeoutError):
    """The job had not ended when the wait was over; it goes on."""


# --- stores ---------------------------------------------------------------------------------------------
class StoreError(MillpondError):
    """The root of what a store may raise.

    Cancel, replay and prune go page by page: `done` jobs were done by pages before the one that failed.
    """

    done: int = 0


class StoreBusy(StoreError, TimeoutError):
    """Somebody else held the store for longer than the bound; nothing happened, try again."""


class StoreUnavailable(StoreError, ConnectionError):
    """The store cannot be reached; nothing happened."""


class OutcomeUnknown(StoreError, ConnectionError):
    """The connection died after the store may have done it: ask again by id, or repeat with the same id.

    From an enqueue it carries the `ids` of the jobs that may or may not exist.
    """

    ids: tuple[str, ...] = ()


class StoreRefused(StoreError):
    """The store cannot be used as it is; the message says why and what to change."""


class SchemaOutdated(StoreError):
    """The store's schema is older than this version of Millpond needs, or takes only newer versions."""


class NodeRefused(StoreError):
    """The node has no lease, or it was rescued: it must go on under a new incarnation."""


class Conflict(StoreError):
    """A document was changed by somebody else since it was read."""


# --- pools ----------------------------------------------------------------------------------------------
class PoolError(MillpondError):
    """The root of what a pool may raise or put on a future."""


class Death(NamedTuple):
    """What is known about the end of a worker process."""

    pid: int
    exitcode: int | None = None
    signal: int | None = None
    ran_for: float | None = None
    suspects: int = 1
    out_of_memory: bool = False
    output: str = ""
    stack: str = ""
    lost: bool = False  # the process that starts the workers died, and all of them with it

    def sentence(self) -> str:
        """How the process ended, in words a person can act on."""
        if self.signal is not None:
            try:
                name = signals.Signals(self.signal).name
            except ValueError:
                name = f"signal {self.signal}"
            cause = f"was killed by {name}"
            if self.out_of_memory:
                cause += (
                    " (the kernel reports an out-of-memory kill: give the task less, or the machine more)"
                )
        elif self.exitcode is not None:
            cause = f"exited with code {self.exitcode}"
        else:
            cause = "disappeared"
        after = "" if self.ran_for is None else f" {self.ran_for:.3g} s into the task"
        if self.lost:
            after += ", with all others: the process that had started them was gone"
        return f"worker {self.pid} {cause}{after}"


class WorkerDied(PoolError, BrokenProcessPool):
    """The worker died while it ran this task; every other task of the pool is unaffected.

    With `suspects` above one, several tasks had begun in that worker and any of them may be the cause. With
    none, it was stopped because of another task that ran too long or had to be killed.
    """

    def __init__(self, message: str, death: Death) -> None:
        super().__init__(message)
        self.death = death
        self.pid = death.pid
        self.exitcode = death.exitcode
        self.signal = death.signal
        self.ran_for = death.ran_for
        self.suspects = death.suspects
        self.out_of_memory = death.out_of_memory
        self.output = death.output
        self.stack = death.stack
        self.lost = death.lost
        if death.stack:
            self.add_note(f"The worker's last stack:\n{death.stack}")
        if death.output:
            self.add_note(f"The last it printed:\n{death.output.rstrip()}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.death)


class MemoryExceeded(WorkerDied):
    """The task's worker grew beyond `max_memory` while the task ran, and was killed."""


class TaskTimeout(PoolError, TimeoutError):
    """The task was still running when its `timeout` or `deadline` came; its worker was killed."""

    def __init__(self, message: str, timeout: float | None = None, stack: str = "") -> None:
        super().__init__(message)
        self.timeout = timeout
        self.stack = stack
        if stack:
            self.add_note(f"The worker's last stack:\n{stack}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.timeout, self.stack)


class TaskExpired(PoolError, TimeoutError):
    """The task waited beyond `max_queue_age` or `deadline` and was rejected without having begun."""


class TaskKilled(PoolError):
    """`pool.kill(future)`, or a shutdown that ran out of time, stopped this task: before or while it ran."""

    def __init__(self, message: str, *, began: bool = True) -> None:
        super().__init__(message)
        self.began = began


class PayloadError(PoolError, BrokenProcessPool):
    """The function, its arguments or its result could not be unpickled where they arrived.

    The cause is attached. Only this task is concerned; its worker and the pool go on.
    """


class PoolFull(PoolError):
    """The pool's queue holds `max_queue` tasks already; this one was not accepted."""


class PoolClosed(PoolError, RuntimeError):
    """The pool has been shut down, or belongs to another process; nothing was submitted."""


class PoolDegraded(PoolError, BrokenProcessPool):
    """The pool could not start workers; its cause is in the message. It goes on trying by itself."""
