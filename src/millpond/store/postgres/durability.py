"""What a job that PostgreSQL acknowledged survives, by the settings of the session that stores it."""

from __future__ import annotations

SETTINGS = (
    "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
    "current_setting('synchronous_standby_names')"
)
HERE = ("off", "local")  # values of synchronous_commit with which no standby is waited for


def durability(fsync: str, commit: str, standbys: str) -> str:
    """In words. The primary's own crash first, then what a fail-over to a standby may take."""
    if fsync == "off":
        return "not durable: fsync is off"
    if commit == "off":
        return "survives a crash of the server process, not of its machine: synchronous_commit is off"
    here = f"durable: fsync on, synchronous_commit {commit}"
    if not standbys or commit in HERE:
        cause = "synchronous_standby_names is empty" if not standbys else f"synchronous_commit is {commit}"
        return f"{here}; a fail-over to a standby may lose the last moments: {cause}"
    if commit == "remote_write":
        return f"{here}; survives a fail-over, unless the standby's machine crashes as well"
    return f"{here}; survives a fail-over to a synchronous standby"
