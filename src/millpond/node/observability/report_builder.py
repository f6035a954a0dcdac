"""Makes the node's report: looks at the loop, the pools and their workers at one moment."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from millpond.job import JobState
from millpond.node.jobs.claimed_job import JobTask
from millpond.node.observability.events import ScaledDown, ScaledUp, WorkerStartFailed, WorkerUp
from millpond.node.observability.report import (
    NodeReport,
    PoolReport,
    RecurringReport,
    ResourceReport,
    WorkerReport,
)
from millpond.node.resources.cgroup import NO_LIMIT
from millpond.node.scaling.decision_log import said_of
from millpond.orchestrator.events import BreakerOpened, TickLate, TickMissed
from millpond.pool.proc import resident
from millpond.pool.statistics import health

if TYPE_CHECKING:
    from millpond.node.jobs.claim_loop import ClaimLoop
    from millpond.node.jobs.queue_pool import QueuePool
    from millpond.node.maintenance import Upkeep
    from millpond.node.observability.counters import Occurrences
    from millpond.node.observability.job_tally import Tally
    from millpond.node.recurring import Planning
    from millpond.node.resources.budget import NodeBudget
    from millpond.node.scaling.loop import Scaling
    from millpond.node.state import NodeState
    from millpond.pool.process.control import CrewControl
    from millpond.pool.process.worker_link import Link
    from millpond.store.protocol import Counts

TICKS = os.sysconf("SC_CLK_TCK")


class Watched(NamedTuple):
    """What a node's report is about, beside its state."""

    loop: ClaimLoop
    upkeep: Upkeep
    scaling: Scaling
    planning: Planning
    occurrences: Occurrences


def report_on(state: NodeState, watched: Watched, age: float, *, with_workers: bool = True) -> NodeReport:
    """The whole node; without its workers it costs a fraction, since each of them is looked up in /proc."""
    loop, upkeep, scaling, planning, occurrences = watched
    counts = scaling.counting.counts
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
        unsettled_bytes=state.line.total,
        quarantined=len(state.line.quarantine),
        unrecorded=tuple(f"job {job}: {why}" for job, why in state.line.quarantine.told().items()),
        settled=loop.settled,
        stale=loop.stale,
        rescued=upkeep.rescued,
        exchanges=loop.rounds,
        pools=tuple(
            _with_counts(
                _pool(state.identity.id, pool, counts, scaling, with_workers), pool.tally, occurrences
            )
            for pool in state.pools.values()
        ),
        fleet=scaling.fleet(),
        exchange=loop.times.timing(),
        store_errors=dict(loop.troubles),
        resources=_resources(state.budget),
        recurring=_recurring(planning, occurrences),
        store_retries=_retries(state),
        schema_trouble=state.heart.versions.trouble,
    )


def _retries(state: NodeState) -> Counter[str]:
    """Of the node's store and, where it is another one, of its heartbeat's; not every store repeats."""
    found: Counter[str] = Counter()
    for store in {id(store): store for store in (state.store, state.heart)}.values():
        found.update(getattr(store, "retries", {}))
    return found


def _with_counts(pool: PoolReport, tally: Tally, occurrences: Occurrences) -> PoolReport:
    return pool._replace(
        ends=tally.told(),
        wait=tally.waits.timing(),
        run=tally.runs.timing(),
        workers_started=occurrences.number(WorkerUp, pool.name),
        workers_ended=occurrences.ends(pool.name),
        starts_failed=occurrences.number(WorkerStartFailed, pool.name),
        scaled_up=occurrences.number(ScaledUp, pool.name),
        scaled_down=occurrences.number(ScaledDown, pool.name),
    )


def _resources(budget: NodeBudget) -> ResourceReport:
    level, held = budget.measured.level, list(budget.holding.values())
    limit = level.limit if level.limit < NO_LIMIT else budget.means.memory
    return ResourceReport(
        memory_limit=limit if limit < NO_LIMIT else None,
        memory_used=level.used,
        memory_reserved=sum(one.need.memory for one in held),
        waiting=len(budget.waiting),
        step=budget.measured.step,
        tokens=dict(budget.tokens),
        tokens_used={name: sum(one.need.tokens.get(name, 0.0) for one in held) for name in budget.tokens},
    )


def _recurring(planning: Planning, occurrences: Occurrences) -> RecurringReport | None:
    seen = planning.seen()
    if seen is None:
        return None
    return seen._replace(
        missed=occurrences.total(TickMissed),
        late=occurrences.total(TickLate),
        opened=occurrences.total(BreakerOpened),
    )


def _pool(
    node: str, pool: QueuePool, counts: Counts | None, scaling: Scaling, with_workers: bool
) -> PoolReport:
    settings = pool.settings
    decision = scaling.decision_of(settings.name)
    engine = pool.engines()[0]
    engines = pool.engines() if with_workers else ()
    places = (f"{node}/{settings.name}/", f"{node}/{settings.name}/alone-")  # each engine counts for itself
    workers = tuple(
        row
        for place, one in zip(places, engines, strict=False)
        for row in _workers(settings.name, place, one)
    )
    lines = [] if counts is None else [item for item in counts.queues if item.queue in settings.queues]
    found = [item for item in lines if not item.paused]
    failure = next((one.failure for one in pool.engines() if one.failure), "")  # else closed: the node stops
    verdict = health(closed=bool(failure), starts=engine.starts, queued=0, slots=1, failure=failure)
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
        rates={item.queue: item.rate for item in found if item.rate},
        status=verdict.status,  # type: ignore[arg-type]
        reasons=verdict.reasons,
        workers=workers,
        wanted=settings.least if decision is None else decision.wanted,
        sentence="" if decision is None else said_of(settings, decision),
        shadow=settings.shadow,
    )


def _workers(pool: str, place: str, engine: CrewControl) -> list[WorkerReport]:
    now = time.monotonic()
    if engine.dispatcher is None:
        return []
    with engine.exclusive():
        return [_worker(pool, place, engine, link, now) for link in engine.links.values() if not link.closed]


def _worker(pool: str, place: str, engine: CrewControl, link: Link, now: float) -> WorkerReport:
    row = engine._row(link, now)
    task = None
    running = link.running()
    if running:
        task = link.inflight[min(running, key=lambda number: running[number])]
    last_seen = max(0.0, now - max(link.idle_since, link.fed_at))
    return WorkerReport(
        pool=pool,
        pid=link.pid,
        state=row.state,  # type: ignore[arg-type]
        job=task.job.id if isinstance(task, JobTask) else None,
        task=task.job.task if isinstance(task, JobTask) else None,
        running_for=row.running_for,
        rss=resident(link.pid) if link.pid else 0,
        cpu=_cpu(link.pid),
        done=row.tasks_done,
        failed=row.failed,
        age=row.age,
        last_seen=last_seen,
        id=f"{place}{row.id}",
        completed=row.completed,
        started_at=row.started_at,
        job_started_at=row.task_started_at,
        last_seen_at=time.time() - last_seen,
    )


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS
