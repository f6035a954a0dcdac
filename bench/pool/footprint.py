"""Scenarios about what a pool costs before it works: memory, and the time to its first result."""

import os
import time

import work
from peer import Peer
from sizes import Sizes
from speed import WORKERS, check
from values import Values

MANY = 8


def memory(peer: Peer, sizes: Sizes) -> Values:
    """Eight workers that have worked and now rest: PSS of the whole tree, this process included."""
    peer.open(MANY)
    seen = set(peer.submit_all(work.nap, [0.05] * MANY * 12))
    if len(seen) < MANY:
        return {"total_mib": f"only {len(seen)} workers worked"}
    time.sleep(1)
    from processes import descendants, proportional_memory  # after the workers forked

    below = descendants()
    parent = proportional_memory(os.getpid())
    children = sum(proportional_memory(pid) for pid in below)
    peer.close()
    return {
        "workers_seen": len(seen),
        "processes": len(below),
        "parent_mib": parent,
        "children_mib": children,
        "total_mib": parent + children,
    }


def startup(peer: Peer, sizes: Sizes) -> Values:
    """Import, open, first result, close; the driver runs this in several fresh interpreters."""
    begin = time.perf_counter()
    peer.load()
    imported = time.perf_counter()
    peer.open(WORKERS)
    result = peer.result(peer.submit(work.noop, 7))
    first = time.perf_counter()
    peer.close()
    closed = time.perf_counter()
    check(result == 7)
    return {
        "import_ms": (imported - begin) * 1000,
        "first_ms": (first - imported) * 1000,
        "with_import_ms": (first - begin) * 1000,
        "close_ms": (closed - first) * 1000,
    }
