"""What keeps a PostgreSQL server from removing dead rows, since when, and when that is worth an alert.

While an old snapshot is open anywhere in the database, every job that ends leaves index entries that each
later claim steps over. Decides by what the server shows; nothing is asked of a server here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

OLD = 300.0  # seconds above which people are told
VERY_OLD = 3600.0  # seconds above which `millpond check` calls it wrong

CURES = {
    "transaction": "end it; set idle_in_transaction_session_timeout, and dump from a replica",
    "prepared transaction": "COMMIT PREPARED or ROLLBACK PREPARED it",
    "replication slot": "end the long query of the standby behind it, or drop the slot if none uses it",
}

Key = tuple[str, str, str]


class Holdback(NamedTuple):
    """Something that holds an old snapshot: its kind is one of CURES."""

    kind: str
    name: str  # for people: process and application, or the name it was given
    mark: str  # the oldest transaction that it needs: stays the same for as long as it holds it
    age: float | None  # seconds; None where the server does not tell it to this role

    @property
    def key(self) -> Key:
        """The same at each look, for as long as it holds back the same."""
        return self.kind, self.name, self.mark


def look(
    before: Mapping[Key, float], found: Sequence[Holdback], now: float
) -> tuple[dict[Key, float], Holdback | None]:
    """Since when each has been seen, and the oldest of all. One whose age is not told is as old as this node
    has seen it: a role without pg_read_all_stats sees no times of other roles' sessions."""
    seen = {one.key: before.get(one.key, now) for one in found}
    aged = [one._replace(age=max(one.age or 0.0, now - seen[one.key])) for one in found]
    return seen, max(aged, key=lambda one: one.age or 0.0, default=None)


def level(age: float | None) -> int:
    """0 while it is young or nothing is known of it, 1 when it is old, 2 when it is very old."""
    return (age is not None and age >= OLD) + (age is not None and age >= VERY_OLD)
