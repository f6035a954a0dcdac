"""The drain of no-op jobs and the time from enqueue to handler, with what both cost in CPU.

The clock of a drain runs from the first handler to the last one, or until the store shows that nothing is
left where it can be asked: Millpond everywhere, and the peers on PostgreSQL.
"""

import os
import time
from typing import Any

import psycopg
from evidence import Stuck, count, quantile, read, wait_for
from peers import Peer
from places import Place, Places
from processes import NodeUnderTest, feed, machine_cpu, server_cpu
from sizes import INTERVAL, STALLED, START, Sizes

from millpond.job import JobState
from millpond.store.open import open_store

SETTLING = 30.0  # seconds that the last ends may take to reach the store
Result = dict[str, Any]


def drain(places: Places, peer: Peer, sizes: Sizes) -> Result:
    """Fill the queue, start a node, time it."""
    jobs = max(100, int(peer.jobs * sizes.share))
    place = places.fresh(peer.store)
    feed(peer, place, "setup")
    filled = feed(peer, place, "bulk" if peer.bulk else "enqueue", jobs)
    places.settle_down(peer.store)
    time.sleep(0.5)
    server = places.process(peer.store)
    node = NodeUnderTest(peer, place)
    try:
        wait_for(lambda: count(place.marks) > 0, f"{peer.key} begins", START, 0.002)
        before = node.cpu(), server_cpu(server), machine_cpu(), time.process_time()
        begin, early = time.monotonic(), count(place.marks)
        _wait_for_all(place, jobs)
        settled = _settled(peer, place, jobs)
        time.sleep(0.6)  # what a node does after its last job is part of the price
        after = node.cpu(), server_cpu(server), machine_cpu(), time.process_time()
        wall = time.monotonic() - begin
    finally:
        node.stop()
    spent = [late - soon for soon, late in zip(before, after, strict=True)]
    return _drained(place, jobs, settled) | {
        "cpu": spent[0] / max(1, jobs - early) * 10_000,
        "server_cpu": spent[1] / max(1, jobs - early) * 10_000,
        "others": max(0.0, spent[2] - spent[0] - spent[1] - spent[3]) / wall,  # cores used by anything else
        "enqueued": filled["jobs"] / filled["seconds"],
    }


def _wait_for_all(place: Place, jobs: int) -> None:
    """Until every handler has begun, or none has for long."""
    seen, since = 0, time.monotonic()
    while (now := count(place.marks)) < jobs:
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > STALLED:
            return
        time.sleep(0.005)


def _settled(peer: Peer, place: Place, jobs: int) -> int | None:
    """When the store first showed that nothing was left, where it can be asked."""
    if peer.name == "millpond":
        store = open_store(f"sqlite:///{place.url}" if place.store == "sqlite" else place.url)
        try:
            wait_for(lambda: _completed(store) >= jobs, f"{peer.key} settles", SETTLING, 0.01)
            return time.monotonic_ns()
        finally:
            store.close()
    if not peer.left:
        return None
    with psycopg.connect(place.url, autocommit=True) as connection:
        wait_for(
            lambda: connection.execute(peer.left.encode()).fetchone() == (0,),
            f"{peer.key} settles",
            SETTLING,
            0.01,
        )
        return time.monotonic_ns()


def _completed(store: Any) -> int:
    return sum(queue.states.get(JobState.COMPLETED, 0) for queue in store.counts().queues)


def _drained(place: Place, jobs: int, settled: int | None) -> Result:
    marks = read(place.marks)
    begin, last = min(mark.began for mark in marks), max(mark.began for mark in marks)
    seconds = ((settled or last) - begin) / 1e9
    return {
        "jobs": jobs,
        "ran": len(marks),
        "distinct": len({mark.number for mark in marks}),
        "rate": (len(marks) - 1) / seconds,
        "settled": settled is not None,
    }


def latency(places: Places, peer: Peer, sizes: Sizes) -> Result:
    """One job every 20 ms on an idle node; then what the node costs when there is nothing to do."""
    place = places.fresh(peer.store)
    feed(peer, place, "setup")
    node = NodeUnderTest(peer, place)
    try:
        _warm(peer, place)
        before = node.cpu()
        feed(peer, place, "paced", sizes.paced, INTERVAL)
        try:
            wait_for(lambda: count(place.marks) >= sizes.paced, "the last paced job", STALLED)
        except Stuck as late:
            raise Stuck(f"{peer.key}: {count(place.marks)} of {sizes.paced} jobs ran: {late}") from late
        spent = node.cpu() - before
        time.sleep(1.0)
        idle = _idle(node, sizes.idle)
    finally:
        node.stop()
    waits = [(mark.began - mark.enqueued) / 1e6 for mark in read(place.marks)]
    return {
        "jobs": sizes.paced,
        "p50": quantile(waits, 0.5),
        "p95": quantile(waits, 0.95),
        "p99": quantile(waits, 0.99),
        "max": max(waits),
        "cpu_a_job": spent / sizes.paced * 1000,
        "idle": idle,
    }


def _warm(peer: Peer, place: Place) -> None:
    """Five jobs that do not count, so that every path has been taken once."""
    time.sleep(1.0)
    feed(peer, place, "enqueue", 5)
    wait_for(lambda: count(place.marks) >= 5, f"{peer.key} begins", START)
    time.sleep(1.0)
    os.truncate(place.marks, 0)


def _idle(node: NodeUnderTest, seconds: float) -> float:
    """Percent of a core."""
    before, begin = node.exact_cpu(), time.monotonic()
    time.sleep(seconds)
    return max(0.0, node.exact_cpu() - before) / (time.monotonic() - begin) * 100
