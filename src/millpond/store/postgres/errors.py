"""What an error of the PostgreSQL server means: is its session still good, did anything happen, what helps.

Decided by SQLSTATE and severity, never by the text, which comes in the language of the server.
"""

from __future__ import annotations

import psycopg

from millpond.errors import OutcomeUnknown, StoreBusy, StoreError, StoreRefused, StoreUnavailable

TOO_LONG = frozenset(("55P03", "57014"))  # lock_timeout, statement_timeout
CROSSED = {"40P01": "deadlock", "40001": "serialization"}
READ_ONLY = "25006"
SLEPT = "25P03"  # idle in a transaction for too long: the server has ended the session, and rolled it back
STALE_PLAN = "0A000"  # a prepared statement whose table was altered; we use nothing else that could raise it
NOT_OUR_SESSION = frozenset(("26000", "42P05"))  # a prepared statement is gone, or another one's is there
STALE = NOT_OUR_SESSION | {STALE_PLAN}
MISSING = frozenset(("42P01", "42703"))  # a table or a column: the schema may have been changed
FORBIDDEN = "42501"
FATAL = frozenset(("FATAL", "PANIC"))


class Crossed(StoreBusy):
    """The server ended a transaction to keep order among several; nothing happened, so it can be repeated."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class Slept(StoreUnavailable):
    """The server ended a transaction in which this process said nothing for too long; nothing happened."""


class Stale(StoreUnavailable):
    """The session no longer fits its prepared statements; nothing happened, and a new session will do."""


def code(error: psycopg.Error) -> str:
    """The SQLSTATE; empty if the error is not the server's."""
    return error.sqlstate or ""


def is_lost(error: psycopg.Error) -> bool:
    """Is the server behind this connection gone, going, or no longer the one that takes writes? Then none of
    the connections that are idle may be trusted."""
    found = code(error)
    if not found:
        return isinstance(error, psycopg.OperationalError)
    return found == READ_ONLY or found.startswith(("08", "57P"))


def ends_session(error: psycopg.Error) -> bool:
    """Must this connection not be used again?"""
    return is_lost(error) or code(error) in STALE or error.diag.severity_nonlocalized in FATAL


def may_have_happened(error: psycopg.Error) -> bool:
    """Told to commit, and then this: can it have committed all the same? An error that the server reports
    without ending the session means that it has not; so does one that found the session at rest."""
    found = code(error)
    if found in (SLEPT, READ_ONLY):
        return False
    return ends_session(error) and found not in STALE


def meaning(
    url: str, error: psycopg.Error, *, closed: bool, maybe: bool, prepares_always: bool
) -> StoreError:
    """What an error of the server is to the caller. `closed`: the connection is; `maybe`: it had been told to
    commit; `prepares_always`: the URL asks for prepared statements, whatever stands before the server."""
    found = code(error)
    if found in TOO_LONG:
        return StoreBusy(f"{url} was locked for too long; nothing happened")
    if found in CROSSED:
        return Crossed(f"{url}: {error}; nothing happened", CROSSED[found])
    if found in STALE:
        cure = "; behind a pooler use ?prepare=off" if prepares_always else ""
        return Stale(f"{url}: {error}; nothing happened{cure}")
    if found == SLEPT:  # a process that got no processor for a while: it may say all of it again
        return Slept(f"{url}: this program was silent for too long in a transaction; nothing happened")
    if found == READ_ONLY:
        return StoreUnavailable(
            f"{url} is read-only, as a standby or a demoted primary is; nothing happened. "
            "The next call connects anew: see that the address leads to the primary"
        )
    if maybe and may_have_happened(error):
        return OutcomeUnknown(
            f"the connection to {url} broke while it was being told to commit: "
            f"ask for the job by its id, or repeat with the same id ({error})"
        )
    if isinstance(error, psycopg.OperationalError) or closed:
        return StoreUnavailable(f"{url}: {error}; nothing happened")
    return StoreError(f"{url}: {type(error).__name__}: {error}")


def forbidden(url: str, schema: str, role: str, error: psycopg.Error) -> StoreRefused:
    """A right is missing: which grants give all that a program needs."""
    return StoreRefused(
        f"{url}: {error.diag.message_primary}. As the owner of the schema: "
        f"GRANT USAGE ON SCHEMA {schema} TO {role}; "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; "
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}"
    )


def may_not_migrate(url: str, schema: str, role: str, error: psycopg.Error) -> StoreRefused:
    """The tables cannot be made: what gives the right to."""
    return StoreRefused(
        f"cannot migrate {url}: {error.diag.message_primary}. Run `millpond migrate` as the owner of the "
        f"schema, or have an administrator make it: CREATE SCHEMA {schema} AUTHORIZATION {role}"
    )
