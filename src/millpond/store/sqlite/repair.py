"""Text in an SQLite file that is not text: bytes nobody can decode, left by a bad disk or a foreign hand.

SQLite stores what it is given, and one such row would stop every statement that meets it. So when one is
met, all are found and made readable: what was damaged stays visibly damaged, and its job ends so.
"""

from __future__ import annotations

import apsw

from millpond.store.sql.statements import statement

TEXTS = (
    "id", "task", "queue", "state", "reason", "node", "unique_key", "unique_for", "slots", "depends_on",
    "parked", "options", "attempts",
)  # fmt: skip


def mend(connection: apsw.Connection) -> int:
    """Make every job readable, inside the caller's transaction; returns how many were not."""
    columns = ", ".join(f"CAST({name} AS BLOB)" for name in TEXTS)
    broken = []
    for seq, *values in connection.execute(f"SELECT seq, {columns} FROM millpond_jobs"):  # noqa: S608 - our names
        bad = {name: _readable(value) for name, value in zip(TEXTS, values, strict=True) if _is_broken(value)}
        if bad:
            broken.append((seq, bad))
    for seq, bad in broken:
        places = ", ".join(f"{name} = ?" for name in bad)
        if "id" in bad:
            bad["id"] += f"-{seq}"  # two that were damaged alike must not become one
        connection.execute(f"UPDATE millpond_jobs SET {places} WHERE seq = ?", (*bad.values(), seq))  # noqa: S608
    if broken:
        connection.execute(statement("sqlite", "recount"))  # a queue or a state may have another name now
    return len(broken)


def _is_broken(value: bytes | None) -> bool:
    if value is None:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _readable(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")
