"""What a node tells the rest of the fleet about its pools and workers, as small JSON beside its lease.

Dashboards in other processes read it. It goes with each renewal and is gone with the node's record; nothing
that decides about jobs may depend on it. No payload, no error text of a job.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from millpond.node.observability.report import NodeReport, PoolReport, WorkerReport
from millpond.pool_settings import PoolSettings
from millpond.rules.scaling.policies import policy_for
from millpond.shown_text import shown
from millpond.system.cores import usable_cores

if TYPE_CHECKING:
    from millpond.node.state import NodeState

EVERY = 2.9  # seconds between two bulletins: they go with the lease, which is renewed as often
MOST_WORKERS = 200  # of one pool: a record is written every few seconds
WORKER = ("pid", "state", "job", "task", "running_for", "rss", "cpu", "done", "failed", "age", "last_seen")


class Bulletin:
    """Puts a fresh one beside the lease from time to time, and at once when the node begins to stop."""

    def __init__(self, state: NodeState, report: Callable[[], NodeReport]) -> None:
        self._state = state
        self._report = report
        self._due = 0.0
        self._phase = ""
        self._processors = ProcessorUse()

    def look(self) -> None:
        """Write one if it is time."""
        now, state = time.monotonic(), self._state
        if now < self._due and state.phase == self._phase:
            return
        self._due = now + EVERY
        settings = {name: pool.settings for name, pool in state.pools.items()}
        report = self._report()
        told = bulletin(report, settings)
        told["cpu"] = self._processors.since_last(report, now, time.process_time())
        state.identity.facts["report"] = told
        if state.phase != self._phase:
            self._phase = state.phase
            state.renew()


class ProcessorUse:
    """How many processors a node and its workers keep busy, from one look to the next."""

    def __init__(self) -> None:
        self._at = 0.0
        self._used: dict[int, float] = {}  # seconds of processor time by process; 0 is the node's own

    def since_last(self, report: NodeReport, now: float, own: float) -> dict[str, float | None]:
        """In processors, beside how many there are for it. A worker that has come or gone meanwhile is left
        out for once."""
        used = {worker.pid: worker.cpu for pool in report.pools for worker in pool.workers} | {0: own}
        spent = sum(max(0.0, used[pid] - self._used[pid]) for pid in used.keys() & self._used.keys())
        found = round(spent / (now - self._at), 2) if self._at and now > self._at else None
        self._at, self._used = now, used
        return {"used": found, "limit": usable_cores()}


def policy_in_words(settings: PoolSettings) -> str:
    """How a pool finds its size, as its app would write it."""
    policy = settings.policy or policy_for(settings.max_wait)
    told: dict[str, Any] = getattr(policy, "_asdict", dict)()
    values = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in told.items()
    )
    return shown(f"{type(policy).__name__}({values})" + (", in shadow" if settings.shadow else ""), most=200)


def bulletin(report: NodeReport, settings: Mapping[str, PoolSettings]) -> dict[str, Any]:
    """The node at this moment."""
    return {
        "at": round(time.time(), 3),
        "phase": report.state,
        "age": round(report.age, 1),
        "round_age": round(report.round_age, 3),
        "store_trouble": None if report.store_trouble is None else shown(report.store_trouble, most=200),
        "unsettled": report.unsettled,
        "settled": report.settled,
        "rescued": report.rescued,
        "pools": [_pool(pool, settings.get(pool.name)) for pool in report.pools],
    }


def _pool(pool: PoolReport, settings: PoolSettings | None) -> dict[str, Any]:
    told = {
        name: getattr(pool, name)
        for name in (
            "name", "queues", "kind", "least", "most", "concurrency", "claimed", "running", "done", "failed",
            "crashed", "timed_out", "recycled", "max_wait", "status",
        )
    }  # fmt: skip
    wanted = getattr(pool, "wanted", None)
    budgets: tuple[float | None, ...] = (None, None, None)
    if settings is not None:
        budgets = (settings.max_tasks_per_child, settings.max_memory, settings.max_age)
    return {
        **told,
        "wanted": wanted,
        "policy": None if settings is None else policy_in_words(settings),
        "timeout": None if settings is None else settings.timeout,
        "reasons": [shown(reason, most=200) for reason in pool.reasons[:5]],
        "budgets": budgets,
        "count": len(pool.workers),
        "states": Counter(worker.state for worker in pool.workers),  # of all, beyond those in the list, too
        "rss": sum(worker.rss for worker in pool.workers),
        "workers": [_worker(worker) for worker in pool.workers[:MOST_WORKERS]],
        "worker_ids": [worker.id for worker in pool.workers[:MOST_WORKERS]],  # apart: readers count columns
    }


def _worker(worker: WorkerReport) -> list[Any]:
    """A row; the columns are WORKER."""
    values = (getattr(worker, name) for name in WORKER)
    return [round(value, 2) if isinstance(value, float) else value for value in values]
