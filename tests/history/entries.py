"""What can be seen of a run from outside its store: one frozen record for each kind of line of evidence.

Records, nothing else. `at` is nanoseconds of the boot clock, which nobody can set and which all processes of
a machine share. A node is named by the label its process was given, never reused; the store knows it by its
incarnations, which a `Joined` line ties to the label.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

Moment = int  # nanoseconds since the machine was booted


class How(StrEnum):
    """How the function of a task left: what it told its worker."""

    RETURNED = "returned"
    RAISED = "raised"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"


class Kind(StrEnum):
    """What was done to a run from outside. With a pid but no node it was done to a worker."""

    KILLED = "killed"  # SIGKILL, or any other sudden end
    STOPPED = "stopped"  # SIGSTOP of that one process, until the fault is over
    FROZEN = "frozen"  # a node with everything under it, as when a machine is suspended
    CUT = "cut"  # a node that cannot reach its store
    TERMINATED = "terminated"  # asked to go: what still runs when its grace ends is broken off
    STORE = "store"  # the store itself was away, for everybody


class Attempted(msgspec.Struct, frozen=True, gc=False, tag="attempted"):
    """About to enqueue a job of this id."""

    job: str
    at: Moment


class Acknowledged(msgspec.Struct, frozen=True, gc=False, tag="acknowledged"):
    """The store said that it has this job."""

    job: str
    at: Moment


class Granted(msgspec.Struct, frozen=True, gc=False, tag="granted"):
    """A node was given the job under this token."""

    job: str
    token: int
    node: str
    at: Moment


class Began(msgspec.Struct, frozen=True, gc=False, tag="began"):
    """The function began in a worker."""

    job: str
    token: int
    attempt: int
    node: str
    worker: int  # its pid
    at: Moment


class Effect(msgspec.Struct, frozen=True, gc=False, tag="effect"):
    """The function did what it is for."""

    job: str
    token: int
    attempt: int
    at: Moment


class Breaking(msgspec.Struct, frozen=True, gc=False, tag="breaking"):
    """The function is about to end its own worker, or to hang in it until its timeout."""

    job: str
    token: int
    worker: int
    at: Moment
    hangs: bool = False


class Ended(msgspec.Struct, frozen=True, gc=False, tag="ended"):
    """The function left."""

    job: str
    token: int
    how: How
    at: Moment


class Settled(msgspec.Struct, frozen=True, gc=False, tag="settled"):
    """A node told the store a verdict; `accepted` is None where the answer never came."""

    job: str
    token: int
    node: str
    state: str  # the state the verdict gives the job
    accepted: bool | None
    asked_at: Moment  # before the call; `at` is after it
    at: Moment


class Slow(msgspec.Struct, frozen=True, gc=False, tag="slow"):
    """An exchange of this node took long, whatever came of it."""

    node: str  # its label
    asked_at: Moment
    at: Moment


class Joined(msgspec.Struct, frozen=True, gc=False, tag="joined"):
    """The node of this label goes by this id in the store."""

    node: str
    incarnation: str
    at: Moment


class Fault(msgspec.Struct, frozen=True, gc=False, tag="fault"):
    """Something is about to be done to a process, a node or the store."""

    number: str  # of this fault, to be found again in its `Over`
    kind: Kind
    at: Moment
    pid: int | None = None
    node: str | None = None


class Over(msgspec.Struct, frozen=True, gc=False, tag="over"):
    """It was done; a kill has landed, a stop has been lifted. Without this line the fault goes on."""

    number: str
    at: Moment


Entry = (
    Attempted
    | Acknowledged
    | Granted
    | Began
    | Effect
    | Breaking
    | Ended
    | Settled
    | Slow
    | Joined
    | Fault
    | Over
)
