"""One transaction of ours: it begins with its first statement, and commits together with its last.

That saves a way to the server and back, and keeps one node from another's trouble: sessions share the rows in
which they count. That is a transaction's last statement, so a node that is stopped can hold such a row only
while the server carries out the commit behind it. Shown by tests/stores/test_round_trips.py,
test_what_a_transaction_counts_travels_with_its_commit.

The beginning does not travel with the first statement. The driver ends what is sent together by a request
that the server takes for a sign of life, and would let the transaction be idle for ever
(tests/stores/test_failover.py, test_a_process_that_slept_in_a_transaction_repeats_it_once).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import Connection, Pipeline

from millpond.store.postgres.timeouts import BEGIN
from millpond.store.sql.query import Row

Statement = tuple[bytes, Sequence[Any]]  # a text and its parameters


class Statements:
    """Statements that are sent one after the other, each a transaction of its own."""

    def __init__(self, connection: Connection[Any], *, prepare: bool) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)
        self._prepare = prepare

    def answer(self, statement: Statement) -> list[Row]:
        """The rows that the server answers."""
        text, parameters = statement
        self._cursor.execute(text, parameters, prepare=self._prepare, binary=True)
        return self._cursor.fetchall() if self._cursor.description else []


class Transaction(Statements):
    """Statements that happen together or not at all. `begin` takes the place of the usual beginning."""

    def __init__(self, connection: Connection[Any], *, prepare: bool, begin: str | None = None) -> None:
        super().__init__(connection, prepare=prepare)
        self._begin = (BEGIN if begin is None else begin).encode()
        self._has_begun = False
        self.may_have_happened = False  # it was told to commit

    def answer(self, statement: Statement) -> list[Row]:
        """The rows that the server answers."""
        if not self._has_begun:
            self._has_begun = True
            self._connection.execute(self._begin)
        return super().answer(statement)

    def commit(self, last: Statement | None) -> None:
        """Send the last statement, if there is one, and commit."""
        self.may_have_happened = self._has_begun or last is not None
        if not self._has_begun:
            if last is not None:
                super().answer(last)  # it is alone: a transaction by itself
            return
        if last is not None and Pipeline.is_supported():
            with self._connection.pipeline():
                super().answer(last)
                self._connection.execute(b"COMMIT", prepare=False)
            return
        if last is not None:
            super().answer(last)
        self._connection.execute(b"COMMIT")

    def roll_back(self) -> None:
        """End without a change."""
        if self._has_begun:
            self._connection.execute(b"ROLLBACK")
