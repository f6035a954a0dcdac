"""Every error Millpond raises, as one tree.

MillpondError
├── OptionError (ValueError)                 an option was given a value it cannot take
└── PoolError
    ├── WorkerDied (BrokenProcessPool)       the worker running this task died
    │   └── MemoryExceeded                   ... because the task outgrew max_memory
    ├── TaskTimeout (TimeoutError)           the task ran longer than it was allowed
    ├── TaskExpired (TimeoutError)           the task waited longer than it was allowed; never ran
    ├── TaskKilled                           pool.kill(future) stopped the running task
    ├── PayloadError (BrokenProcessPool)     arguments or a result could not be unpickled on arrival
    ├── PoolFull                             the bounded queue has no room
    ├── PoolClosed (RuntimeError)            submitted after shutdown
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
        return f"worker {self.pid} {cause}{after}"


class WorkerDied(PoolError, BrokenProcessPool):
    """The worker died while it ran this task; every other task of the pool is unaffected.

    With `suspects` above one, several tasks had begun in that worker and any of them may be the cause.
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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.timeout, self.stack)


class TaskExpired(PoolError, TimeoutError):
    """The task waited beyond `max_queue_age` or `deadline` and was rejected without having begun."""


class TaskKilled(PoolError):
    """`pool.kill(future)`, or a shutdown that ran out of time, stopped this task while it ran."""


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
