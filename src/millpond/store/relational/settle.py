"""Recording outcomes: every write about a running job is checked against (node, token) first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from millpond.job import ENDS, Instant, JobState, Settlement, Transition
from millpond.rules.lifecycle import instead_if_cancelling
from millpond.store.protocol import Progress, Started
from millpond.store.relational import ends
from millpond.store.relational.ends import Ending
from millpond.store.relational.query import Many, Query, Row, Steps
from millpond.store.relational.rows import Damaged, slot_names
from millpond.store.relational.statistics import count, durations


class HeldRow(NamedTuple):
    """What must be known of a running job to settle it."""

    id: str
    token: int
    cancelling: bool
    task: str
    queue: str
    unique: str | None
    slots: str | None
    has_children: bool


def settle(node: str, settlements: Sequence[Settlement], now: Instant) -> Steps[list[str]]:
    """Apply the verdicts that are current; returns the ids of the others."""
    held = yield from _held(node, [settlement.id for settlement in settlements])
    current, stale = [], []
    for settlement in settlements:
        row = held.get(settlement.id)
        if row is None or row.token != settlement.token:
            stale.append(settlement.id)
        else:
            del held[settlement.id]  # a second verdict on the same job is stale
            current.append((row, settlement))
    yield from apply([(row, settlement.transition) for row, settlement in current], now)
    yield from count(durations((row.queue, settlement) for row, settlement in current), now)
    return stale


def _held(node: str, ids: Sequence[str]) -> Steps[dict[str, HeldRow]]:
    rows = yield Query("held_rows", (node, list(ids)))
    return {row[0]: HeldRow(*row) for row in rows}


def apply(verdicts: Iterable[tuple[HeldRow, Transition]], now: Instant, raise_token: int = 0) -> Steps[None]:
    """Carry out verdicts on jobs that are known to be held."""
    finished: dict[JobState, list[Ending]] = {state: [] for state in sorted(ENDS)}
    finish: list[Row] = []
    requeue: list[Row] = []
    freed: Counter[str] = Counter()
    retried: Counter[tuple[str, str, int]] = Counter()
    for row, verdict in verdicts:
        transition = instead_if_cancelling(verdict) if row.cancelling else verdict
        if transition.state in finished:
            finish.append(_finish_row(row, transition, now, raise_token))
            ending = Ending(row.id, row.task, row.queue, row.unique, bool(row.has_children), None)
            finished[transition.state].append(ending)
        else:
            requeue.append(_requeue_row(row, transition, raise_token))
            retried[row.queue, "retried", 0] += 1
        if row.slots is not None:
            freed.update(_slots(row))
    if finish:
        yield Many("finish", finish)
    if requeue:
        yield Many("requeue", requeue)
    if freed:
        yield Many("free_slots", sorted(freed.items()))
    yield from count(retried, now)
    for state, endings in finished.items():
        yield from ends.after(endings, state, now)


def _finish_row(row: HeldRow, transition: Transition, now: Instant, raise_token: int) -> Row:
    return (
        row.id,
        transition.state.value,
        transition.reason,
        transition.result,
        now,
        transition.attempt,
        transition.errors,
        transition.crashes,
        transition.lost,
        _text(transition.line),
        raise_token,
    )


def _requeue_row(row: HeldRow, transition: Transition, raise_token: int) -> Row:
    return (
        row.id,
        transition.state.value,
        transition.rank,
        transition.run_at,
        transition.attempt,
        transition.errors,
        transition.crashes,
        transition.lost,
        transition.alone,
        _text(transition.line),
        raise_token,
    )


def _text(line: bytes) -> str:
    return line.decode() + "\n" if line else ""


def _slots(row: HeldRow) -> list[str]:
    try:
        return slot_names(row.slots)
    except Damaged:
        return []  # it could not have been claimed; whoever broke it since has broken the slot's count


def start(node: str, started: Sequence[Started], now: Instant) -> Steps[list[str]]:
    """Note which jobs have begun; returns the ids of those this node does not hold."""
    rows = yield Many("start", [(item.id, node, item.token, now) for item in started])
    return _refused(started, rows)


def progress(node: str, reports: Sequence[Progress]) -> Steps[list[str]]:
    """Note how far jobs have come; returns the ids of those this node does not hold."""
    latest = {(item.id, item.token): item.data for item in reports}
    rows = yield Many("progress", [(job, node, token, data) for (job, token), data in latest.items()])
    return _refused(reports, rows)


def _refused(items: Iterable[Started | Progress], rows: Sequence[Row]) -> list[str]:
    accepted = {(row[0], row[1]) for row in rows}
    return [item.id for item in items if (item.id, item.token) not in accepted]
