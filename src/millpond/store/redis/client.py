"""The driver's client for an address: alone or for a cluster, every wait bounded, nothing repeated."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from millpond.errors import OptionError, StoreUnavailable
from millpond.store.redis.cluster import TIMEOUT as NODE_TIMEOUT
from millpond.store.redis.cluster import Nodes, cluster_retry
from millpond.store.redis.url import Address


def new_client(address: Address, nodes: Nodes, patience: float) -> Any:
    """A client that waits at most `patience` seconds for an answer; `nodes` learns those of a cluster."""
    options: dict[str, Any] = {
        "socket_timeout": patience,
        "socket_connect_timeout": patience,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if address.driver_url.startswith("unix:"):
        del options["socket_keepalive"], options["socket_connect_timeout"]
    try:
        if address.cluster:
            return _cluster_client(address.driver_url, nodes, options)
        return redis.Redis.from_url(address.driver_url, **options)
    except (RedisError, RedisClusterException, OSError) as error:
        raise StoreUnavailable(f"{address.url} cannot be reached: {error}; nothing happened") from error
    except (ValueError, TypeError) as error:
        raise OptionError(f"{address.url} is not a Redis URL: {error}") from error


def _cluster_client(url: str, nodes: Nodes, options: dict[str, Any]) -> Any:
    connect = min(options["socket_timeout"], NODE_TIMEOUT)
    bounds = {"socket_connect_timeout": connect, "retry": cluster_retry()}
    client = RedisCluster.from_url(url, startup_nodes=nodes.to_ask(), **options | bounds)
    nodes.is_stale = False
    nodes.learn(client)
    return client
