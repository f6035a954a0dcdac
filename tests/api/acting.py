"""What nodes do, done by hand: jobs that ended in some way, and nodes that tell of themselves."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import msgspec

from millpond.app import App
from millpond.job import Attempt, Failure, Outcome, Raised, Returned, Settlement
from millpond.node.lease.publish_info import WORKER
from millpond.rules.jobs.lifecycle import settle
from millpond.store.protocol import Claim

_numbers = count(1)


def end(app: App, queue: str, outcome: Outcome) -> str:
    """Run the first job in line as a node would; returns its id."""
    store, node = app.store, f"test-{next(_numbers)}"
    store.renew(node, "test")
    (job,) = store.exchange(node, 1, claims=[Claim(queue, 1)]).claimed
    failure = outcome.failure if isinstance(outcome, Raised) else Failure("", "")
    said = (failure.type or None, failure.message or None, failure.traceback or None)
    ended = "raised" if isinstance(outcome, Raised) else "returned"
    line = Attempt(job.attempt + 1, node, ended, job.created_at, job.created_at, 77, *said)
    verdict = msgspec.structs.replace(settle(job, outcome, job.created_at), line=msgspec.json.encode(line))
    store.exchange(node, 2, settlements=[Settlement(job.id, job.token, verdict, 0.5, 0.25)])
    store.renew(node, "test", lease=0)
    return job.id


def die(app: App, queue: str = "images", message: str = "no such file", error: str = "ValueError") -> str:
    """The first job in line dies of an error."""
    trace = f"Traceback (most recent call last):\n{error}: {message}"
    return end(app, queue, Raised(Failure(error, message, trace), final=True))


def complete(app: App, queue: str = "images", result: bytes = b'"done"') -> str:
    """The first job in line returns."""
    return end(app, queue, Returned(result))


def node_tells(app: App, name: str = "host-1-aaaa", lease: float = 15.0, **pool: Any) -> None:
    """A node with one pool and two workers renews its lease."""
    busy = (101, "busy", None, "resize", 1.5, 1000, 0.5, 40, 2, 60.0, 0.1)
    idle = (102, "idle", None, None, None, 2000, 0.25, 10, 0, 30.0, 5.0)
    told = {
        "name": "images", "queues": ["images"], "kind": "process", "least": 1, "most": 3, "concurrency": 1,
        "claimed": 1, "running": 1, "done": 50, "failed": 2, "crashed": 0, "timed_out": 0, "recycled": 0,
        "max_wait": 10.0, "status": "ok", "wanted": 2, "reasons": [], "budgets": [100, 5000, 90.0],
        "count": 2, "workers": [busy, idle], "policy": "ScaleForWait(max_wait=10)",
        "timeout": 30.0,
    }  # fmt: skip
    assert len(busy) == len(WORKER)
    report = {
        "at": 1_800_000_000.0, "phase": "running", "age": 100.0, "round_age": 0.1, "store_trouble": None,
        "unsettled": 0, "settled": 50, "rescued": 0, "pools": [{**told, **pool}],
        "cpu": {"used": 1.25, "limit": 2},
    }  # fmt: skip
    info = {"pid": 1, "queues": ["images"], "report": report}
    app.store.renew(name, "host", json.dumps(info).encode(), lease)
