"""How a node comes to its end, and how one running job is ended: rungs, deadlines, steps.

A drain lets running jobs finish; near its deadline they are told to end, then killed, early enough for
their return to be stored within `grace`. Signals climb the ladder one rung at a time and never down.
Values and `now` in, values out; seconds on any clock that only goes forward.
"""

from __future__ import annotations

import enum
from typing import Literal, NamedTuple

HURRY = 1.0  # what running jobs are still given after the second signal
LAST_WORD = 2.0  # between SIGTERM and SIGKILL at the end of a drain, for a job that cleans up
STORING = 1.0  # kept of `grace` for storing what became of the jobs
LEAST = 2.0  # from a push to the end, however little grace there is: the store must hear of the jobs
ECHO = 0.1  # one Ctrl-C may arrive twice: from the terminal and from a program that passes it on
OVERDUE = 15.0  # after the last deadline: the node does not end, and leaving beats hanging

ASK = 5.0  # a cancelled job may end by itself for so long
ASK_SHARED = 30.0  # ... when ending its worker would hit others


class Phase(enum.IntEnum):
    """What a node does, in order; it never goes back."""

    ACCEPTING = 0  # claims and runs
    DRAINING = 1  # claims nothing, has given back what had not begun, lets running jobs finish
    TERMINATING = 2  # running jobs are told to end
    KILLING = 3  # what still runs is killed


class Rung(enum.IntEnum):
    """How far somebody has pushed the node towards its end."""

    UP = 0
    DRAIN = 1
    HURRY = 2
    KILL = 3


class Ladder(NamedTuple):
    """The way down; made by `drain`, shortened by `hurry` and `kill`."""

    rung: Rung = Rung.UP
    pushed_at: float = float("-inf")  # the last time
    terminate_at: float = float("inf")
    kill_at: float = float("inf")
    over_at: float = float("inf")  # the node has stopped, whether or not its store was there to hear of it


def drain(ladder: Ladder, grace: float, now: float) -> Ladder:
    """Begin to drain, so that all is over and stored `grace` from now. A drain that runs is not prolonged."""
    kill_at = now + grace - min(STORING, grace / 10)
    deadlines = (kill_at - min(LAST_WORD, grace / 5), kill_at, now + max(grace, LEAST))
    return _pushed(ladder, Rung.DRAIN, deadlines, now)


def hurry(ladder: Ladder, now: float) -> Ladder:
    """Tell running jobs to end now and give them little time."""
    return _pushed(ladder, Rung.HURRY, (now, now + HURRY, now + max(HURRY + STORING, LEAST)), now)


def kill(ladder: Ladder, now: float) -> Ladder:
    """Kill now."""
    return _pushed(ladder, Rung.KILL, (now, now, now + LEAST), now)


def _pushed(ladder: Ladder, rung: Rung, deadlines: tuple[float, float, float], now: float) -> Ladder:
    """No push ever climbs back up or moves a deadline further away."""
    return Ladder(max(ladder.rung, rung), now, *map(min, ladder[2:], deadlines))


def phase(ladder: Ladder, now: float) -> Phase:
    """What the node does at this moment."""
    if ladder.rung is Rung.UP:
        return Phase.ACCEPTING
    if now >= ladder.kill_at:
        return Phase.KILLING
    return Phase.TERMINATING if now >= ladder.terminate_at else Phase.DRAINING


def speaks_until(ladder: Ladder) -> float:
    """How long a node tries to tell its store what became of its jobs; half of the time after the kill is
    for the rest: workers and threads that end, the lease that is given up."""
    return (ladder.kill_at + ladder.over_at) / 2


def gives_up_at(ladder: Ladder) -> float:
    """From when on a node that has still not stopped is left as it is: its workers die with it."""
    return ladder.kill_at + OVERDUE


# --- signals ---------------------------------------------------------------------------------------------
Step = Literal["drain", "hurry", "kill", "hold", "go on", "reload"]
STOPS = ("SIGTERM", "SIGINT")
_DOWN: dict[Rung, Step] = {Rung.UP: "drain", Rung.DRAIN: "hurry", Rung.HURRY: "kill", Rung.KILL: "kill"}
_UPRIGHT: dict[str, Step] = {  # what a node that is going down has no ear for
    "SIGTSTP": "hold",
    "SIGUSR1": "hold",
    "SIGCONT": "go on",
    "SIGHUP": "reload",
}


def step_for(signal: str, ladder: Ladder, now: float) -> Step | None:
    """What a signal leads to; None for one that means nothing, or nothing any more."""
    if signal == "SIGQUIT":
        return "kill"
    if signal in STOPS:
        return None if now - ladder.pushed_at < ECHO else _DOWN[ladder.rung]
    return _UPRIGHT.get(signal) if ladder.rung is Rung.UP else None


def exit_code(ladder: Ladder, signal: int | None) -> int:
    """0 after a drain, however many jobs its deadline cut off; 128 + signal when one cut it short.

    A node that stopped though nobody asked it to has failed: 1.
    """
    if ladder.rung is Rung.UP:
        return 1
    return 0 if ladder.rung is Rung.DRAIN or signal is None else 128 + signal


# --- one running job -------------------------------------------------------------------------------------
End = Literal["wait", "ask", "terminate", "kill"]


class Ending(NamedTuple):
    """Of one running job: asked by the node, then SIGTERM, then SIGKILL."""

    asked_at: float
    terminate_at: float | None  # None: its worker runs others too, whom a SIGTERM would hit as well
    kill_at: float


def ending(neighbours: int, now: float) -> Ending:
    """End a cancelled job that shares its worker with so many others."""
    if neighbours:
        return Ending(now, None, now + ASK_SHARED)
    return Ending(now, now + ASK, now + ASK + LAST_WORD)


def end_step(chosen: Ending, now: float) -> End:
    """How far to go with a job at this moment."""
    if now >= chosen.kill_at:
        return "kill"
    if chosen.terminate_at is not None and now >= chosen.terminate_at:
        return "terminate"
    return "ask" if now >= chosen.asked_at else "wait"
