"""Where looks at the lines of PostgreSQL begin: at the beginning, or at the last known rank of each queue.

The rule is in `rules/store/floor.py`. The statements that look at the head of an index take a floor as their
last parameters; here it is put there, and learned from their answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from millpond.job import DAY, MICROSECONDS, Instant
from millpond.rules.store.floor import Looks, begins_at_floor, looked
from millpond.store.sql.query import Query, Row

ALL = -(2**63)  # every rank and every instant is greater
LATE = 10 * MICROSECONDS  # a job that is committed so long after it was made is not missed
RANK, QUEUE = 6, 2  # columns of a job that was claimed or looked at
EXPIRED, DUE = 3, 4  # columns of an outlook
PAGES = {"promote": lambda rows: sum(row[1] for row in rows), "expired": len}  # how many jobs a page had
TIMED = frozenset({"claim_at_once", "claim_head", "peek", "peek_without"})
BY_QUEUE = {"claim_at_once": 2, "outlook": 0, "oldest": 0}  # where the parameters have the names of queues
BY_TIME = frozenset({"claim_at_once", "outlook", "promote", "expired"})
FOLLOWING = frozenset({"claim_head", "peek", "peek_without", "promote", "expired"})  # behind an outlook
FLOORED = TIMED | BY_TIME | {"oldest"}


class Floors:
    """What one process has learned of the lines of one store."""

    def __init__(self) -> None:
        self._looks = Looks()
        self._ranks: dict[str, int] = {}
        self._since: Instant = ALL  # all that was due or had expired before this is dealt with
        self._at_floor = False  # did the last outlook leave something out?
        self._owes = False  # the next one must not

    def begins_at_floor(self, name: str) -> bool:
        """Does the next look leave out what stands before the floor?

        What an outlook from the beginning has seen, the looks of that exchange must find, or the job that
        fell due there would be seen again and again and not be claimed. The same if `claim_at_once` did
        nothing because of it, and left the exchange to an outlook. Shown by tests/stores/test_floors.py,
        test_a_job_that_was_committed_long_after_its_time_is_claimed_by_the_next_look_from_the_beginning.
        """
        if name in FOLLOWING:
            return self._at_floor
        at_floor = begins_at_floor(self._looks, time.monotonic()) and not self._owes
        if name == "outlook":
            self._owes, self._at_floor = False, at_floor
        return at_floor

    def parameters(self, request: Query, *, at_floor: bool) -> Sequence[Any]:
        """The parameters of a statement with the floors behind them."""
        given = request.parameters
        more: list[Any] = []
        if request.name in BY_QUEUE:
            more.append([self._rank(queue, at_floor) for queue in given[BY_QUEUE[request.name]]])
        elif request.name in TIMED:
            more.append(self._rank(given[0], at_floor))
        if request.name in BY_TIME:
            more.append(self._since if at_floor else ALL)
        return [*given, *more]

    def _rank(self, queue: str, at_floor: bool) -> int:
        return self._ranks.get(queue, ALL) if at_floor else ALL

    def learn(
        self, request: Query, rows: Sequence[Row], now: Instant, took: float, *, at_floor: bool
    ) -> None:
        """A look at the head of a line took so long and found these."""
        name = request.name
        if name in TIMED:
            self._looks = looked(self._looks, time.monotonic(), took, at_floor=at_floor)
        if at_floor:
            return
        if name in PAGES:
            self._owes = self._owes or PAGES[name](rows) >= request.parameters[1]
        elif name == "claim_at_once" and not rows:
            self._owes = True
        elif name == "claim_at_once" or (
            name == "outlook" and not any(row[EXPIRED] or row[DUE] for row in rows)
        ):
            self._owes, self._since = False, now - LATE
        if name in TIMED and (rows or name != "claim_at_once"):
            self._learn_ranks(request, rows, now)

    def _learn_ranks(self, request: Query, rows: Sequence[Row], now: Instant) -> None:
        asked = request.parameters[2] if request.name == "claim_at_once" else [request.parameters[0]]
        # Nothing was found: what comes next is most likely of the usual priority, and due now
        found = dict.fromkeys(asked, now - LATE - DAY)
        found.update({row[QUEUE]: row[RANK] for row in reversed(rows) if row[0] is not None})
        for queue, rank in found.items():
            self._ranks[queue] = min(rank, now - LATE - DAY)


def _is_late(outlook: Sequence[Row]) -> bool:
    """Has some job fallen due, or expired?"""
    return any(row[EXPIRED] or row[DUE] for row in outlook)
