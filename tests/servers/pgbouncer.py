"""PgBouncer in transaction mode before a PostgreSQL: no session outlives a transaction there."""

from __future__ import annotations

import os
import shutil
from functools import cache
from urllib.parse import urlsplit

import psycopg

from tests.servers import postgres
from tests.servers.process import Missing, Server, unprivileged

CONFIGURATION = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""


class PgBouncer:
    """A pooler of its own."""

    def __init__(self, behind: str) -> None:
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
        if program is None:
            raise Missing("PgBouncer is missing (Debian: apt-get install pgbouncer)")
        parts = urlsplit(behind)
        self.server = Server("pgbouncer", unprivileged())
        self.url = behind.replace(f":{parts.port}", f":{self.server.port}", 1)
        users, file = self.server.folder / "users", self.server.folder / "pgbouncer.ini"
        users.write_text(f'"{parts.username}" ""\n')
        place = {"host": parts.hostname, "port": parts.port, "own": self.server.port}
        file.write_text(CONFIGURATION.format(users=users, **place))
        for path in (users, file):
            path.chmod(0o644)
        self.server.start([program, str(file)], self._answers)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@cache
def shared() -> str:
    """The URL of this test process's pooler."""
    if os.environ.get(postgres.GIVEN):
        raise Missing("a given PostgreSQL has no pooler of ours before it")
    return PgBouncer(postgres.shared()).url
