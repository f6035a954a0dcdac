"""Stores of an older schema, code that knows only that, and what a schema is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import psycopg

from millpond.store.open import open_store
from millpond.store.postgres import schema as postgres_schema
from millpond.store.postgres.statements import Names, text_of
from millpond.store.redis import schema as redis_schema
from millpond.store.sql.statements import statement
from millpond.store.sqlite import schema as sqlite_schema
from tests.servers.redis import client_for
from tests.stores.places import address_and_name

SQL_BEFORE, REDIS_BEFORE = 3, redis_schema.SCHEMA - 1
PARTS = {
    "columns": """
        SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2""",
    "indexes": """
        SELECT c.relname, i.indisvalid, replace(pg_get_indexdef(c.oid), n.nspname || '.', '')
        FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s ORDER BY 1""",
    "constraints": """
        SELECT c.conname, c.convalidated, pg_get_constraintdef(c.oid) FROM pg_constraint AS c
        JOIN pg_namespace AS n ON n.oid = c.connamespace WHERE n.nspname = %s ORDER BY 1, 3""",
    "settings": """
        SELECT c.relname, c.relkind::text, array_to_string(c.reloptions, ',') FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s ORDER BY 1""",
}


def sort_of(url: str) -> str:
    return url.partition(":")[0].removesuffix("ql")


def before(url: str) -> int:
    """The version from which the first upgrade without a stop begins."""
    return REDIS_BEFORE if sort_of(url) == "redis" else SQL_BEFORE


def after(url: str) -> int:
    return before(url) + 1


def set_version(url: str, version: int, compatible_from: int | None = None) -> None:
    """Let a store say this about its schema."""
    oldest = version if compatible_from is None else compatible_from
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(5000)
        connection.execute("UPDATE millpond_meta SET version = ?, compatible_from = ?", (version, oldest))
        connection.close()
    elif url.startswith("postgres"):
        address, schema = address_and_name(url)
        with psycopg.connect(address) as server:
            text = f"UPDATE {schema}.meta SET version = %s, compatible_from = %s"
            server.execute(text.encode(), (version, oldest))
    else:
        _, namespace = address_and_name(url)
        with client_for(url) as client:
            client.set(f"{{{namespace}}}:schema", f"{version}:{oldest}")


def make_older(url: str) -> None:
    """Make a store as the version before the first upgrade without a stop made it."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        path.touch(mode=0o600)
        connection = apsw.Connection(str(path))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(statement("sqlite", "schema"))
        connection.close()
    elif url.startswith("postgres"):
        address, schema = address_and_name(url)
        with psycopg.connect(address) as server:
            server.execute(f"CREATE SCHEMA {schema}".encode())
            server.execute(text_of("schema", Names(schema)))
    else:
        set_version(url, before(url))


def older(url: str) -> Any:
    """A store as code of the version before opens it."""
    store: Any = open_store(url)
    store.versions.known = before(url)
    return store


def know_older() -> None:
    """From here on this process is code of the version before, on every store."""
    postgres_schema.SCHEMA = sqlite_schema.SCHEMA = SQL_BEFORE
    redis_schema.SCHEMA = REDIS_BEFORE


def catalog(url: str) -> dict[str, Any]:
    """What a schema is made of, without the name of its place."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        found = list(connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name"))
        found += list(connection.execute("SELECT * FROM millpond_meta"))
        connection.close()
        return {"tables": [[str(part).replace("IF NOT EXISTS ", "") for part in row] for row in found]}
    if url.startswith("redis"):
        _, namespace = address_and_name(url)
        with client_for(url) as client:
            return {"version": client.get(f"{{{namespace}}}:schema")}
    address, schema = address_and_name(url)
    with psycopg.connect(address) as server:
        parts = {name: server.execute(text.encode(), (schema,)).fetchall() for name, text in PARTS.items()}
        parts["version"] = server.execute(f"SELECT * FROM {schema}.meta".encode()).fetchall()
    return parts
