"""Jobs of 20 ms that share keys, at most one of a key at a time, on one node and on several.

Nodes are real ones, each with the same number of workers, on the same backlog with the same keys in the same
order. The queue is paused while they start; the clock begins a second after it is opened. Only Millpond.
"""

import os
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import psycopg
from evidence import Mark, read, wait_for
from peers import Peer
from places import Place, Places
from processes import NodeUnderTest
from sizes import START, Sizes

from millpond import App

RUN = ("{bin}/millpond", "run", "keyed_jobs:app", "--log-level", "warning", "--no-health")
SLEEP = 0.02  # seconds of a job, as in keyed_jobs
MOST = 3000  # jobs a second that no machine of today exceeds here
QUEUE = "default"
LEAD = 1.0  # seconds of work before the clock begins
CHUNK = 1000
SECOND = 1_000_000_000
SESSIONS = b"""SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""
Result = dict[str, Any]


def keyed(places: Places, peer: Peer, sizes: Sizes, nodes: int) -> Result:
    """One number of nodes, for so many seconds."""
    fresh = places.fresh(peer.store)
    place = fresh._replace(variables=fresh.variables | {"BENCH_WORKERS": str(sizes.workers)})
    app = App(place.url)
    app.store.migrate()
    jobs = _fill(app, sizes)
    app.store.configure(queue=QUEUE, paused=True)
    places.settle_down(peer.store)
    running = [NodeUnderTest(peer._replace(best=(RUN,)), place) for _ in range(nodes)]
    try:
        wait_for(lambda: len(app.store.counts().nodes) == nodes, f"{nodes} nodes have a lease", START, 0.1)
        time.sleep(2.0)  # their workers start
        app.store.configure(queue=QUEUE, paused=False)
        begin = time.monotonic_ns() + round(LEAD * SECOND)
        time.sleep(LEAD + sizes.keyed)
    finally:
        for node in running:
            node.stop()
        app.store.close()
    marks = read(place.marks)
    return {
        "nodes": nodes,
        "workers": sizes.workers,
        "keys": sizes.keys,
        "seconds": sizes.keyed,
        "cores": len(os.sched_getaffinity(0)),
        **_figures(marks, begin, round(sizes.keyed * SECOND), everything=len(marks) >= jobs),
        "deadlocks": _deadlocks(place),
        "overlaps": _overlaps(marks, sizes.keys),
    }


def _fill(app: App, sizes: Sizes) -> int:
    """More jobs than are done meanwhile, the same for every number of nodes; returns how many."""

    @app.task(name="keyed", key="{key}", limit=1)
    def job(number: int, key: int) -> None:
        """What runs is the task of that name in the node."""

    choice = random.Random(sizes.keys)  # the same keys in every run
    possible = min(MOST, max(sizes.nodes) * sizes.workers / SLEEP)
    jobs = round(possible * (LEAD + sizes.keyed))
    for first in range(0, jobs, CHUNK):
        keys = [choice.randrange(sizes.keys) for _ in range(CHUNK)]
        job.enqueue_many([((first + at) * sizes.keys + key, key) for at, key in enumerate(keys)])
    return jobs


def _figures(marks: Sequence[Mark], begin: int, length: int, *, everything: bool) -> Result:
    """Ends a second in the window, and its longest part without any; it is over when the backlog is."""
    ends = sorted(mark.began for mark in marks if begin <= mark.began <= begin + length)
    if everything and ends:
        length = ends[-1] - begin
    edges = [begin, *ends, begin + length]
    pauses = [late - soon for soon, late in pairwise(edges)]
    return {"rate": len(ends) / (length / SECOND), "pause": max(pauses) / SECOND}


def _overlaps(marks: Sequence[Mark], keys: int) -> int:
    """How often a job of a key began while another ran; here `enqueued` is its beginning, `began` its end."""
    last: dict[int, int] = {}
    found = 0
    for mark in sorted(marks, key=lambda mark: mark.enqueued):
        key = mark.number % keys
        found += mark.enqueued < last.get(key, 0)
        last[key] = max(mark.began, last.get(key, 0))
    return found


def _deadlocks(place: Place) -> int:
    """How many the server has counted in this database, which is new."""
    if place.store != "postgres":
        return 0
    with psycopg.connect(place.url, autocommit=True) as connection:

        def one(query: bytes) -> int:
            row = connection.execute(query).fetchone()
            return int(row[0]) if row else 0

        # A session reports its counts at the latest when it ends: read before that, the last are missing.
        wait_for(lambda: one(SESSIONS) == 0, "every session of the nodes has ended", START, 0.1)
        return one(b"SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
