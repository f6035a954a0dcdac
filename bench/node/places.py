"""The servers of a run, on free ports, and a fresh place in them for every measurement.

Redis appends to its file every second and rewrites it only when told to; PostgreSQL commits durably.
"""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from tests.servers import postgres as postgres_server
from tests.servers import redis as redis_server

POSTGRES = {"shared_buffers": "1GB", "max_wal_size": "4GB", "synchronous_commit": "on", "fsync": "on"}


class Place(NamedTuple):
    """Where one measurement happens; `variables` tell the measured programs."""

    store: str
    url: str  # of the database itself, for those who count in it
    marks: Path
    variables: dict[str, str]


class Places:
    """The servers, each started when it is first needed."""

    def __init__(self) -> None:
        self._servers: dict[str, Any] = {}
        self._files = Path(tempfile.mkdtemp(prefix="millpond-bench-", dir=os.environ.get("BENCH_DIR")))
        self._marks = Path(tempfile.mkdtemp(prefix="millpond-bench-", dir=_memory()))

    def fresh(self, store: str, cell: int = 0) -> Place:
        """An empty database, Redis number or file; cells are apart from each other."""
        url = getattr(self, f"_{store}")(cell)
        for old in self._marks.glob(f"{cell}.*"):
            old.unlink()
        marks = self._marks / f"{cell}.marks"
        marks.touch()
        variables = {f"BENCH_{store.upper()}": url, "BENCH_STORE": store, "BENCH_MARKS": str(marks)}
        return Place(store, url, marks, variables)

    def ready(self, store: str) -> None:
        """Start the server, if there is one. To be called by a thread that stays: servers end with theirs."""
        if store != "sqlite":
            self._server(store)

    def settle_down(self, store: str) -> None:
        """Let the server finish what filling it has left to do."""
        if store == "redis":
            with self._server("redis").client() as client:
                client.bgrewriteaof()
        elif store == "postgres":
            with psycopg.connect(self._server("postgres").url, autocommit=True) as connection:
                connection.execute("CHECKPOINT")

    def restart(self, store: str, *, by_force: bool) -> None:
        """Stop the server, orderly or as a crash would, and start it with what it has; until it answers."""
        server = self._server(store)
        server.stop(*((signal.SIGQUIT if store == "postgres" else signal.SIGKILL,) if by_force else ()))
        server.start()

    def process(self, store: str) -> psutil.Process | None:
        """The server's own process, where there is one."""
        return None if store == "sqlite" else psutil.Process(self._server(store).server.process.pid)

    def remove(self) -> None:
        """End the servers, delete the files."""
        for server in self._servers.values():
            server.server.remove()
        shutil.rmtree(self._files, ignore_errors=True)
        shutil.rmtree(self._marks, ignore_errors=True)

    # --- one of each ------------------------------------------------------------------------------------
    def _server(self, store: str) -> Any:
        if store not in self._servers:
            if store == "redis":
                server: Any = redis_server.Redis(redis_server.program("redis-server", "valkey-server"))
                with server.client() as client:
                    client.config_set("auto-aof-rewrite-percentage", 0)
            else:
                postgres_server.SETTINGS.update(POSTGRES)
                server = postgres_server.Postgres()
            self._servers[store] = server
        return self._servers[store]

    def _redis(self, cell: int) -> str:
        url = str(self._server("redis").url).removesuffix("/0")
        with self._server("redis").client() as client:
            client.execute_command("SELECT", cell)
            client.flushdb()
        return f"{url}/{cell}"

    def _postgres(self, cell: int) -> str:
        url = str(self._server("postgres").url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS bench{cell} WITH (FORCE)".encode())
            connection.execute(f"CREATE DATABASE bench{cell}".encode())
        return url.removesuffix("postgres") + f"bench{cell}"

    def _sqlite(self, cell: int) -> str:
        folder = self._files / str(cell)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return str(folder / "jobs.db")


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
