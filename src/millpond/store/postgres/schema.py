"""The tables in a PostgreSQL schema: which version made them, and the steps from one version to the next."""

from __future__ import annotations

import re

from psycopg import Connection

from millpond.rules.store.schema import Change, Schema, Step
from millpond.store.postgres.statements import Names, text_of
from millpond.store.sql.query import Row
from millpond.store.sql.statements import split

SCHEMA = 4  # the version that this code knows
BASE = 3  # the version of schema.sql; new stores go the later steps at once
# For these, nodes and programs that enqueue are stopped
STOPPING = {2: ("set_aside_2", "schema", "move_from_2")}
ONLINE = {3: ("from_3_to_4", 3)}  # the statements, and the oldest code that goes on with what they leave
CONTRACTIONS: dict[int, Step] = {}  # there is nothing yet that only older code needs

INDEX = re.compile(r"CREATE INDEX CONCURRENTLY (\w+) ON (\S+)")
CONCURRENT = "SHARE UPDATE EXCLUSIVE: reads and writes go on, older transactions are waited for"
LIGHT = "SHARE UPDATE EXCLUSIVE for an instant: reads and writes go on"
BRIEF = "ACCESS EXCLUSIVE for an instant; it is tried for {:g} s at most, and again after a pause"
WHOLE = "locks all tables until it is done: stop nodes and whatever enqueues first"
LOCK = 0.2  # seconds that a statement waits for its lock: so long may others have to queue behind it


def schema_of(connection: Connection[Row], names: Names) -> Schema | None:
    """What the tables say about themselves; None if there are none."""
    ((found,),) = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"{names.schema}.meta",)
    ).fetchall()
    if not found:
        return None
    ((version, compatible_from),) = connection.execute(text_of("version", names)).fetchall()
    return Schema(version, version if compatible_from is None else compatible_from)


def steps(names: Names) -> dict[int, Step]:
    """Every step, with our names in it."""
    found = {}
    for before, files in STOPPING.items():
        whole = Change("\n".join(text_of(name, names).decode() for name in files), locks=WHOLE)
        found[before] = Step(before, before + 1, before + 1, (whole,), stops=True)
    for before, (name, compatible_from) in ONLINE.items():
        parts = tuple(_change(text, note) for text, note in split(text_of(name, names).decode()))
        found[before] = Step(before, before + 1, compatible_from, parts)
    return found


def contractions(names: Names) -> dict[int, Step]:
    """What may be taken away, with our names in it."""
    found = {}
    for version, step in CONTRACTIONS.items():
        parts = (part._replace(text=part.text.replace("{schema}", names.schema)) for part in step.changes)
        found[version] = step._replace(changes=tuple(parts))
    return found


def _change(text: str, note: str) -> Change:
    if INDEX.match(text) or " VALIDATE CONSTRAINT " in text:
        return Change(text, note, CONCURRENT, is_alone=True)
    if text.startswith("UPDATE"):
        return Change(text, note, "one row")
    return Change(text, note, LIGHT if " SET (" in text else BRIEF.format(LOCK))


def creation(names: Names) -> str:
    """All that makes the tables of this version where there are none, for one transaction."""
    parts = [text_of("schema", names).decode()]
    for before in range(BASE, SCHEMA):
        parts += [f"{change.text};" for change in steps(names)[before].changes]
    return "\n".join(parts).replace(" CONCURRENTLY", "")


def script(names: Names, since: int | None) -> str:
    """What leads from a version, or from nothing, to this one, for psql: as `migrate` does it, except that no
    lock is tried again."""
    said = ["-- For psql, not in one transaction. If it stops at an error, such as a lock that did not come,"]
    said += ["-- run it again: every statement may be repeated.", "\\set ON_ERROR_STOP on"]
    if since is None:
        said += ["BEGIN;", f"CREATE SCHEMA IF NOT EXISTS {names.schema};", creation(names), "COMMIT;"]
    else:
        said += [line for version in range(since, SCHEMA) for line in _script(steps(names)[version])]
    return "\n".join(said)


def _script(step: Step) -> list[str]:
    said = ["", f"-- {step.name}" + (": stop nodes and whatever enqueues first" if step.stops else "")]
    for change in step.changes:
        said += ["", f"-- {change.note}"] if change.note else [""]
        said += [f"-- Locks: {change.locks}", *_said(change, step)]
    return said


def _said(change: Change, step: Step) -> list[str]:
    index = INDEX.match(change.text)
    if index:  # one that was broken off leaves an index that is not valid
        return [f"DROP INDEX CONCURRENTLY IF EXISTS {place_of(index)};", f"{change.text};"]
    if change.is_alone:
        return [f"{change.text};"]
    bound = [] if step.stops else [f"SET LOCAL lock_timeout = '{LOCK:g}s';"]
    return ["BEGIN;", *bound, change.text.rstrip(";") + ";", "COMMIT;"]


def place_of(index: re.Match[str]) -> str:
    """The full name of an index, which lies in the schema of its table."""
    return f"{index[2].partition('.')[0]}.{index[1]}"
