"""Nodes, workers and pools as documents, from what nodes tell beside their leases.

What a node tells is text from another process, perhaps of another version: whatever is missing or strange in
it becomes null, and never an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from millpond.api.job_documents import moment
from millpond.job import MICROSECONDS
from millpond.node.lease.publish_info import WORKER
from millpond.store.protocol import NodeRecord

Told = dict[str, Any]
FAR = 1e15  # no number that a node tells is so large; an instant beyond it has no date
MOST_ITEMS = 1_000  # of one list that a node tells
LONGEST = 300  # characters of one text
SUMS = ("running", "claimed", "done", "failed", "crashed", "timed_out", "recycled")
ALIVE = ("busy", "idle", "starting", "draining")
WORSE = ("ok", "degraded", "failed")


def told_by(node: NodeRecord) -> tuple[Told, Told]:
    """What a node says about itself, and its bulletin."""
    try:
        info = json.loads(node.info, parse_constant=str)
    except (ValueError, RecursionError):  # also a number of thousands of digits
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
    workers, pools = workers_of(node), _pools(node)
    at, age = _number(report.get("at")), _number(report.get("age"))
    found = {
        "id": node.id,
        "host": node.host,
        "pid": _whole(info.get("pid")),
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
        "pools": [pool["name"] for pool in pools],
        "reported_at": None if at is None else moment(int(at * MICROSECONDS)),
        "cpu": _cpu(report),
        "memory": _memory(info, pools),
        "worker_count": sum(sum(_states(pool).values()) for pool in pools),
    }
    return {**found, "workers": workers} if with_workers else found


def _cpu(report: Told) -> dict[str, float | None]:
    """How many processors a node and its workers keep busy, and how many there are for it."""
    told = report.get("cpu")
    told = told if isinstance(told, dict) else {}
    return {"used": _number(told.get("used")), "limit": _number(told.get("limit"))}


def _memory(info: Told, pools: list[Told]) -> dict[str, float | None]:
    """What the jobs of a node may use together, and what its workers use."""
    budget = info.get("budget")
    most = _number(budget.get("memory")) if isinstance(budget, dict) else None
    return {"used": sum(_resident(pool) for pool in pools), "limit": most}


def workers_of(node: NodeRecord) -> list[dict[str, Any]]:
    """The workers of a node."""
    found, at = [], _number(told_by(node)[1].get("at"))
    for pool in _pools(node):
        for number, row in enumerate(_rows(pool)):
            worker = dict(zip(WORKER, map(_plain, row), strict=True))
            place = {"id": _id_of(pool, number, node.id, worker), "node": node.id, "pool": pool["name"]}
            more = {**_instants(at, worker), "completed": _completed(worker)}
            found.append({**place, **worker, **more, "recycle": _left(pool, worker)})
    return found


def _id_of(pool: Told, number: int, node: str, worker: Told) -> str:
    """What a worker is called as long as it lives. A node of an older version tells only pids."""
    ids = pool.get("worker_ids")
    told = _text(ids[number]) if isinstance(ids, list) and number < len(ids) else None
    return told or f"{node}/{pool['name']}/pid-{worker['pid']}"


def _completed(worker: Told) -> int | None:
    """Jobs that ended well in it."""
    done, failed = _whole(worker["done"]), _whole(worker["failed"])
    return None if done is None or failed is None else max(0, done - failed)


def _instants(at: float | None, worker: Told) -> dict[str, str | None]:
    """When that was of which the worker's row tells how long ago it is."""
    names = {"age": "started_at", "running_for": "job_started_at", "last_seen": "last_seen_at"}
    ages = {name: _number(worker[age]) for age, name in names.items()}
    return {
        name: None if at is None or age is None else moment(int((at - age) * MICROSECONDS))
        for name, age in ages.items()
    }


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
        "timeout": _number(pool.get("timeout")),
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
    states = _states(pool)
    merged["workers"] += sum(states.values())
    for state, number in states.items():
        merged[state] += number
    merged["memory"] += _resident(pool)


def _states(pool: Told) -> dict[str, int]:
    """How many workers a pool has by state. The list of them is cut where there are very many, so the node
    counts them itself; one of an older version does not."""
    told = pool.get("states")
    if isinstance(told, dict):
        return {state: max(0, _whole(told.get(state)) or 0) for state in ALIVE}
    listed = [row[WORKER.index("state")] for row in _rows(pool)]
    return {state: listed.count(state) for state in ALIVE}


def _resident(pool: Told) -> int:
    """What the workers of a pool have in memory together."""
    told = _whole(pool.get("rss"))
    return sum(_whole(row[WORKER.index("rss")]) or 0 for row in _rows(pool)) if told is None else told


def _rows(pool: Told) -> list[list[Any]]:
    rows = pool.get("workers")
    return [
        row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list) and len(row) == len(WORKER)
    ]


def _pools(node: NodeRecord) -> list[Told]:
    pools = told_by(node)[1].get("pools")
    if not isinstance(pools, list):
        return []
    return [pool for pool in pools[:MOST_ITEMS] if isinstance(pool, dict) and _is_name(pool.get("name"))]


def _is_name(value: object) -> bool:
    """A name goes back to the store as a key: it must be one that every store can take."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST and value.isprintable()


def _text(value: object) -> str | None:
    return value[:LONGEST] if isinstance(value, str) else None


def _texts(value: object) -> list[str]:
    items = value[:MOST_ITEMS] if isinstance(value, list) else []
    return [item[:LONGEST] for item in items if isinstance(item, str)]


def _number(value: object) -> float | None:
    """JSON can say numbers that no float holds, and that cannot be added up or dated."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -FAR <= value <= FAR else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and _number(value) is not None else None


def _plain(value: object) -> object:
    """A field of a worker's row: a name, a number or nothing."""
    return value if isinstance(value, bool) else _text(value) if isinstance(value, str) else _number(value)
