"""How long anything about a PostgreSQL server may take: there, on the way, and here.

The server ends what runs or waits too long, the kernel a connection whose bytes nobody acknowledges, and we a
call that is not answered. Who must hear sooner that a connection is dead says how patient it is, and all of
them are shortened to that.
"""

from __future__ import annotations

from typing import NamedTuple

LOCK = 5.0  # seconds for a lock
STATEMENT = 30.0
ANSWER = 35.0
SOONER = 30 / 35  # the server's own limits come before ours: who hears of one knows that nothing happened
CONNECT = 5.0
UNACKNOWLEDGED = 20.0  # for bytes that are on their way
IDLE = 5.0  # a process that is stopped between two statements must not keep its locks
# For sessions that say single statements whose best plan is always the same: making it anew takes the server
# longer than the work. Searches are better off with plans of their own.
GENERIC = "; SET plan_cache_mode = force_generic_plan"


class Bounds(NamedTuple):
    """The bounds of one store, in the words of the server and of the driver."""

    begin: str  # a transaction in a session that is not ours
    session: str  # one that is ours
    brisk: str  # the same, for single statements
    connect: int  # seconds; the driver waits 2 at least
    unacknowledged: int  # milliseconds
    answer: float  # seconds


def bounds(patience: float | None = None) -> Bounds:
    """The usual ones, none of them above `patience`."""
    most = ANSWER if patience is None else patience
    there = SOONER * most
    limits = {
        "lock_timeout": min(LOCK, there),
        "statement_timeout": min(STATEMENT, there),
        "idle_in_transaction_session_timeout": min(IDLE, there),
    }
    settings = [f"{name} = {_milliseconds(limit)}" for name, limit in limits.items()]
    session = "; ".join(f"SET {setting}" for setting in settings)
    return Bounds(
        begin="BEGIN; " + "; ".join(f"SET LOCAL {setting}" for setting in settings),
        session=session,
        brisk=session + GENERIC,
        connect=max(1, int(min(CONNECT, most))),  # none would be for ever
        unacknowledged=_milliseconds(min(UNACKNOWLEDGED, most)),
        answer=min(ANSWER, most),
    )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
