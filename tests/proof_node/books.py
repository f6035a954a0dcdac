"""The books of a store of which every job has ended: whatever a job takes must have been given back.

Read past the store's own verbs, as an operator with a database client would read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import apsw
import psycopg

from millpond.job import MICROSECONDS, Job
from millpond.store.protocol import Store
from tests.servers.redis import client_for
from tests.stores.places import address_and_name

LEFT = {
    "slots in use": "SELECT name, used, parked FROM {}slots WHERE used <> 0 OR parked <> 0",
    "unique keys": "SELECT unique_key FROM {}uniques WHERE until IS NULL OR until > {now}",
    "dependencies": "SELECT parent, child FROM {}dependencies",
    "cascades": "SELECT parent, state FROM {}cascades",
}
# By the first word of a key in Redis: empty once every job has ended.
EMPTY = frozenset(
    (
        *("slots:used", "slots:parked", "children", "parents", "falls", "cancelling", "due", "expiring"),
        *("age", "line", "parked", "aside", "asides", "roomy", "waiting", "held"),
    )
)
KEEP = b"\0" * 65  # a member of some sorted sets that is no job


def left_over(url: str, store: Store, lapse: float = 0.0) -> dict[str, Any]:
    """What jobs that have ended still have: slots, dependents, keys for longer than `lapse` from now."""
    now = store.clock.now() + round(lapse * MICROSECONDS)
    if url.startswith("redis:"):
        return _in_redis(url, now)
    found: dict[str, Any] = {}
    prefix = "millpond_" if url.startswith("sqlite:") else f"{address_and_name(url)[1]}."
    for what, query in LEFT.items():
        if rows := _rows(url, query.format(prefix, now=now)):
            found[what] = rows[:20]
    return found


def _rows(url: str, query: str) -> list[Any]:
    if url.startswith("sqlite:"):
        with closing(apsw.Connection(urlsplit(url).path)) as connection:
            return list(connection.execute(query))
    with psycopg.connect(address_and_name(url)[0]) as server:
        return server.execute(query.encode()).fetchall()


def _in_redis(url: str, now: int) -> dict[str, Any]:
    address, namespace = address_and_name(url)
    found: dict[str, Any] = {}
    with client_for(address) as client:
        prefix = b"{%s}:" % namespace.encode()
        for key in client.scan_iter(prefix + b"*", count=1000):
            name = key.removeprefix(prefix).decode(errors="replace")
            is_of_jobs = name in EMPTY or name.partition(":")[0] in EMPTY
            if is_of_jobs and (members := _members(client, key)):
                found[name] = members[:20]
        held = {
            field: said
            for field, said in client.hgetall(prefix + b"uniques").items()
            if not said.partition(b":")[0] or int(said.partition(b":")[0]) > now
        }
    return found | ({"unique keys": held} if held else {})


def _members(client: Any, key: bytes) -> list[Any]:
    """What is under a key, of whatever sort it is."""
    match client.type(key):
        case b"hash":
            return list(client.hgetall(key).items())
        case b"set":
            return list(client.smembers(key))
        case b"zset":
            return [member for member in client.zrange(key, 0, -1) if member != KEEP]
        case b"list":
            return list(client.lrange(key, 0, -1))
    return []


def miscounted(store: Store, jobs: Mapping[str, Job]) -> dict[str, Any]:
    """Where the tallies are not what the rows are, and nodes that are said to run something."""
    rows = Counter((job.queue, job.state) for job in jobs.values())
    counts = store.counts()
    told = {
        (line.queue, state): number
        for line in counts.queues
        for state, number in line.states.items()
        if number
    }
    differ = {
        f"{queue} {state}": f"{told.get((queue, state), 0)} told, {rows[queue, state]} are there"
        for queue, state in told.keys() | rows.keys()
        if told.get((queue, state), 0) != rows[queue, state]
    }
    busy = {node.id: node.running for node in counts.nodes if node.running}
    return {
        **({"tallies": differ} if differ else {}),
        **({"nodes with jobs": busy} if busy else {}),
    }
