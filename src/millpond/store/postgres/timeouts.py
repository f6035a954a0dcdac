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
UNACKNOWLEDGED = 7.0  # for bytes that are on their way: a server that goes dark costs seconds
# A process that is stopped between two statements must not keep its locks: another node's settlement may wait
# for a slot that it holds. A process that runs sends statement after statement. Shown by
# tests/proof_stores/test_keyed_crowd.py.
# A heartbeat's is no shorter: its patience is about servers that do not answer, and this is about a process
# that the machine leaves without time, which must not lose its lease because of it.
IDLE = 1.5
# A process that the machine gives no time to is silent for longer, and says all of it again under this bound.
# Those that enqueue begin with it: the server also counts the time in which a statement is on its way, and
# jobs may be large and their way slow. They lock nothing that a settlement or a claim waits for.
IDLE_PATIENT = 30.0
# For sessions that say single statements whose best plan is always the same: making it anew takes the server
# longer than the work. Searches are better off with plans of their own.
GENERIC = "; SET plan_cache_mode = force_generic_plan"
# A connection at rest to a server that went dark is given up by our kernel after about ten seconds.
KEEPALIVES = {"keepalives": 1, "keepalives_idle": 5, "keepalives_interval": 3, "keepalives_count": 3}
# The server's kernel gives up a client that vanished after a minute: by its own defaults the session, with a
# place among max_connections, would stay for two hours. On a socket of the same machine they do nothing.
VANISHED = {"tcp_keepalives_idle": 30, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 3}
WHEN_VANISHED = "; ".join(f"SET {name} = {value}" for name, value in VANISHED.items())
# Every statement sees the latest: what the database or the role has as its default is made for others.
ISOLATION = "READ COMMITTED"
BEGIN = f"BEGIN ISOLATION LEVEL {ISOLATION}"
# A generic plan is costed by the length of the line: with half a million jobs the server would compile each
# claim, which takes it many times as long as the claim.
JIT = "jit = off"


class Bounds(NamedTuple):
    """The bounds of one store, in the words of the server and of the driver."""

    begin: str  # a transaction in a session that is not ours
    patient: str  # one that may be silent for long, in any session
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
        "idle_in_transaction_session_timeout": IDLE,
    }
    settings = [*(f"{name} = {_milliseconds(limit)}" for name, limit in limits.items()), JIT]
    lasting = (*settings, f"default_transaction_isolation = '{ISOLATION.lower()}'")
    session = "; ".join([*(f"SET {setting}" for setting in lasting), WHEN_VANISHED])
    begin = f"{BEGIN}; " + "; ".join(f"SET LOCAL {setting}" for setting in settings)
    idle = _milliseconds(max(IDLE, min(IDLE_PATIENT, there)))
    return Bounds(
        begin=begin,
        patient=f"{begin}; SET LOCAL idle_in_transaction_session_timeout = {idle}",
        session=session,
        brisk=session + GENERIC,
        connect=max(1, int(min(CONNECT, most))),  # none would be for ever
        unacknowledged=_milliseconds(min(UNACKNOWLEDGED, most)),
        answer=min(ANSWER, most),
    )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
