"""What a verb's request is in SQLite's words: which statements, with which parameters.

A statement that returns what it has changed costs SQLite as much again. Nobody else writes during a
transaction, so it looks first and changes then, or is not used at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from millpond.store.relational.query import Many, Query, Row
from millpond.store.sql import statement

LOOKS = {"finish": ("finish_look", 6)}  # and how many of the parameters the look takes
LEFT_OUT = frozenset({"claim_head"})  # it may claim less than it could: those in line are looked at instead

_json = msgspec.json.Encoder().encode


class Statement(NamedTuple):
    """A text and its parameters: a row of them, or rows if it is to run once for each."""

    text: str
    parameters: Sequence[Any]
    many: bool


def statements(request: Query | Many) -> list[Statement]:
    """What to run; the rows of all together are the answer."""
    if isinstance(request, Query):
        return [] if request.name in LEFT_OUT else [_one(request.name, request.parameters)]
    rows: Sequence[Row] = request.rows
    if request.shared:
        rows = [(*request.shared, *row) for row in rows]
    change = Statement(statement("sqlite", request.name), rows, many=True)
    if request.name not in LOOKS:
        return [change]
    name, taken = LOOKS[request.name]
    return [Statement(statement("sqlite", name), [row[:taken] for row in rows], many=True), change]


# Only what was asked for is said: a condition that may be off keeps SQLite from using an index for it.
FOUND_BY = (
    "queue = ?1",
    "task = ?2",
    "id IN (SELECT value FROM json_each(?3))",
    "id < ?4",
)


def _condition(states: Sequence[str] | None, parameters: Sequence[Any]) -> str:
    """What a search looks for. One state is written as such: only then does a partial index apply."""
    wanted = [text for text, value in zip(FOUND_BY, parameters, strict=False) if value is not None]
    if states and len(states) == 1:
        wanted.append(f"state = {_literals(states)}")
    elif states:
        wanted.append(f"state IN ({_literals(states)})")
    return " AND ".join(wanted) or "TRUE"


def _one(name: str, parameters: Sequence[Any]) -> Statement:
    """States are written into the text, so that partial indexes apply."""
    text = ""
    if name in ("choose", "to_cancel"):
        states, *parameters = parameters
        text = statement("sqlite", f"{name}_in").replace("{states}", _literals(states))
    elif name == "search":
        states, *parameters = parameters
        text = statement("sqlite", "search_in").replace("{condition}", _condition(states, parameters))
    bound = [_json(value).decode() if isinstance(value, list) else value for value in parameters]
    return Statement(text or statement("sqlite", name), bound, many=False)


def _literals(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)
