"""Nodes, workers and pools as documents, from what nodes tell beside their leases.

What a node tells is text from another process, perhaps of another version: whatever is missing or strange in
it becomes null, and never an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from millpond.api.documents import moment
from millpond.job import MICROSECONDS
from millpond.node.bulletin import WORKER
from millpond.store.protocol import NodeRecord

Told = dict[str, Any]
SUMS = ("running", "claimed", "done", "failed", "crashed", "timed_out", "recycled")
WORSE = ("ok", "degraded", "failed")


def told_by(node: NodeRecord) -> tuple[Told, Told]:
    """What a node says about itself, and its bulletin."""
    try:
        info = json.loads(node.info, parse_constant=str)
    except (ValueError, RecursionError):
        return {}, {}
    if not isinstance(info, dict):
        return {}, {}
    report = info.get("report")
    return info, report if isinstance(report, dict) else {}


def state_of(node: NodeRecord) -> str:
    """An expired lease alone refuses nothing: the node may be back before anybody rescues its jobs."""
    if node.sealed:
        return "rescued"
    return "live" if node.lease_left > 0 else "silent"


def node_document(node: NodeRecord, *, with_workers: bool) -> dict[str, Any]:
    """One node."""
    info, report = told_by(node)
    workers = workers_of(node)
    at, age = _number(report.get("at")), _number(report.get("age"))
    found = {
        "id": node.id,
        "host": node.host,
        "pid": info.get("pid") if isinstance(info.get("pid"), int) else None,
        "state": state_of(node),
        "phase": _text(report.get("phase")),
        "lease_left": round(node.lease_left, 3),
        "running": node.running,
        "age": age,
        "started_at": None if at is None or age is None else moment(int((at - age) * MICROSECONDS)),
        "round_age": _number(report.get("round_age")),
        "store_trouble": _text(report.get("store_trouble")),
        "unsettled": _whole(report.get("unsettled")),
        "settled": _whole(report.get("settled")),
        "rescued": _whole(report.get("rescued")),
        "queues": _texts(info.get("queues")),
        "pools": [pool["name"] for pool in _pools(node)],
        "reported_at": None if at is None else moment(int(at * MICROSECONDS)),
        "cpu": _cpu(report),
        "memory": _memory(info, workers),
        "worker_count": sum(_whole(pool.get("count")) or 0 for pool in _pools(node)),
    }
    return {**found, "workers": workers} if with_workers else found


def _cpu(report: Told) -> dict[str, float | None]:
    """How many processors a node and its workers keep busy, and how many there are for it."""
    told = report.get("cpu")
    told = told if isinstance(told, dict) else {}
    return {"used": _number(told.get("used")), "limit": _number(told.get("limit"))}


def _memory(info: Told, workers: list[Told]) -> dict[str, float | None]:
    """What the jobs of a node may use together, and what its workers use."""
    budget = info.get("budget")
    most = _number(budget.get("memory")) if isinstance(budget, dict) else None
    return {"used": sum(_whole(worker["rss"]) or 0 for worker in workers), "limit": most}


def workers_of(node: NodeRecord) -> list[dict[str, Any]]:
    """The workers of a node."""
    found = []
    for pool in _pools(node):
        rows = pool.get("workers")
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and len(row) == len(WORKER):
                worker = dict(zip(WORKER, row, strict=True))
                found.append(
                    {"node": node.id, "pool": pool["name"], **worker, "recycle": _left(pool, worker)}
                )
    return found


def _left(pool: Told, worker: Told) -> dict[str, float | None]:
    """How much of its budgets a worker has left."""
    budgets = pool.get("budgets")
    if not isinstance(budgets, list) or len(budgets) != 3:
        budgets = [None, None, None]
    used = (worker["done"], worker["rss"], worker["age"])
    left = [
        None if _number(most) is None or _number(spent) is None else max(0, most - spent)
        for most, spent in zip(budgets, used, strict=True)
    ]
    return dict(zip(("jobs_left", "memory_left", "age_left"), left, strict=True))


def pool_documents(nodes: Iterable[NodeRecord]) -> dict[str, dict[str, Any]]:
    """Every pool of the fleet, its numbers added up over the live nodes."""
    found: dict[str, dict[str, Any]] = {}
    for node in nodes:
        if state_of(node) != "live":
            continue
        for pool in _pools(node):
            merged = found.setdefault(pool["name"], _empty(pool))
            _add(merged, pool, node.id)
    return found


def _empty(pool: Told) -> dict[str, Any]:
    return {
        "pool": pool["name"],
        "queues": _texts(pool.get("queues")),
        "kind": _text(pool.get("kind")),
        "concurrency": _whole(pool.get("concurrency")),
        "min": _whole(pool.get("least")),
        "max": _whole(pool.get("most")),
        "workers": 0,
        "busy": 0,
        "idle": 0,
        "starting": 0,
        "draining": 0,
        **dict.fromkeys(SUMS, 0),
        "wanted": None,
        "max_wait": _number(pool.get("max_wait")),
        "policy": _text(pool.get("policy")),
        "memory": 0,
        "status": "ok",
        "reasons": [],
        "nodes": [],
    }


def _add(merged: dict[str, Any], pool: Told, node: str) -> None:
    merged["nodes"].append(node)
    merged["queues"] = sorted({*merged["queues"], *_texts(pool.get("queues"))})
    for name in SUMS:
        merged[name] += _whole(pool.get(name)) or 0
    wanted = _whole(pool.get("wanted"))
    if wanted is not None:
        merged["wanted"] = (merged["wanted"] or 0) + wanted
    status = pool.get("status")
    if status in WORSE and WORSE.index(status) > WORSE.index(merged["status"]):
        merged["status"] = status
    merged["reasons"] = [*merged["reasons"], *_texts(pool.get("reasons"))][:10]
    rows = pool.get("workers")
    for row in rows if isinstance(rows, list) else ():
        worker = dict(zip(WORKER, row, strict=False)) if isinstance(row, list) else {}
        state = worker.get("state")
        if state != "dead":
            merged["workers"] += 1
        if state in ("busy", "idle", "starting", "draining"):
            merged[state] += 1
        merged["memory"] += _whole(worker.get("rss")) or 0


def _pools(node: NodeRecord) -> list[Told]:
    pools = told_by(node)[1].get("pools")
    if not isinstance(pools, list):
        return []
    return [pool for pool in pools if isinstance(pool, dict) and isinstance(pool.get("name"), str)]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
