"""Makes the node's report: looks at the loop, the pools and their workers at one moment."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from millpond.job import JobState
from millpond.node.inflight import JobTask
from millpond.node.report import NodeReport, PoolReport, WorkerReport
from millpond.pool import page as layout
from millpond.pool.statistics import health
from millpond.pool.system import resident

if TYPE_CHECKING:
    from millpond.node.claim import ClaimLoop
    from millpond.node.queue_pool import QueuePool
    from millpond.node.state import NodeState
    from millpond.node.upkeep import Upkeep
    from millpond.pool.crew_control import CrewControl
    from millpond.pool.link import Link
    from millpond.store.protocol import Counts

TICKS = os.sysconf("SC_CLK_TCK")


def report_on(state: NodeState, loop: ClaimLoop, upkeep: Upkeep, age: float) -> NodeReport:
    """The whole node."""
    return NodeReport(
        id=state.identity.id,
        host=state.identity.host,
        pid=os.getpid(),
        state=state.phase,
        store=state.store.url,
        durability=state.durability,
        age=age,
        round_age=time.monotonic() - loop.round_at,
        lease_left=state.lease_left(),
        store_trouble=loop.trouble,
        unsettled=len(state.line),
        unsettled_bytes=state.line.size,
        settled=loop.settled,
        stale=loop.stale,
        rescued=upkeep.rescued,
        exchanges=loop.rounds,
        pools=tuple(_pool(pool, upkeep.counts) for pool in state.pools.values()),
    )


def _pool(pool: QueuePool, counts: Counts | None) -> PoolReport:
    settings = pool.settings
    engine = pool.engines()[0]
    workers = tuple(row for engine in pool.engines() for row in _workers(settings.name, engine))
    found = [] if counts is None else [item for item in counts.queues if item.queue in settings.queues]
    verdict = health(closed=False, starts=engine.starts, queued=0, slots=1)
    ages = [item.oldest for item in found if item.oldest is not None]
    return PoolReport(
        name=settings.name,
        queues=settings.queues,
        kind=settings.kind,
        least=settings.least,
        most=settings.most,
        concurrency=settings.concurrency,
        claimed=len(pool.held),
        running=sum(len(engine.begun()) for engine in pool.engines()),
        done=pool.done,
        failed=pool.failed,
        crashed=pool.crashed,
        timed_out=pool.timed_out,
        recycled=engine.tally.recycled,
        max_wait=settings.max_wait,
        oldest_wait=max(ages, default=None),
        waiting=sum(item.states.get(JobState.QUEUED, 0) for item in found),
        status=verdict.status,  # type: ignore[arg-type]
        reasons=verdict.reasons,
        workers=workers,
    )


def _workers(pool: str, engine: CrewControl) -> list[WorkerReport]:
    now = time.monotonic()
    if engine.dispatcher is None:
        return []
    with engine.exclusive():
        return [_worker(pool, engine, link, now) for link in engine.links.values() if not link.closed]


def _worker(pool: str, engine: CrewControl, link: Link, now: float) -> WorkerReport:
    row = engine._row(link, now)
    task = None
    running = link.running()
    if running:
        task = link.inflight[min(running, key=lambda number: running[number])]
    return WorkerReport(
        pool=pool,
        pid=link.pid,
        state=row.state,  # type: ignore[arg-type]
        job=task.job.id if isinstance(task, JobTask) else None,
        task=task.job.task if isinstance(task, JobTask) else None,
        running_for=row.running_for,
        rss=resident(link.pid) if link.pid else 0,
        cpu=_cpu(link.pid),
        done=link.page.words[layout.TASKS_DONE],
        failed=link.page.words[layout.ERRORS],
        age=row.age,
        last_seen=max(0.0, now - max(link.idle_since, link.fed_at)),
    )


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
