"""The overview: one document with all that the first page shows, out of one snapshot; and what changed.

Makes documents and asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from millpond.api.fleet import node_document, pool_documents, state_of, told_by
from millpond.api.job_documents import moment
from millpond.api.series import recent
from millpond.api.snapshot import Snapshot
from millpond.config import hide_password
from millpond.job import ENDS, MICROSECONDS, JobState
from millpond.rules.jobs.explain import span
from millpond.store.protocol import Minute, QueueCounts

Document = dict[str, Any]
KEYED = {"queues": "queue", "pools": "pool", "nodes": "id"}
WHOLE = ("store", "totals", "alerts", "recurring", "decisions")
CLOCKS = frozenset({"lease_left", "age", "round_age", "reported_at", "started_at"})
LAST_DECISIONS = 10


def overview(snapshot: Snapshot, *, url: str, durability: str, version: str, app: str | None) -> Document:
    """Everything at a glance."""
    pools = pool_items(snapshot)
    queues = queue_items(snapshot, pools)
    found: Document = {
        "at": moment(int(snapshot.at * MICROSECONDS)),
        "version": version,
        "app": app,
        "store": {
            "url": hide_password(url),
            "durability": durability,
            "ok": snapshot.trouble is None,
            "trouble": snapshot.trouble,
        },
        "queues": queues,
        "pools": pools,
        "nodes": [node_document(node, with_workers=False) for node in _by_host(snapshot)],
        "recurring": _recurring(snapshot.recurring),
        "decisions": snapshot.decisions[: -LAST_DECISIONS - 1 : -1],
    }
    stopped = [task["name"] for task in snapshot.recurring or () if task.get("breaker") == "open"]
    return {**found, "totals": _totals(snapshot, found), "alerts": alerts(found, stopped)}


def queue_items(snapshot: Snapshot, pools: list[Document]) -> list[Document]:
    """Every queue that is known to the store or served by a node."""
    counted = {counts.queue: counts for counts in snapshot.counts.queues}
    served = {queue for pool in pools for queue in pool["queues"]}
    empty = (QueueCounts(queue, False, None, {}, None) for queue in served - counted.keys())
    everything = sorted([*counted.values(), *empty], key=lambda counts: counts.queue)
    serving: dict[str, list[Document]] = {}
    for pool in pools:
        for queue in pool["queues"]:
            serving.setdefault(queue, []).append(pool)
    minutes = _by_queue(snapshot)
    return [
        _queue(snapshot, counts, serving.get(counts.queue, []), minutes.get(counts.queue, []))
        for counts in everything
    ]


def _by_queue(snapshot: Snapshot) -> dict[str, list[Minute]]:
    found: dict[str, list[Minute]] = {}
    for line in snapshot.minutes:
        found.setdefault(line.queue, []).append(line)
    return found


def busiest(snapshot: Snapshot, most: int) -> list[str]:
    """The queues with the most to do, by name: where jobs came and ended lately, then where they wait."""
    lately = {
        queue: sum(sum(line.counts.values()) for line in lines)
        for queue, lines in _by_queue(snapshot).items()
    }
    due = {
        line.queue: sum(number for state, number in line.states.items() if state not in ENDS)
        for line in snapshot.counts.queues
    }
    order = sorted({*lately, *due}, key=lambda queue: (-lately.get(queue, 0), -due.get(queue, 0), queue))
    return sorted(order[:most])


def _queue(
    snapshot: Snapshot, counts: QueueCounts, serving: list[Document], minutes: list[Minute]
) -> Document:
    waits = [pool["max_wait"] for pool in serving if pool["max_wait"] is not None]
    lately = recent(minutes, snapshot.at)
    nodes = {node for pool in serving for node in pool["nodes"]}
    return {
        "queue": counts.queue,
        "paused": counts.paused,
        "rate": counts.rate,
        "states": {state.value: counts.states.get(state, 0) for state in JobState},
        "oldest": counts.oldest,
        "max_wait": min(waits, default=None),
        "pools": [pool["pool"] for pool in serving],
        "nodes": len(nodes),
        "recent": lately,
    }


def pool_items(snapshot: Snapshot) -> list[Document]:
    """Every pool of the live nodes, with what its queues hold and who changed its bounds."""
    counted = {counts.queue: counts for counts in snapshot.counts.queues}
    latest = {line["pool"]: line for line in snapshot.decisions if isinstance(line.get("pool"), str)}
    found = []
    for name, pool in sorted(pool_documents(snapshot.counts.nodes).items()):
        lines = [counted[queue] for queue in pool["queues"] if queue in counted]
        ages = [counts.oldest for counts in lines if counts.oldest is not None]
        found.append(
            {
                **pool,
                "oldest_wait": max(ages, default=None),
                "waiting": sum(counts.states.get(JobState.QUEUED, 0) for counts in lines),
                "override": snapshot.overrides.get(name),
                "decision": latest.get(name),
            }
        )
    return found


def _by_host(snapshot: Snapshot) -> list[Any]:
    return sorted(snapshot.counts.nodes, key=lambda node: (node.host, node.id))


def _recurring(tasks: list[Document] | None) -> Document | None:
    if tasks is None:
        return None
    enabled = [task for task in tasks if task.get("enabled", True)]
    return {
        "total": len(tasks),
        "enabled": len(enabled),
        "disabled": len(tasks) - len(enabled),
        "open": sum(task.get("breaker") == "open" for task in tasks),
        "running": sum(bool(task.get("running")) for task in tasks),
    }


def _totals(snapshot: Snapshot, found: Document) -> Document:
    states = {
        state.value: sum(queue["states"][state.value] for queue in found["queues"]) for state in JobState
    }
    lately = recent(snapshot.minutes, snapshot.at)
    begun = sum(pool["running"] for pool in found["pools"])
    return {
        **states,
        "begun": begun,
        "claimed": max(0, sum(pool["claimed"] for pool in found["pools"]) - begun),
        "workers": sum(pool["workers"] for pool in found["pools"]),
        "busy": sum(pool["busy"] for pool in found["pools"]),
        "nodes": sum(node["state"] == "live" for node in found["nodes"]),
        **{name: lately[name] for name in ("per_minute", "failed_per_minute", "wait_p95")},
    }


# --- what somebody should look at ------------------------------------------------------------------------
def alerts(found: Document, stopped: Iterable[str] = ()) -> list[Document]:
    """What is not as it should be, the worst first; `stopped` are recurring tasks whose breaker is open."""
    listed = [
        *_of_store(found),
        *_of_nodes(found),
        *_of_queues(found),
        *_of_pools(found),
        *_of_ticks(stopped),
    ]
    return sorted(listed, key=lambda alert: alert["level"] != "error")


def _alert(level: str, kind: str, subject: str, text: str) -> Document:
    return {"level": level, "kind": kind, "subject": subject, "text": text, "since": None}


def _of_store(found: Document) -> Iterable[Document]:
    if not found["store"]["ok"]:
        said = f"the store cannot be reached: {found['store']['trouble']}"
        yield _alert("error", "store", found["store"]["url"], said)


def _of_nodes(found: Document) -> Iterable[Document]:
    open_jobs = sum(_due(queue) for queue in found["queues"])
    if open_jobs and not any(node["state"] == "live" for node in found["nodes"]):
        wait = f"{open_jobs:,} job waits" if open_jobs == 1 else f"{open_jobs:,} jobs wait"
        said = f"{wait} and no node runs: start one with `millpond run`"
        yield _alert("error", "no_node", "", said)
    for node in found["nodes"]:
        if node["state"] == "silent":
            said = f"node {node['id']} has not renewed its lease: its jobs will be run by another"
            yield _alert("error", "node_silent", node["id"], said)
        if node["store_trouble"]:
            said = f"node {node['id']} cannot reach the store: {node['store_trouble']}"
            yield _alert("error", "store", node["id"], said)


def _of_queues(found: Document) -> Iterable[Document]:
    some_node = any(node["state"] == "live" for node in found["nodes"])
    for queue in found["queues"]:
        name = queue["queue"]
        if queue["paused"]:
            continue
        if queue["max_wait"] is not None and (queue["oldest"] or 0.0) > queue["max_wait"]:
            limited = f": it starts {queue['rate']:g} a second at most" if queue["rate"] else ""
            waited, allowed = span(queue["oldest"]), span(queue["max_wait"])
            said = f"jobs of queue {name} wait {waited}, longer than {allowed}{limited}"
            yield _alert("warning", "wait", name, said)
        if some_node and not queue["nodes"] and _due(queue):
            yield _alert("warning", "unserved", name, f"no node serves queue {name}: its jobs wait")
        if queue["recent"]["dead"]:
            dead = queue["recent"]["dead"]
            said = f"{dead:,} job{'' if dead == 1 else 's'} of queue {name} died in the last five minutes"
            yield _alert("warning", "dead", name, said)


def _due(queue: Document) -> int:
    return int(queue["states"]["queued"])


def _of_pools(found: Document) -> Iterable[Document]:
    for pool in found["pools"]:
        if pool["status"] != "ok":
            level = "error" if pool["status"] == "failed" else "warning"
            said = "; ".join(pool["reasons"]) or pool["status"]
            yield _alert(level, "pool", pool["pool"], f"pool {pool['pool']} is {pool['status']}: {said}")


def _of_ticks(stopped: Iterable[str]) -> Iterable[Document]:
    for name in stopped:
        said = f"recurring task {name} failed again and again: its breaker has stopped it"
        yield _alert("warning", "breaker", name, said)


# --- what changed ----------------------------------------------------------------------------------------
def delta(before: Document, after: Document) -> Document:
    """What a reader of `before` needs to have `after`; only `at` when nothing changed."""
    found: Document = {"at": after["at"]}
    removed: Document = {}
    for name in WHOLE:
        if before[name] != after[name]:
            found[name] = after[name]
    for name, key in KEYED.items():
        old = {item[key]: item for item in before[name]}
        changed = [item for item in after[name] if _kept(old.pop(item[key], {})) != _kept(item)]
        if changed:
            found[name] = changed
        if old:
            removed[name] = list(old)
    return {**found, "removed": removed} if removed else found


def _kept(item: Document) -> Document:
    """Without what only says that time has passed."""
    return {name: value for name, value in item.items() if name not in CLOCKS}


def live_nodes(snapshot: Snapshot) -> list[str]:
    """The ids of nodes that can be told something."""
    return [node.id for node in snapshot.counts.nodes if state_of(node) == "live" and told_by(node)[0]]
