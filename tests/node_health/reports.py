"""Reports of a healthy node, to be bent by the tests."""

from __future__ import annotations

from typing import Any

import msgspec

from millpond.node.observability.report import (
    NodeReport,
    PoolReport,
    RecurringReport,
    ResourceReport,
    TickingReport,
    WorkerReport,
)
from millpond.node.scaling.fleet import PoolShare


def worker(**changes: Any) -> WorkerReport:
    """An idle worker."""
    healthy = WorkerReport(
        pool="mail",
        pid=4711,
        state="idle",
        job=None,
        task=None,
        running_for=None,
        rss=50_000_000,
        cpu=1.5,
        done=10,
        failed=1,
        age=60.0,
        last_seen=0.1,
    )
    return healthy._replace(**changes)


def pool(**changes: Any) -> PoolReport:
    """A pool of up to two workers with nothing in line."""
    healthy = PoolReport(
        name="mail",
        queues=("mail",),
        kind="process",
        least=1,
        most=2,
        concurrency=1,
        claimed=1,
        running=1,
        done=10,
        failed=1,
        crashed=0,
        timed_out=0,
        recycled=0,
        max_wait=10.0,
        oldest_wait=None,
        waiting=0,
        status="ok",
        reasons=(),
        wanted=2,
        workers=(worker(), worker(pid=4712, state="busy", job="a", task="jobs.send", running_for=0.5)),
    )
    return healthy._replace(**changes)


def share(**changes: Any) -> PoolShare:
    """The same pool, as its node tells others."""
    usual = PoolShare(
        name="mail", queues=("mail",), workers=2, least=1, most=2, concurrency=1, wanted=2, desired=1
    )
    return msgspec.structs.replace(usual, **changes)


def node(*pools: PoolReport, **changes: Any) -> NodeReport:
    """A node that runs well."""
    healthy = NodeReport(
        id="host-1-abcd",
        host="host",
        pid=1,
        state="running",
        store="postgresql://user@db.internal/jobs",
        durability="durable",
        age=100.0,
        round_age=0.2,
        lease_left=14.0,
        store_trouble=None,
        unsettled=0,
        unsettled_bytes=0,
        settled=50,
        stale=1,
        rescued=4,
        exchanges=70,
        pools=pools or (pool(),),
        fleet=(share(),),
        store_errors={"StoreBusy": 2},
        resources=ResourceReport(8_000_000_000, 1_000_000, 0, 0, "admit", {"gpu": 2.0}, {"gpu": 1.0}),
        recurring=RecurringReport(True, (TickingReport("jobs.tick", False, 0, 1, 0.1, 1_700_000_000.0),)),
    )
    return healthy._replace(**changes)
