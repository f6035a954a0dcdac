"""What a verb's request is in SQLite's words: which statements, with which parameters.

A statement that returns what it has changed costs SQLite as much again. Nobody else writes during a
transaction, so it looks first and changes then, or is not used at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from millpond.store.sql.job_counts import NOW
from millpond.store.sql.query import Many, Query, Row
from millpond.store.sql.statements import statement

# And how many of the parameters the look takes
LOOKS = {"finish": ("finish_look", 6), "cancel_waiting": ("cancel_waiting_look", 1)}
# One may claim less than it could: those in line are looked at instead. The other has nothing to fold here.
LEFT_OUT = frozenset({"claim_head", "fold_tallies"})
PLACES = {
    "blocked": ("state = 'blocked'", "millpond_blocked"),
    "scheduled": ("state = 'scheduled'", "millpond_due"),
    "queued": ("state = 'queued' AND parked IS NULL", "millpond_ready"),
    "parked": ("state = 'queued' AND parked IS NOT NULL", "millpond_parked"),
    "running": ("state = 'running'", "millpond_running"),
    "completed": ("state = 'completed' AND finished_at IS NOT NULL", "millpond_ended"),
    "dead": ("state = 'dead' AND finished_at IS NOT NULL", "millpond_ended"),
    "cancelled": ("state = 'cancelled' AND finished_at IS NOT NULL", "millpond_ended"),
}  # where the jobs of a state are found without looking at others

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
    if request.name == "count":
        return _counting(rows)
    change = Statement(statement("sqlite", request.name), rows, many=True)
    if request.name not in LOOKS:
        return [change]
    name, taken = LOOKS[request.name]
    return [Statement(statement("sqlite", name), [row[:taken] for row in rows], many=True), change]


def _counting(rows: Sequence[Row]) -> list[Statement]:
    """What happened goes to one table, what there is to the other."""
    happened = [row for row in rows if row[3] != NOW]
    there_is = [row for row in rows if row[3] == NOW]
    told = [("count", happened), ("tally", there_is)]
    return [Statement(statement("sqlite", name), part, many=True) for name, part in told if part]


# Only what was asked for is said: a condition that may be off keeps SQLite from using an index for it.
FOUND_BY = (
    "queue = ?1",
    "task = ?2",
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
    if name in ("search", "search_dead", "search_few"):
        text, parameters = _search(name, parameters)
    elif name in ("floor", "floor_dead"):
        parameters = parameters[1:]
        text = statement("sqlite", "floor_in")
        text = text.replace("{condition}", "state = 'dead'" if name == "floor_dead" else "TRUE")
    bound = [_json(value).decode() if isinstance(value, list) else value for value in parameters]
    return Statement(text or statement("sqlite", name), bound, many=False)


def _search(name: str, parameters: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Of all, of the dead, or of those of states that few are in."""
    states: Sequence[str] | None = ["dead"]
    if name != "search_dead":
        states, *parameters = parameters
    if name != "search_few":
        text = statement("sqlite", "search_in").replace("{condition}", _condition(states, parameters[:2]))
        return text, parameters[:5]
    wanted = [*(states or ()), *(["parked"] if "queued" in (states or ()) else [])]
    places = " UNION ALL ".join(
        f"SELECT seq FROM millpond_jobs INDEXED BY {index} WHERE {condition}"  # noqa: S608 - our names
        for condition, index in map(PLACES.__getitem__, wanted)
    )
    text = statement("sqlite", "search_few_in").replace("{places}", places)
    return text.replace("{condition}", _condition(None, parameters[:2])), parameters


def _literals(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)
