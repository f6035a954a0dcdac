"""The stores under measurement, each with a way to start anew and a bare loop of its own statements."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import recording

from millpond.store.protocol import Store
from tests.servers import postgres as postgres_server
from tests.servers import redis as redis_server

BYTES = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind = 'r'"""


class Engine(NamedTuple):
    """How to get a fresh store, a fresh recording store, to replay a tape on a fresh one, and how many bytes
    a store takes."""

    name: str
    open: Callable[[], Any]
    record: Callable[[], Any]
    replay: Callable[[Any, list[Any]], float]
    size: Callable[[Any], int]


def sqlite() -> Engine:
    """A file on the disk that holds this repository's build folder, not in memory."""
    folder = Path(tempfile.mkdtemp(prefix="millpond-bench-", dir=os.environ.get("BENCH_DIR")))

    def fresh(kind: Any) -> Any:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return kind(str(folder / "jobs.db"))

    def size(store: Any) -> int:
        store.close()  # the log goes into the file
        return (folder / "jobs.db").stat().st_size if (folder / "jobs.db").exists() else 0

    from millpond.store.sqlite.store import SQLiteStore

    return Engine(
        "SQLite, FULL",
        lambda: fresh(SQLiteStore),
        lambda: fresh(recording.RecordingSQLite),
        recording.replay_sqlite,
        size,
    )


def postgres() -> Engine:
    """A server of its own, fsync and synchronous_commit on, with the memory and log Debian gives it."""
    server = postgres_server.Postgres(settings={"shared_buffers": "128MB", "max_wal_size": "1GB"})
    url = postgres_server.with_schema(server.url, "bench")

    def fresh(kind: Any) -> Any:
        postgres_server.drop(server.url, "bench")
        store = kind(url)
        store.migrate()
        return store

    def size(_store: Any) -> int:
        with psycopg.connect(server.url) as connection:
            ((found,),) = connection.execute(BYTES, ("bench",)).fetchall()
        return int(found)

    from millpond.store.postgres.store import PostgresStore

    return Engine(
        "PostgreSQL",
        lambda: fresh(PostgresStore),
        lambda: fresh(recording.RecordingPostgres),
        recording.replay_postgres,
        size,
    )


def redis() -> Engine:
    """A server of its own, AOF every second."""
    server = redis_server.Redis(redis_server.program("redis-server", "valkey-server"))

    def fresh(kind: Any) -> Any:
        with server.client() as client:
            client.flushall()
        return kind(f"{server.url}?namespace=bench")

    def size(_store: Any) -> int:
        with server.client() as client:
            return int(client.info("memory")["used_memory"])

    from millpond.store.redis.store import RedisStore

    return Engine(
        "Redis, AOF everysec",
        lambda: fresh(RedisStore),
        lambda: fresh(recording.RecordingRedis),
        recording.replay_redis,
        size,
    )


ENGINES: dict[str, Callable[[], Engine]] = {"sqlite": sqlite, "postgres": postgres, "redis": redis}


def close(store: Store) -> None:
    """Let go of a store's connections."""
    store.close()
