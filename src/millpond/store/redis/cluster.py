"""The nodes of a Redis Cluster that a process has ever learnt of. It never decides which of them has a key.

A cluster has no address of its own: whichever node answers names all the others. The driver forgets a node
with the answer that no longer names it, and begins anew from the host in the URL, which may be dead by then.
"""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.retry import Retry

MOST = 100  # nodes remembered: enough for any cluster, and addresses that change for ever do not add up
TIMEOUT = 2.0  # seconds for a connection to one of several nodes: a dark one must not use up a lease


class Nodes:
    """Host and port of every node, the one that was seen last at the end."""

    def __init__(self, named: tuple[tuple[str, int], ...] = ()) -> None:
        self._named = named  # in the URL, and so never forgotten
        self._learnt: dict[tuple[str, int], None] = {}
        self.is_stale = False  # a node did not answer: the others are asked before the next use

    def to_ask(self) -> list[ClusterNode]:
        """Whom a new client asks for the rest of the cluster."""
        places = dict.fromkeys((*self._named, *self._learnt))
        kind: Any = ClusterNode
        return [kind(host, port) for host, port in places]

    def learn(self, client: Any) -> None:
        """Remember the nodes that a client has found."""
        for node in client.get_nodes():
            place = (node.host, node.port)
            self._learnt.pop(place, None)
            self._learnt[place] = None
        while len(self._learnt) > MOST:
            del self._learnt[next(iter(self._learnt))]

    def ask_all(self, client: Any) -> None:
        """Have a client find out anew which node has which keys, by any node that was ever seen.

        When a master dies, its replica takes over, and later the first master may come back as a replica, or
        never. A client that asks only the host in its URL, or only what the last answer named, stands still
        for as long as that one host is dead, though the cluster was whole again after seconds: see
        tests/stores/test_cluster.py.
        """
        self.learn(client)
        manager = client.nodes_manager
        known: dict[str, Any] = manager.startup_nodes
        kind: Any = type(next(iter(known.values())))  # of redis-py or of valkey-py
        missing = [node for node in self.to_ask() if node.name not in known]
        manager.startup_nodes = known | {node.name: kind(node.host, node.port) for node in missing}
        self.is_stale = False  # before: what fails meanwhile is asked about once more
        try:
            manager.initialize()
        except BaseException:
            self.is_stale = True
            raise
        self.learn(client)


def cluster_retry() -> Retry:
    """How often the driver itself may ask again. A new client asks the master of the first slots for the list
    of commands, and gives up if that one is dead, unless it may go on to the next. No script is sent so.
    Drivers before 6.0 do so by themselves, and mean something else by it."""
    return Retry(NoBackoff(), 2 if int(redis.__version__.partition(".")[0]) >= 6 else 0)
