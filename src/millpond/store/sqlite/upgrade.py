"""Upgrades an SQLite file: each change in a transaction of its own, for which writers wait as for any other.

The processes that have the file open go on: the engine prepares their statements anew after a change.
"""

from __future__ import annotations

from collections.abc import Mapping

import apsw

from millpond.rules.store.schema import Schema, Step
from millpond.store.clock import Clock
from millpond.store.sql.statements import statement
from millpond.store.sqlite import schema as tables
from millpond.store.upgrade import Upgrade


class SQLiteUpgrade(Upgrade):
    """The way of one file to the version that this code knows."""

    def __init__(self, url: str, connection: apsw.Connection, clock: Clock) -> None:
        super().__init__(url, tables.SCHEMA)
        self._connection, self._clock = connection, clock

    def found(self) -> Schema | None:
        """What the file says."""
        return tables.schema_of(self._connection)

    def steps(self) -> Mapping[int, Step]:
        """Every step."""
        return tables.steps()

    def contractions(self) -> Mapping[int, Step]:
        """What may be taken away."""
        return tables.CONTRACTIONS

    def live(self) -> list[tuple[str, bytes]]:
        """The nodes that have a lease."""
        now = (self._clock.lease_now(), self._clock.epoch)
        rows = self._connection.execute(statement("sqlite", "live_nodes"), now)
        return [(str(node), bytes(info)) for node, info in rows]

    def create(self) -> bool:
        """Make the tables."""
        return tables.create_tables(self._connection, self.url)

    # Another process may go the same step: whichever comes second finds another version under the lock of
    # writers, and does nothing. Without the look an UPDATE of a step would be made twice
    # (test_many_may_migrate_at_once).
    def apply(self, step: Step) -> bool:
        """One change after the other."""
        done = False
        for change in step.changes:
            with tables.immediate(self._connection):
                found = self.found()
                if found is not None and found.version == step.before:
                    self._connection.execute(change.text)
                    done = True
        return done
