"""The tables of the screen: for each tab its columns, and the rows that a view has for it.

Makes values and draws nothing, so that the screen, `--once` and the tests show the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from millpond.tui.cells import (
    BAD,
    GOOD,
    QUIET,
    WARN,
    Cell,
    brief,
    clock,
    count,
    share,
    since,
    size,
    span,
    text,
)
from millpond.tui.snapshot import Document, View

LEVELS = {"error": BAD, "critical": BAD, "warning": WARN}
STATES = {"ok": GOOD, "live": GOOD, "running": GOOD, "degraded": WARN, "failed": BAD, "silent": BAD}


class Column(NamedTuple):
    """A heading. Numbers stand to the right; where room is short the `tail` is cut first, then the `name`."""

    title: str
    kind: str = "text"  # text, number, name, tail


class Row(NamedTuple):
    """One line, and the document it was made of."""

    key: str
    cells: tuple[Cell, ...]
    item: Document


class Tab(NamedTuple):
    """One table."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Callable[[View], list[Row]]
    empty: str  # said when there are none
    sort: int = 0  # the column it is sorted by at first
    falling: bool = False


def _columns(*titles: str) -> tuple[Column, ...]:
    """`#title` is a column of numbers, `!title` the name, `~title` the tail."""
    kinds = {"#": "number", "!": "name", "~": "tail"}
    return tuple(Column(t[1:], kinds[t[0]]) if t[0] in kinds else Column(t) for t in titles)


# --- queues and pools ------------------------------------------------------------------------------------
def _queues(view: View) -> list[Row]:
    pools = {pool["pool"]: pool for pool in view.overview["pools"]}
    return [Row(queue["queue"], _queue(queue, pools), queue) for queue in view.overview["queues"]]


def _queue(queue: Document, pools: dict[str, Document]) -> tuple[Cell, ...]:
    states, recent, most = queue["states"], queue["recent"], queue["max_wait"]
    p95 = recent["wait_p95"]
    is_late = most is not None and max(p95 or 0.0, queue["oldest"] or 0.0) > most
    wait = f"{brief(p95)}/{brief(most)}" if most is not None else brief(p95)
    return (
        text(queue["queue"]),
        count(states["queued"]),
        count(states["running"]),
        count(round(recent["per_minute"], 1)),
        Cell(wait, -1.0 if p95 is None else p95, WARN if is_late else ""),
        span(queue["oldest"], WARN if is_late else ""),
        _size_of([pools[name] for name in queue["pools"] if name in pools]),
        count(states["dead"], BAD),
        _state_of_queue(queue),
    )


def _size_of(pools: Sequence[Document]) -> Cell:
    """Workers now, and the bounds on each node."""
    if not pools:
        return Cell("-", -1.0, QUIET)
    now = sum(pool["workers"] for pool in pools)
    least, most = (sum(pool[end] or 0 for pool in pools) for end in ("min", "max"))
    return Cell(f"{now}/{least}-{most}", float(now))


def _state_of_queue(queue: Document) -> Cell:
    if queue["paused"]:
        return Cell("paused", "paused", WARN)
    if not queue["nodes"]:
        return Cell("unserved", "unserved", WARN if queue["states"]["queued"] else QUIET)
    return Cell("open" if queue["rate"] is None else f"{queue['rate']:g}/s", "open")


def _pools(view: View) -> list[Row]:
    return [Row(pool["pool"], _pool(pool), pool) for pool in view.overview["pools"]]


def _pool(pool: Document) -> tuple[Cell, ...]:
    decision = (pool["decision"] or {}).get("text") or "; ".join(pool["reasons"])
    return (
        text(pool["pool"]),
        text(pool["status"], STATES.get(pool["status"], "")),
        text(pool["kind"]),
        _size_of([pool]),
        count(pool["wanted"]),
        count(pool["busy"]),
        count(pool["running"]),
        count(pool["waiting"]),
        count(pool["done"]),
        count(pool["failed"], WARN),
        count(pool["crashed"] + pool["timed_out"], BAD),
        size(pool["memory"]),
        text(decision),
    )


# --- nodes and workers -----------------------------------------------------------------------------------
def _workers(view: View) -> list[Row]:
    return [Row(f"{worker['node']} {worker['pid']}", _worker(worker), worker) for worker in view.workers]


def _worker(worker: Document) -> tuple[Cell, ...]:
    return (
        text(worker["pool"]),
        count(worker["pid"]),
        text(worker["state"], GOOD if worker["state"] == "busy" else ""),
        span(worker["running_for"]),
        size(worker["rss"]),
        share(worker["cpu_share"]),
        count(worker["done"]),
        count(worker["failed"], WARN),
        text(worker["task"]),
        text(worker["node"]),
        text(worker["job"]),
    )


def _nodes(view: View) -> list[Row]:
    return [Row(node["id"], _node(node), node) for node in view.nodes]


def _node(node: Document) -> tuple[Cell, ...]:
    state = node["phase"] if node["state"] == "live" and node["phase"] else node["state"]
    said = node["store_trouble"] or ", ".join(node["queues"])
    return (
        text(node["id"]),
        text(state, STATES.get(state, WARN)),
        count(node["running"]),
        count(node["worker_count"]),
        share((node["cpu"] or {}).get("used")),
        count(node["settled"]),
        count(node["unsettled"], WARN),
        count(node["rescued"]),
        span(node["lease_left"], BAD if node["lease_left"] <= 0 else ""),
        span(node["age"]),
        text(said, BAD if node["store_trouble"] else ""),
    )


# --- dead letters and recurring tasks --------------------------------------------------------------------
def _dead(view: View) -> list[Row]:
    now = view.overview["at"]
    return [Row(group["id"], _group(group, now), group) for group in view.dead]


def _group(group: Document, now: str) -> tuple[Cell, ...]:
    return (
        text(group["task"]),
        text(group["queue"]),
        count(group["count"], BAD),
        since(group["finished_at"], now),
        text(group["reason"]),
        text(group["error"]),
        text(group["message"]),
    )


def _recurring(view: View) -> list[Row]:
    now = view.overview["at"]
    return [Row(task["name"], _task(task, now), task) for task in view.recurring or ()]


def _task(task: Document, now: str) -> tuple[Cell, ...]:
    is_stopped = task["disabled_by"] is not None
    return (
        text(task["name"]),
        text(task["state"], WARN if is_stopped else ""),
        text(task["cadence"] or task["mode"]),
        since(task["next_at"], now),
        since(task["last_at"], now),
        count(task["running"]),
        count(task["failures"], WARN),
        text(task["breaker"], BAD if task["breaker"] == "open" else QUIET),
        text(task["last_error"] or task["why"]),
    )


# --- what happened ---------------------------------------------------------------------------------------
def _decisions(view: View) -> list[Row]:
    return [Row(str(line["number"]), _decision(line), line) for line in view.overview["decisions"]]


def _decision(line: Document) -> tuple[Cell, ...]:
    step = "" if line["from"] is None else f"{line['from']} -> {line['to']}"
    said = f"{line['text']} (only recommended)" if line["shadow"] else line["text"]
    return clock(line["at"]), text(line["pool"]), text(step), text(line["capped"], WARN), text(said)


def _events(view: View) -> list[Row]:
    return [Row(str(line["number"]), _event(line), line) for line in view.events]


def _event(line: Document) -> tuple[Cell, ...]:
    folded = line.get("folded")
    more = f" (and {folded} more)" if isinstance(folded, int) and folded > 0 else ""
    level: Any = line.get("level")
    style = LEVELS.get(level, "") if isinstance(level, str) else ""
    return clock(line["at"]), text(level, style), text(line.get("kind")), text(f"{line.get('text')}{more}")


TABS: tuple[Tab, ...] = (
    Tab(
        "queues",
        "Queues",
        _columns(
            "!queue", "#queued", "#running", "#/min", "#p95/max", "#oldest", "#workers", "#dead", "state"
        ),
        _queues,
        "No queue has jobs, and no node serves one: start one with `millpond run`.",
    ),
    Tab(
        "pools",
        "Pools",
        _columns(
            "!pool", "status", "kind", "#workers", "#wanted", "#busy", "#jobs", "#in line", "#done",
            "#failed", "#lost", "#memory", "~last decision",
        ),
        _pools,
        "No node runs: start one with `millpond run`.",
    ),
    Tab(
        "workers",
        "Workers",
        _columns(
            "!pool", "#pid", "state", "#for", "#memory", "#cpu", "#done", "#failed", "task", "node", "~job"
        ),
        _workers,
        "No node runs: start one with `millpond run`.",
        sort=3,
        falling=True,
    ),
    Tab(
        "nodes",
        "Nodes",
        _columns(
            "!node", "state", "#running", "#workers", "#cpu", "#settled", "#unsettled", "#rescued", "#lease",
            "#age", "~serves",
        ),
        _nodes,
        "No node has a lease: jobs wait until one is started with `millpond run`.",
    ),
    Tab(
        "dead",
        "Dead",
        _columns("!task", "queue", "#jobs", "#last", "reason", "error", "~message"),
        _dead,
        "No job is dead.",
        sort=2,
        falling=True,
    ),
    Tab(
        "recurring",
        "Recurring",
        _columns("!task", "state", "cadence", "#next", "#last", "#running", "#failed", "breaker", "~why"),
        _recurring,
        "No recurring task is known: name the app, as in `millpond top --app jobs:app`.",
    ),
    Tab(
        "scaling",
        "Scaling",
        _columns("time", "!pool", "step", "capped by", "~decision"),
        _decisions,
        "No pool has been made larger or smaller lately.",
        falling=True,
    ),
    Tab(
        "events",
        "Events",
        _columns("time", "level", "kind", "~what happened"),
        _events,
        "Nothing worth telling has happened.",
        falling=True,
    ),
)  # fmt: skip


# --- order, choice, widths -------------------------------------------------------------------------------
def ordered(rows: list[Row], column: int, *, falling: bool, wanted: str = "") -> list[Row]:
    """Those that say `wanted` somewhere, sorted by a column; ties by their names."""
    sought = wanted.casefold()
    found = [row for row in rows if any(sought in cell.text.casefold() for cell in row.cells)]
    found.sort(key=lambda row: row.key)
    found.sort(key=lambda row: _order(row.cells[column]), reverse=falling)
    return found


def _order(cell: Cell) -> tuple[bool, float | str]:
    return isinstance(cell.order, str), cell.order  # a number and a text cannot be compared


LEAST_TAIL, LEAST_NAME = 12, 8


def widths(columns: Sequence[Column], rows: Sequence[Row], room: int) -> list[int]:
    """How wide each column is drawn, with a blank between them."""
    found = [
        max(len(column.title) + 1, *(cell_len(row.cells[place].text) for row in rows), 1)
        for place, column in enumerate(columns)
    ]
    for kind, least in (("tail", LEAST_TAIL), ("name", LEAST_NAME)):
        over = sum(found) + len(found) - 1 - room
        for place, column in enumerate(columns):
            if column.kind == kind and over > 0:
                found[place] = max(min(least, found[place]), found[place] - over)
    return found
