"""Where the row of a node's exchanges lies, so that it is found without the versions that it has left behind.

Every exchange updates that row. While any transaction in the database is open, PostgreSQL keeps each earlier
version, and a look by the key passes over all of them: it takes longer with every exchange. So an exchange
remembers the place (ctid) where its update has put the row, and the next one looks there first.

A place is a hint. The row there must be this node's and must be the current version, or it is not found; then
it is looked for by its key, in a statement that sees what was committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from millpond.store.sql.query import Query, Row

AT_PLACE = {"next_sequence": "next_sequence_at", "exchange_of": "exchange_at"}  # the same, by place
LEARNED = frozenset({"next_sequence", "next_sequence_at", "claim_at_once"})  # their last column is the place
PLACED = frozenset({*AT_PLACE, "claim_at_once"})
Send = Callable[[Query], list[Row]]


class Places:
    """What one process knows of the rows of its nodes."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def answer(self, request: Query, send: Send) -> list[Row]:
        """Carry a request about a node out: at the remembered place first, where there is one.

        Nothing found there may mean that the row has moved, or that the node may not do this. It can also
        have moved while our statement waited for it: some servers then look no further. Only the key tells.
        Without this second look, an exchange that never happened would be reported as one that had.
        Shown by tests/stores/test_places.py, test_a_row_that_moves_while_an_exchange_waits_for_it_is_found.
        """
        node = request.parameters[0]
        place = self._places.get(node)
        if request.name == "claim_at_once":
            # At a place that is out of date it finds nothing, and an exchange follows
            return self._learned(node, send(request._replace(parameters=(*request.parameters, place))))
        if place is not None:
            at_place = Query(AT_PLACE[request.name], (*request.parameters, place))
            if rows := self._sent(at_place, send):
                return rows
            self._places.pop(node, None)
        return self._sent(request, send)

    def forget(self) -> None:
        """Look for every row by its key."""
        self._places.clear()

    def _sent(self, request: Query, send: Send) -> list[Row]:
        rows = send(request)
        return self._learned(request.parameters[0], rows) if request.name in LEARNED else rows

    def _learned(self, node: str, rows: list[Row]) -> list[Row]:
        """The rows without the place, which is remembered. What is rolled back later was a hint, too."""
        if rows:
            self._places[node] = rows[0][-1]
        return [row[:-1] for row in rows]
